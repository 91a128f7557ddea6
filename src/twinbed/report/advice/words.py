"""Rules in words: ``virtio gives requests per second within 10 % of physical from payload 64KiB on (to 16MiB, the largest
measured); below that 0.61 to 0.73 of it.``"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from twinbed.analyses.compare.claims import values
from twinbed.analyses.compare.words import effect_text
from twinbed.model.caution import Kind
from twinbed.model.comparison import Comparison
from twinbed.model.result import Verdict
from twinbed.model.run import level_text
from twinbed.report.advice.result import Contradiction, Contrast, Evidence, Open, Rule, Span, Topic
from twinbed.report.advice.series import Levels, Range, Series, level_of
from twinbed.show.numbers import joined
from twinbed.show.quantities import share
from twinbed.show.words import cell_title, heading, metric_title, p_text

ABOUT: Mapping[Kind, str] = {
    Kind.SOFTWARE_CPU: "on an emulated CPU: this describes the emulator",
    Kind.MODELLED: "from a model: this describes the model",
}
"""Words for cautions that change the subject of a sentence."""


Wording = tuple[tuple[Levels, ...], int, str, str, tuple[object, ...]]
"""A sentence about a metric without its name and amounts.

It has combinations of levels and their number, the axis, the margin, and the pattern of verdicts with their subject."""


def wording_of(alike: Sequence[Series], every: int) -> Wording:
    """Return a key that is equal for metrics that one sentence may describe."""
    first = alike[0]
    near = [_near(cell) for cell in first.cells if cell.verdict is Verdict.EQUIVALENT][:1]
    notable = tuple(kind for kind in kinds(_cells(alike)) if kind in ABOUT)
    return tuple(member.rest for member in alike), every, first.axis or "", "".join(near), (first.pattern, notable)


def sentence(metrics: Sequence[Sequence[Series]], every: int) -> str:
    """Return the sentence about the series of each metric, which are alike. ``every`` is how many series a metric
    of the contrast has."""
    alike = metrics[0]
    first = alike[0]
    subject = f"{first.contrast.subject} gives"
    where = _where([member.rest for member in alike], len(alike) == every)
    on = f"on {first.contrast.testbed}" if first.contrast.testbed else ""
    parts = [*_within(metrics), *_beyond(metrics), *_undecided(first)]
    notable = dict.fromkeys(ABOUT[kind] for kind in kinds(_cells(alike)) if kind in ABOUT)
    notes = f" ({'; '.join(notable)})" if notable else ""
    text = f"{', '.join(filter(None, (on, where, subject)))} {'; '.join(parts)}{notes}."
    # A testbed's name is written as it is.
    return heading(text) if on or where else text


def _where(rests: Sequence[Levels], is_all: bool) -> str:
    if not rests[0]:
        return ""
    if is_all and len(rests) > 1:
        return f"whatever the {joined([_short(name) for name, _ in rests[0]])}"
    return f"with {' or '.join(', '.join(f'{_short(name)} {level_text(level)}' for name, level in rest) for rest in rests)}"


def _cells(alike: Sequence[Series], verdict: Verdict | None = None) -> list[Comparison]:
    return [cell for member in alike for cell in member.cells if verdict is None or cell.verdict is verdict]


def _near(cell: Comparison) -> str:
    return f"within {_margin(cell)} of" if cell.ratio is not None else f"no farther than {_margin(cell)} from"


def _within(metrics: Sequence[Sequence[Series]]) -> Iterator[str]:
    first = metrics[0][0]
    cells = [cell for cell in first.cells if cell.verdict is Verdict.EQUIVALENT]
    if not cells:
        return
    place = _at_levels(first, cells)
    if first.range in (Range.FROM, Range.UP_TO):
        axis, ends = _short(first.axis or ""), [level_of(cell, first.axis) for cell in (first.cells[0], first.cells[-1])]
        place = (
            f" from {axis} {level_of(cells[0], first.axis)} on (to {ends[1]}, the largest measured)"
            if first.range is Range.FROM
            else f" up to {axis} {level_of(cells[-1], first.axis)} (from {ends[0]}, the smallest measured)"
        )
    names = joined([_metric(alike[0].cells[0]) for alike in metrics])
    yield f"{names} {_near(cells[0])} {first.contrast.against}{place}"


def _beyond(metrics: Sequence[Sequence[Series]]) -> Iterator[str]:
    first = metrics[0][0]
    cells = [cell for cell in first.cells if cell.verdict is Verdict.DIFFERENT]
    if not cells:
        return
    amounts: dict[str, list[str]] = {}
    for alike in metrics:
        amounts.setdefault(_amount(_cells(alike, Verdict.DIFFERENT)), []).append(_metric(alike[0].cells[0]))
    whose = joined([f"{amount} {first.contrast.against}'s {joined(names)}" for amount, names in amounts.items()])
    it = joined([f"{amount} it{f' for {joined(names)}' if len(amounts) > 1 else ''}" for amount, names in amounts.items()])
    rest = [cell for cell in first.cells if cell.verdict is not Verdict.EQUIVALENT]
    if len(cells) == len(first.cells):
        yield f"{whose}{_at_levels(first, cells)}"
    elif first.range in (Range.FROM, Range.UP_TO) and len(rest) == len(cells):
        yield f"{'below' if first.range is Range.FROM else 'above'} that {it}"
    elif any(cell.verdict is Verdict.EQUIVALENT for cell in first.cells):
        yield f"{it}{_at_levels(first, cells)}"
    else:
        yield f"{whose}{_at_levels(first, cells)}"


def _undecided(series: Series) -> Iterator[str]:
    cells = [cell for cell in series.cells if cell.verdict is Verdict.INCONCLUSIVE]
    if cells:
        yield f"inconclusive{_at_levels(series, cells)}"


def _at_levels(series: Series, cells: Sequence[Comparison]) -> str:
    """``at every payload measured (500B to 16MiB)``, ``at payload 500B and 1MiB``; empty without an axis."""
    if series.axis is None:
        return ""
    levels = [level_of(cell, series.axis) for cell in cells]
    if len(cells) == len(series.cells) > 2:
        return f" at every {_short(series.axis)} measured ({levels[0]} to {levels[-1]})"
    return f" at {_short(series.axis)} {joined(levels)}"


def _amount(cells: Sequence[Comparison]) -> str:
    """Return such as ``0.61 to 0.73 of`` or ``2.1 times``; on scales without ratios, the effect."""
    ratios = [cell.ratio for cell in cells]
    if any(ratio is None for ratio in ratios):
        return f"different ({joined([effect_text(cell) for cell in cells])}) from"
    low, high = min(filter(None, ratios), default=0.0), max(filter(None, ratios), default=0.0)
    return f"{numbers(low, high)} {'of' if high < 1 else 'times'}"


def numbers(low: float, high: float) -> str:
    """Return such as ``0.61 to 0.73``, or one number if both have the same digits."""
    ends = list(dict.fromkeys(_ratio(end) for end in (low, high)))
    return " to ".join(ends)


def _ratio(value: float) -> str:
    if 0.095 <= value < 9.995:
        return f"{value:.2f}"
    return f"{value:#.2g}".removesuffix(".") if value < 99.5 else f"{value:,.0f}"


def _margin(cell: Comparison) -> str:
    if cell.effect is None or cell.effect.name != "difference":
        return share(cell.margin)
    return f"{cell.effect.margin:g} {cell.unit}".rstrip(" 1")


def _metric(cell: Comparison) -> str:
    return metric_title(cell.metric, cell.host, cell.direction)


def metric_of(rule: Rule) -> str:
    """Return the metric of a rule in words, with its place."""
    return _metric(rule.comparisons[0]) if rule.comparisons else rule.metric


def _short(factor: str) -> str:
    return factor.rpartition(".")[2]


def kinds(cells: Sequence[Comparison]) -> tuple[Kind, ...]:
    """Return the cautions of all cells, each once."""
    return tuple(dict.fromkeys(caution.kind for cell in cells for caution in cell.cautions))


def evidence(rule: Rule) -> str:
    """Return such as ``ratio 0.98 to 1.02 [0.95, 1.05] in 3 cells; 10 runs on each side; p 0.012``."""
    parts = [_span(span) for span in (rule.within, rule.beyond) if span is not None]
    effect = rule.comparisons[0].effect if rule.comparisons else None
    parts[:1] = [f"{effect.name.replace('_', ' ') if effect else 'ratio'} {part}" for part in parts[:1]]
    least, most = rule.runs
    of = "on each side" if rule.topic is not Topic.FITS else f"at each of {rule.cells} numbers of pairs"
    parts.append(f"{least if least == most else f'{least} to {most}'} runs {of}")
    if rule.p_value is not None:
        shown = p_text(rule.p_value)
        parts.append(f"p {shown} after correction")
    return "; ".join(parts)


def _span(span: Span) -> str:
    bounds = f" [{_ratio(span.low)}, {_ratio(span.high)}]" if span.low is not None and span.high is not None else ""
    return f"{numbers(span.least, span.most)}{bounds} in {span.cells} cell{'s' if span.cells > 1 else ''}"


def contradiction_texts(contradiction: Contradiction) -> tuple[str, ...]:
    """Return the contradiction in a sentence, and its evidence."""
    metric = _metric(contradiction.equivalent[0].comparison)
    return (
        f"{contrast_text(contradiction.contrast)}: {metric} is equivalent in one of the results and different in another. "
        "Something that neither study varies differs between them",
        *(_shown_by(shown, "equivalent") for shown in contradiction.equivalent),
        *(_shown_by(shown, "different") for shown in contradiction.different),
    )


def _shown_by(evidence: Evidence, verdict: str) -> str:
    """Return such as ``results/a: equivalent at payload 500B, ratio 1.01 [0.99, 1.03], 10 runs on each side``."""
    of = evidence.comparison
    where = f" at {cell_title(of.cell)}" if of.cell else ""
    effect = of.effect.name.replace("_", " ") if of.effect else "ratio"
    value, interval = (of.effect.value, of.effect.interval) if of.effect else (of.ratio, of.ratio_interval)
    bounds = f" [{_ratio(interval.low)}, {_ratio(interval.high)}]" if interval is not None else ""
    amount = "" if value is None else f", {effect} {_ratio(value)}{bounds}"
    return f"{evidence.source}: {verdict}{where}{amount}, {values(of)} runs on each side"


def contrast_text(contrast: Contrast) -> str:
    """Return such as ``virtio against physical``, ``offload off against offload on, on virtio``."""
    return f"{contrast.subject} against {contrast.against}{f', on {contrast.testbed}' if contrast.testbed else ''}"


def open_text(metric: Open) -> str:
    """Return a line about an inconclusive metric and what would decide it."""
    places = [place for place in metric.places if place]
    where = f" ({_few_of(places)})" if places else ""
    now = f"{metric.runs} run{'' if metric.runs == 1 else 's'} now" + (", too few for a verdict" if metric.few else "")
    if metric.replicates is None:
        return f"{metric.metric}{where}: {now}; {metric.reason}"
    first = f"{metric.first} runs of each cell would decide the first, " if metric.first != metric.replicates else ""
    also = f"; in {metric.never} cell{'s' if metric.never > 1 else ''} {metric.reason}" if metric.never else ""
    what = "all" if first else "runs of each cell would decide"
    return f"{metric.metric}{where}: {now}; about {first}{metric.replicates} {what}{also}"


MOST_PLACES = 3


def _few_of(places: Sequence[str]) -> str:
    more = f"; {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
    return "; ".join(places[:MOST_PLACES]) + more
