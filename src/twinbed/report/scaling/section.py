"""The part of the page on how many fit: what to do, what is known, rates and losses over the number of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from statistics import fmean

from markupsafe import Markup

from twinbed.analyses.contention.page import detector_figures
from twinbed.analyses.contention.result import Contention
from twinbed.analyses.contention.sentences import sentences
from twinbed.model.run import level_text
from twinbed.model.tables import TESTBED
from twinbed.render import plots
from twinbed.render.html import html, notes
from twinbed.render.over_n import Line, Panel, over_n
from twinbed.report.scaling.result import AtN, LevelScaling, Scaling
from twinbed.report.scaling.words import rate_scale, recommendations, statements, tables
from twinbed.show.quantities import share, unit_scale
from twinbed.show.words import cell_title, heading, metric_name

MOST_PANELS = 6
"""Panels in a figure; the table has the rest."""
MOST_DETECTORS = 2
"""Combinations of levels whose detector is drawn; the sentences are of all."""
NAMED = ("", "/s")
"""Units that a metric's name says itself."""
Held = Sequence[tuple[int, float]]


def scaling_section(scaling: Scaling | None) -> Iterator[Markup]:
    """The section; nothing where the number of pairs does not vary."""
    if scaling is None:
        return
    yield Markup('<section id="fitting"><h2>How many fit</h2>')
    yield Markup().join(html("<p><strong>{}.</strong></p>", text) for text in recommendations(scaling))
    yield html('<div class="plots">{}</div>', Markup().join(_figures(scaling)))
    yield html(
        '<ul class="notes">{}</ul>',
        Markup().join(html("<li>{}</li>", text) for text in statements(scaling)),
    )
    yield Markup(
        "<p>Each number is tested by itself, from the least on, and none that was not tested is named. Other objectives: "
        "<code>twinbed analyse capacity</code>.</p>"
    )
    if scaling.contention is not None:
        yield Markup("<h3>Was a run contended?</h3>")
        yield notes(list(sentences(scaling.contention)))
        yield html('<div class="plots">{}</div>', Markup().join(_detectors(scaling.contention)))
    for table in tables(scaling):
        yield html("<h3>{}</h3>{}", table.title, table.as_html())
    yield Markup("</section>")


def _figures(scaling: Scaling) -> Iterator[Markup]:
    scale, many, name = rate_scale(scaling), f"{scaling.one}s", metric_name(scaling.rate)
    together = unit_scale(
        scaling.unit, [point.n * fmean(point.rates) for group in scaling.groups for point in group.points if point.rates]
    )

    def single(group: LevelScaling) -> Held:
        return () if group.single is None else [(at, group.single / scale.factor) for at in (1, group.rated)]

    def times(group: LevelScaling) -> Held:
        # On a logarithmic axis, where 0 has no place.
        return [(at, at * group.single / together.factor) for at in (1, group.rated)] if group.single else ()

    def allowed(group: LevelScaling) -> Held:
        return [(at, 100 * (scaling.most_loss or 0.0)) for at in (group.points[0].n, group.tested)]

    unit = f" [{scale.unit}]" if scale.unit not in NAMED else ""
    spec = over_n(
        _panels(scaling, lambda at: [rate / scale.factor for rate in at.rates], single), many, f"{name} per {scaling.one}{unit}"
    )
    yield _figure(
        spec, f"{heading(name)} of a {scaling.one}, every run and the mean; dashed: of a single {scaling.one}.", "of each"
    )
    unit = f" [{together.unit}]" if together.unit not in NAMED else ""
    spec = over_n(
        _panels(scaling, lambda at: [at.n * rate / together.factor for rate in at.rates if rate > 0], times),
        many,
        f"{name}, all {many}{unit}",
        logarithmic=True,
    )
    yield _figure(spec, f"{heading(name)} of all {many} together; dashed: so many times the single {scaling.one}.", "together")
    if scaling.most_loss is not None:
        spec = over_n(_panels(scaling, lambda at: [100 * loss for loss in at.losses], allowed), many, "loss [%]")
        yield _figure(spec, f"Loss, every run and the mean; dashed: {share(scaling.most_loss)}.", "loss")
    if scaling.curves:
        caption = (
            f"Second differences of LOESS curves over N, each scaled to at most 1: where one crosses 0 its slope turns. "
            f"Idle time is mirrored. If the {name} turns first, the machine's metrics come too late to tell."
        )
        yield _figure(
            over_n(list(islice(_bends(scaling), MOST_PANELS)), many, "curvature, scaled", points=False), caption, "curvature"
        )


def _detectors(contention: Contention) -> Iterator[Markup]:
    for group in islice((group for group in contention.groups if group.detector is not None), MOST_DETECTORS):
        if group.detector is not None:
            yield from detector_figures(contention, group, group.detector)


def _panels(scaling: Scaling, values: Callable[[AtN], Sequence[float]], held: Callable[[LevelScaling], Held]) -> list[Panel]:
    """One for each combination of the levels other than the testbed's."""
    by_title: dict[str, list[Line]] = {}
    for group in scaling.groups:
        drawn = [(point.n, values(point)) for point in group.points]
        line = Line(level_text(group.levels.get(TESTBED, "")), [each for each in drawn if each[1]], held(group))
        rest = {name: level for name, level in group.levels.items() if name != TESTBED}
        if line.values:
            by_title.setdefault(cell_title(rest) if rest else "", []).append(line)
    return [Panel(title, lines) for title, lines in islice(by_title.items(), MOST_PANELS)]


def _bends(scaling: Scaling) -> Iterator[Panel]:
    for group in scaling.groups:
        rows = [row for row in scaling.curves if all(row.levels[name] == level for name, level in group.levels.items())]
        names = dict.fromkeys(row.metric for row in rows)
        lines = []
        for name in names:
            of = [(row.n, [row.curvature]) for row in rows if row.metric == name and row.curvature is not None]
            mirrored = " (mirrored)" if any(row.mirrored for row in rows if row.metric == name) else ""
            lines.append(Line(f"{metric_name(name)}{mirrored}", of, [(of[0][0], 0.0), (of[-1][0], 0.0)]))
        if lines:
            yield Panel(cell_title(group.levels) if group.levels else "", lines)


def _figure(spec: plots.Spec, caption: str, name: str) -> Markup:
    drawn = plots.svg(spec, f"{caption} The table has the numbers.", f"how many fit {name}")
    return html("<figure><figcaption>{}</figcaption>{}</figure>", caption, drawn)
