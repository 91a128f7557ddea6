"""What a page shows of comparisons: the verdicts, each layer's metrics, and how to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from twinbed.analyses.compare.grid import grid, spread
from twinbed.analyses.compare.measured import measured
from twinbed.analyses.compare.plots import cells_left_out, distribution, ratios
from twinbed.analyses.compare.result import Comparison, Comparisons, Estimate
from twinbed.analyses.compare.variation import other_estimates
from twinbed.analyses.compare.words import SYMBOLS, Summary, explanation, finding, held, summaries, varies_finding
from twinbed.model.result import Verdict
from twinbed.render import plots
from twinbed.render.quantities import UnitScale, number, ratio, share, unit_scale
from twinbed.render.words import cell_title, heading, look_sentence, metric_name, metric_title, place

MOST_ROWS = 4000
"""Rows of the table of other metrics in a layer; a page that takes seconds to open is not read."""


MOST_FINDINGS = 6


EFFECT_CAPTIONS = {
    "difference": "Mean ± {interval} interval, standard deviation (sd), and the difference from {reference} with its interval.",
    "cliffs_delta": "Median, and Cliff's delta against {reference} with its interval: pairs above less pairs below.",
    "total_variation": "The commonest value, and the total variation (TV) from {reference}: half the differences of shares.",
}


def verdict_mark(verdict: Verdict, text: str | None = None) -> str:
    return (
        f'<span class="verdict {verdict}"><span aria-hidden="true">{SYMBOLS[verdict]}</span> {escape(text or verdict)}</span>'
    )


def lede(found: Sequence[Summary], reference: str | None) -> str:
    """The verdict on all testbeds in one or two sentences."""
    margin = share(found[0].margin)
    texts = {
        Verdict.EQUIVALENT: "{} equivalent to {} within {} in everything compared.",
        Verdict.DIFFERENT: "{} not: at least one headline metric is off by more than {}.",
        Verdict.INCONCLUSIVE: "{} undecided: nothing is shown to be off by more than {}, but not all is shown to be within it.",
    }
    parts = []
    for verdict in (Verdict.EQUIVALENT, Verdict.DIFFERENT, Verdict.INCONCLUSIVE):
        names = [each.testbed for each in found if each.verdict is verdict]
        if names:
            who = f"{listed(names)} {'is' if len(names) == 1 else 'are'}"
            parts.append(texts[verdict].format(who, *([reference, margin] if verdict is Verdict.EQUIVALENT else [margin])))
    if not any(each.verdict is Verdict.EQUIVALENT for each in found):
        parts[0] = parts[0].replace(" not:", f" not equivalent to {reference}:", 1)
    return " ".join(parts)


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def verdicts(result: Comparisons) -> Iterator[str]:
    yield '<section id="verdict"><h2>Verdict</h2>'
    if result.cautions:
        kinds = len({each.kind for each in result.cautions})
        yield f'<p>Read it with the <a href="#cautions">{kinds} caution{"s" if kinds > 1 else ""}</a>.</p>'
    if result.look:
        yield f"<p>{escape(look_sentence(result.look))}</p>"
    if not result.comparisons:
        yield from _measured(result)
    yield '<div class="cards">'
    for summary in summaries(result):
        yield f'<article class="card {summary.verdict}"><h3>{escape(summary.testbed)} {verdict_mark(summary.verdict)}</h3>'
        yield f"<p>{escape(summary.sentence)}</p>"
        yield from _findings("Differs", sorted(summary.different, key=_size, reverse=True), finding)
        yield from _findings("Undecided", summary.inconclusive, lambda each: f"{finding(each)}: {explanation(each)}")
        yield from _findings("Equivalent", summary.equivalent, finding)
        if summary.spread:
            yield f"<p>{escape(summary.spread_sentence)}</p>"
            yield from _findings("Spread", summary.spread, varies_finding)
        if summary.advice:
            yield (
                '<div class="do"><h4>What to do</h4>' + "".join(f"<p>{escape(text)}</p>" for text in summary.advice) + "</div>"
            )
        yield "</article>"
    yield "</div></section>"


def _measured(result: Comparisons) -> Iterator[str]:
    for metric in measured(result):
        rows = "".join(
            f'<tr><th scope="row">{escape(cell)}</th><td>{escape(testbed)}</td><td>{escape(text)}</td><td>{count}</td></tr>'
            for cell, testbed, text, count in metric.rows
        )
        heads = "".join(f'<th scope="col">{head}</th>' for head in ("Cell", "Testbed", "Mean ± interval", "n"))
        yield f'<h3>{escape(heading(metric.metric))}</h3><div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        yield f"<tbody>{rows}</tbody></table></div>"


def _size(each: Comparison) -> float:
    return max(each.ratio, 1 / each.ratio) if each.ratio else float("inf")


def _findings(title: str, comparisons: Sequence[Comparison], say: Callable[[Comparison], str]) -> Iterator[str]:
    if not comparisons:
        return
    items = "".join(f"<li>{escape(say(each))}</li>" for each in comparisons[:MOST_FINDINGS])
    rest = len(comparisons) - MOST_FINDINGS
    yield f"<h4>{title}</h4><ul>{items}" + (f"<li>and {rest} more below</li>" if rest > 0 else "") + "</ul>"


def layer_names(result: Comparisons) -> list[str]:
    return list(dict.fromkeys(each.layer for each in result.comparisons))


Place = tuple[str, str, str]


def _place(each: Comparison) -> Place:
    return each.metric, each.host, each.direction


def headline_metric(comparisons: Sequence[Comparison]) -> Iterator[str]:
    first = comparisons[0]
    title = metric_title(*_place(first))
    yield f"<h3>{escape(heading(title))}</h3>"
    yield metric_table(comparisons)
    left_out = cells_left_out(comparisons)
    yield '<div class="plots">'
    means = any(found.mean is not None for each in comparisons for found in (each.estimate, each.reference_estimate))
    said = "Every replicate; the tick is the mean, the bar its interval." if means else "Every replicate."
    drawings = [(distribution(comparisons), said, "values")]
    if any(each.ratio is not None for each in comparisons):
        caption = f"Ratio to {first.reference} with its intervals; the band is the margin."
        drawings.append((ratios(comparisons), caption, f"ratio to {first.reference}"))
    for spec, caption, name in drawings:
        drawn = plots.svg(spec, f"{title}: {caption} The table above has the numbers.", f"{title} {name}")
        yield f"<figure><figcaption>{escape(caption)}</figcaption>{drawn}</figure>"
    yield "</div>"
    if left_out:
        yield f'<p class="note">{left_out} more cells are in the table only.</p>'
    yield from other_estimates(comparisons)


def metric_table(comparisons: Sequence[Comparison]) -> str:
    """As the field prints it: a row a cell, a column a testbed."""
    found = grid(comparisons)
    names = (f"{found.reference} (reference)", *found.testbeds)
    head = "".join(f'<th scope="col" class="number">{escape(name)}</th>' for name in names)
    rows = []
    for row in found.rows:
        one = next(each for each in row.comparisons if each is not None)
        cells = [
            f'<td class="number" data-label="{escape(names[0])}">{_mean(row.reference, one.reference_estimate, row.scale)}</td>'
        ]
        cells += [_compared(each, mean, row.scale) for each, mean in zip(row.comparisons, row.means, strict=True)]
        rows.append(f'<tr><th scope="row">{escape(row.cell)}</th>{"".join(cells)}</tr>')
    level = next((each.estimate.interval.level for each in comparisons if each.estimate.interval), 0.95)
    interval = share(round(level, 4))
    caption = f"Mean ± {interval} interval, standard deviation (sd), and the ratio to {found.reference} with its interval."
    effect = next((each.effect.name for each in comparisons if each.effect), "")
    caption = EFFECT_CAPTIONS.get(effect, caption).format(interval=interval, reference=found.reference)
    return (
        f'<div class="scroll"><table class="stack"><caption>{escape(caption)}</caption>'
        f'<thead><tr><th scope="col">Cell</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _mean(text: str, found: Estimate, scale: UnitScale) -> str:
    return f'<span>{escape(text)}</span><span class="ratio">{escape(spread(found, scale))}</span>'


def _compared(each: Comparison | None, mean: str, scale: UnitScale) -> str:
    if each is None:
        return "<td></td>"
    return (
        f'<td class="number" data-label="{escape(each.testbed)}">{_mean(mean, each.estimate, scale)}'
        f'<span class="ratio">{escape(held(each))}</span>'
        f'<span title="{escape(explanation(each))}">{verdict_mark(each.verdict)}</span></td>'
    )


def other_metrics(comparisons: Sequence[Comparison]) -> Iterator[str]:
    if not comparisons:
        return
    head = ("metric", "where", "cell", "testbed", "mean", "reference", "ratio", "verdict")
    columns = "".join(f'<th scope="col">{name}</th>' for name in head)
    yield f"<details><summary>All other metrics of this layer ({len(comparisons)} comparisons)</summary>"
    yield '<div class="scroll"><table class="sortable"><caption>Not headline metrics; corrected for their own number.</caption>'
    yield f"<thead><tr>{columns}</tr></thead><tbody>"
    yield from (_other(each) for each in comparisons[:MOST_ROWS])
    yield "</tbody></table></div>"
    if len(comparisons) > MOST_ROWS:
        yield f'<p class="note">The first {MOST_ROWS}; <code>twinbed report --csv</code> writes all.</p>'
    yield "</details>"


def _other(each: Comparison) -> str:
    scale = unit_scale(each.unit, [each.estimate.mean, each.reference_estimate.mean])

    def mean(found: Estimate) -> str:
        if found.mean is None:
            return '<td class="number" data-value="">no values</td>'
        text = f"{number(found.mean / scale.factor)} {scale.unit}".rstrip()
        return f'<td class="number" data-value="{found.mean}">{escape(text)}</td>'

    texts: Iterable[str] = (metric_name(each.metric), place(each.host, each.direction), cell_title(each.cell), each.testbed)
    value = "" if each.ratio is None else each.ratio
    return (
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in texts)}{mean(each.estimate)}{mean(each.reference_estimate)}"
        f'<td class="number" data-value="{value}">{escape(held(each))}</td><td>{verdict_mark(each.verdict)}</td></tr>'
    )


def method(result: Comparisons) -> str:
    first = next(iter(result.comparisons), None)
    margin = first.margin if first else 0.1
    level = first.ratio_interval.level if first and first.ratio_interval else 0.9
    alpha = share(round((1 - level) / 2, 4))
    between, wrong = f"{ratio(1 / (1 + margin))} and {ratio(1 + margin)}", f"at most {alpha}"
    meanings = [
        (Verdict.EQUIVALENT, f"the ratio is shown to lie between {between}; wrong {wrong} of the time"),
        (
            Verdict.DIFFERENT,
            f"the ratio is shown not to lie between {between}; the chance that any such claim is wrong is {wrong}",
        ),
        (
            Verdict.INCONCLUSIVE,
            "neither is shown; the reason is given, and the replicates that would decide where that is known",
        ),
    ]
    items = "".join(f"<dt>{verdict_mark(verdict)}</dt><dd>{escape(text)}</dd>" for verdict, text in meanings)
    return (
        f'<section id="method"><h2>How to read this</h2><dl>{items}</dl>'
        "<p>Ratios are of geometric means (Welch's t on logarithms; Fieller's interval where a value is 0). Equivalence is "
        "decided by two one-sided tests (Schuirmann 1987), difference by a two-sided test with Holm's correction over all "
        "headline comparisons. On an interval scale differences of means are compared, at a margin in the metric's unit; on an "
        "ordinal one Cliff's delta; of names the total variation. Spreads are compared by Bonett's test with Holm's "
        "correction, which agrees with the intervals of their ratio; Brown and Forsythe's test stands beside. Replicates are "
        "taken as independent; runs without values are left out, never counted as 0.</p>"
        "</section>"
    )
