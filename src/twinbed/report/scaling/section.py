"""The part of the page on how many fit: what to do, what is known, rates and losses over the number of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import islice
from statistics import fmean

from twinbed.analyses.contention.page import detector_figures
from twinbed.analyses.contention.result import Contention
from twinbed.analyses.contention.sentences import sentences
from twinbed.model.run import level_text
from twinbed.render import plots
from twinbed.render.html import notes
from twinbed.render.over_n import Line, Panel, over_n
from twinbed.render.quantities import share, unit_scale
from twinbed.render.words import cell_title, heading, metric_name
from twinbed.report.scaling.result import AtN, Group, Scaling
from twinbed.report.scaling.words import rate_scale, recommendations, statements, tables

MOST_PANELS = 6
"""In a figure; the table has the rest."""
MOST_DETECTORS = 2
"""Combinations of levels whose detector is drawn; the sentences are of all."""
NAMED = ("", "/s")
"""Units that a metric's name says itself."""
TESTBED = "testbed"
Held = Sequence[tuple[int, float]]


def scaling_section(found: Scaling | None) -> Iterator[str]:
    """The section; nothing where the number of pairs does not vary."""
    if found is None:
        return
    yield '<section id="fitting"><h2>How many fit</h2>'
    yield "".join(f"<p><strong>{escape(text)}.</strong></p>" for text in recommendations(found))
    yield f'<ul class="notes">{"".join(f"<li>{escape(text)}</li>" for text in statements(found))}</ul>'
    yield (
        "<p>Each number is tested by itself, from the least on, and none that was not tested is named. Other objectives: "
        "<code>twinbed analyse capacity</code>.</p>"
    )
    yield f'<div class="plots">{"".join(_figures(found))}</div>'
    if found.contention is not None:
        yield "<h3>Was a run contended?</h3>"
        yield notes(list(sentences(found.contention)))
        yield f'<div class="plots">{"".join(_detectors(found.contention))}</div>'
    for table in tables(found):
        yield f"<h3>{escape(table.title)}</h3>{table.as_html()}"
    yield "</section>"


def _figures(found: Scaling) -> Iterator[str]:
    scale, many, name = rate_scale(found), f"{found.one}s", metric_name(found.rate)
    together = unit_scale(found.unit, [point.n * fmean(point.rates) for group in found.groups for point in group.points])

    def single(group: Group) -> Held:
        return () if group.single is None else [(at, group.single / scale.factor) for at in (1, group.tested)]

    def times(group: Group) -> Held:
        # On a logarithmic axis, where 0 has no place.
        return [(at, at * group.single / together.factor) for at in (1, group.tested)] if group.single else ()

    def allowed(group: Group) -> Held:
        return [(at, 100 * (found.most_loss or 0.0)) for at in (group.points[0].n, group.tested)]

    unit = f" [{scale.unit}]" if scale.unit not in NAMED else ""
    spec = over_n(
        _panels(found, lambda at: [rate / scale.factor for rate in at.rates], single), many, f"{name} per {found.one}{unit}"
    )
    yield _figure(
        spec, f"{heading(name)} of a {found.one}, every run and the mean; dashed: of a single {found.one}.", "of each"
    )
    unit = f" [{together.unit}]" if together.unit not in NAMED else ""
    spec = over_n(
        _panels(found, lambda at: [at.n * rate / together.factor for rate in at.rates if rate > 0], times),
        many,
        f"{name}, all {many}{unit}",
        logarithmic=True,
    )
    yield _figure(spec, f"{heading(name)} of all {many} together; dashed: so many times the single {found.one}.", "together")
    if found.most_loss is not None:
        spec = over_n(_panels(found, lambda at: [100 * loss for loss in at.losses], allowed), many, "loss [%]")
        yield _figure(spec, f"Loss, every run and the mean; dashed: {share(found.most_loss)}.", "loss")
    if found.curves:
        caption = (
            f"Second differences of LOESS curves over N, each scaled to at most 1: where one crosses 0 its slope turns. "
            f"Idle time is mirrored. If the {name} turns first, the machine's metrics come too late to tell."
        )
        yield _figure(
            over_n(list(islice(_bends(found), MOST_PANELS)), many, "curvature, scaled", points=False), caption, "curvature"
        )


def _detectors(found: Contention) -> Iterator[str]:
    for group in islice((group for group in found.groups if group.told is not None), MOST_DETECTORS):
        if group.told is not None:
            yield from detector_figures(found, group, group.told)


def _panels(found: Scaling, values: Callable[[AtN], Sequence[float]], held: Callable[[Group], Held]) -> list[Panel]:
    """One for each combination of the levels other than the testbed's."""
    by_title: dict[str, list[Line]] = {}
    for group in found.groups:
        drawn = [(point.n, values(point)) for point in group.points]
        line = Line(level_text(group.levels.get(TESTBED, "")), [each for each in drawn if each[1]], held(group))
        rest = {name: level for name, level in group.levels.items() if name != TESTBED}
        if line.values:
            by_title.setdefault(cell_title(rest) if rest else "", []).append(line)
    return [Panel(title, lines) for title, lines in islice(by_title.items(), MOST_PANELS)]


def _bends(found: Scaling) -> Iterator[Panel]:
    for group in found.groups:
        rows = [row for row in found.curves if all(row[name] == level for name, level in group.levels.items())]
        names = dict.fromkeys(str(row["metric"]) for row in rows)
        lines = []
        for name in names:
            of = [(row["n"], [row["curvature"]]) for row in rows if row["metric"] == name and row["curvature"] is not None]
            mirrored = " (mirrored)" if any(row["mirrored"] for row in rows if row["metric"] == name) else ""
            lines.append(Line(f"{metric_name(name)}{mirrored}", of, [(of[0][0], 0.0), (of[-1][0], 0.0)]))
        if lines:
            yield Panel(cell_title(group.levels) if group.levels else "", lines)


def _figure(spec: plots.Spec, caption: str, name: str) -> str:
    drawn = plots.svg(spec, f"{caption} The table has the numbers.", f"how many fit {name}")
    return f"<figure><figcaption>{escape(caption)}</figcaption>{drawn}</figure>"
