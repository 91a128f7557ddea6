"""How many fit, as a section: the statements, a picture for each combination of levels, and the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from markupsafe import Markup

from twinbed.analyses.capacity.plot import NO_INTERVAL, capacity_plot, interval_text
from twinbed.analyses.capacity.result import Capacities, LevelCapacity
from twinbed.contracts.analysis import Part, Section
from twinbed.model.run import level_text
from twinbed.render import plots
from twinbed.render.html import html, notes
from twinbed.render.tabular import Tabular
from twinbed.show.numbers import bounds, figure, percent
from twinbed.show.quantities import NONE, UnitScale, share, unit_scale
from twinbed.show.words import cell_title, heading, metric_name

MOST_FIGURES = 12
"""Combinations of levels that are drawn; the table has the others too."""
NAMED = ("", "/s", "1")
"""Units that a metric's name says itself."""


def section(capacities: Capacities) -> Section:
    """The statements, with what they rest on."""
    first, *rest = _statements(capacities)
    said = " ".join(f"{heading(each)}." for each in (first, *rest))
    values = [value for group in capacities.groups for step in group.steps for value in step.values]
    table = _table(capacities, unit_scale(capacities.unit, values))
    part = Part(capacities.response, "tab-fitting", f"How many fit: {_objective(capacities)}", said, table)
    return Section(
        "fitting",
        f"How many fit: {_objective(capacities)}",
        lambda: notes([f"{heading(each)}." for each in rest]) + Markup().join(_sections(capacities)),
        (part,),
        lede=f"{heading(first)}.",
        kicker=f"{share(capacities.confidence)} sure of what is named",
    )


def _statements(capacities: Capacities) -> list[str]:
    return [f"{_where(group)}{group.statement}" for group in capacities.groups]


def _sections(capacities: Capacities) -> Iterator[Markup]:
    values = [value for group in capacities.groups for step in group.steps for value in step.values]
    scale = unit_scale(capacities.unit, values)
    drawn = Markup().join(_figure(capacities, group, scale) for group in capacities.groups[:MOST_FIGURES])
    undrawn = len(capacities.groups) - MOST_FIGURES
    more = notes([f"The first {MOST_FIGURES} of {len(capacities.groups)} combinations are drawn."] if undrawn > 0 else [])
    yield html(
        "<section><h2>Each number of {}s that was tested</h2><p>Between them, and above the"
        ' largest, nothing is said.</p><div class="plots">{}</div>{}</section>',
        capacities.one,
        drawn,
        more,
    )
    yield html("<section><h2>The numbers</h2>{}</section>", _table(capacities, scale).as_html())


def _figure(capacities: Capacities, group: LevelCapacity, scale: UnitScale) -> Markup:
    named = f"{metric_name(capacities.response)}{f' per {capacities.one}' if capacities.per_pair else ''}"
    unit = f" [{scale.unit}]" if scale.unit not in NAMED else ""
    held = f" and the mean at 1 {capacities.one}" if group.single is not None else ""
    interval = interval_text(capacities, group)
    shaded = f"nothing is shaded: {interval}" if interval == NO_INTERVAL else f"shaded: {interval}"
    caption = (
        f"{heading(f'{_where(group)}{named}')}: runs, means with intervals; dashed: what the objective demands{held}; {shaded}."
    )
    drawn = plots.svg(capacity_plot(capacities, group, scale, f"{named}{unit}"), f"{caption} The table has the numbers.")
    return html("<figure><figcaption>{}</figcaption>{}</figure>", caption, drawn)


def _objective(capacities: Capacities) -> str:
    return capacities.objective.replace(capacities.response, metric_name(capacities.response))


def _where(group: LevelCapacity) -> str:
    return f"{cell_title(group.levels)}: " if group.levels else ""


def _sure(share: float) -> str | None:
    """Never all of it: a test leaves a rest."""
    return ">99.99 %" if share > 0.9999 else percent(share)


def _table(capacities: Capacities, scale: UnitScale) -> Tabular:
    names = [name.rpartition(".")[2] for name in capacities.groups[0].levels]
    unit = f" ({scale.unit})" if scale.unit not in NAMED else ""
    heads = (*names, f"{capacities.one}s", "runs", f"mean{unit}", "interval", "monotone", "bound", "keeps", "fails")
    rows = (
        (
            *(level_text(level) for level in group.levels.values()),
            str(step.n),
            str(len(step.values)),
            figure(step.mean / scale.factor),
            bounds(step.interval.low / scale.factor, step.interval.high / scale.factor) if len(step.values) > 1 else NONE,
            figure(step.monotone / scale.factor),
            figure(group.bound / scale.factor),
            _sure(step.keeps),
            _sure(step.fails),
        )
        for group, step in chain.from_iterable(((group, step) for step in group.steps) for group in capacities.groups)
    )
    caption = (
        f"{heading(_objective(capacities))}. Keeps: how sure it is that this and all smaller numbers keep it; fails: that"
        " this and all larger ones do not. Monotone: the means made to worsen with N."
    )
    return Tabular(f"Each number of {capacities.one}s", caption, heads, tuple(rows), texts=len(names) or 1)
