"""Write how many fit as a section: the statements, a figure for each combination of levels, and the numbers."""

from __future__ import annotations

from functools import partial

from twinbed.analyses.capacity.draw import capacity_plot
from twinbed.analyses.capacity.result import NO_INTERVAL, Capacities, LevelCapacity, Tested
from twinbed.show.figure import Figure
from twinbed.show.numbers import bounds, figure, percent
from twinbed.show.quantities import UnitScale, share, unit_scale
from twinbed.show.section import Section
from twinbed.show.table import Column, Of, Table, cell_columns
from twinbed.show.words import cell_title, heading, metric_name

MOST_FIGURES = 12
"""Combinations of levels that are drawn; the table has the others too."""
NAMED = ("", "/s", "1")
"""Units that a metric's name says itself."""


def section(capacities: Capacities) -> Section:
    """Return the statements, then figures and the numbers behind them."""
    objective = capacities.objective.replace(capacities.response, metric_name(capacities.response))
    first, *rest = (heading(f"{_where(group)}{objective}: {group.statement}.") for group in capacities.groups)
    scale = unit_scale(capacities.unit, [value for group in capacities.groups for step in group.steps for value in step.values])
    undrawn = len(capacities.groups) - MOST_FIGURES
    more = f"The first {MOST_FIGURES} of {len(capacities.groups)} combinations are drawn."
    return Section(
        "fitting",
        f"How many fit: {objective}",
        first,
        (
            tuple(rest),
            *(_figure(capacities, group, scale) for group in capacities.groups[:MOST_FIGURES]),
            (more,) if undrawn > 0 else (),
            _statements(capacities),
            _steps(capacities, scale, objective),
        ),
        kicker=f"Confidence {share(capacities.confidence)}",
    )


def _figure(capacities: Capacities, group: LevelCapacity, scale: UnitScale) -> Figure:
    named = f"{metric_name(capacities.response)}{f' per {capacities.noun}' if capacities.per_pair else ''}"
    unit = f" [{scale.unit}]" if scale.unit not in NAMED else ""
    held = f" and the mean at 1 {capacities.noun}" if group.single is not None else ""
    interval = group.interval(capacities.noun)
    shaded = f"Nothing is shaded: {interval}" if interval == NO_INTERVAL else f"Shaded: {interval}"
    title = heading(f"{_where(group)}{named}")
    caption = f"{title}: runs, and means with intervals. Dashed: the bound of the objective{held}. {shaded}."
    spec = partial(capacity_plot, capacities, group, scale, f"{named}{unit}")
    return Figure(f"capacity {cell_title(group.levels)}", spec=spec, caption=caption)


def _where(group: LevelCapacity) -> str:
    return f"{cell_title(group.levels)}: " if group.levels else ""


def _statements(capacities: Capacities) -> Table:
    columns = (
        *(column for column in cell_columns(capacities.groups, lambda group: group.levels) if column.key),
        Column("objective", value=lambda _: capacities.objective),
        *(Column(name) for name in ("statement", "keeps", "fails", "low", "high", "knee")),
        Column("confidence", value=lambda _: capacities.confidence),
    )
    return Table("statements", "", "", columns, capacities.groups)


def _steps(capacities: Capacities, scale: UnitScale, objective: str) -> Table:
    records = [Of(group, step) for group in capacities.groups for step in group.steps]
    unit = scale.unit if scale.unit not in NAMED else ""

    def scaled(value: float) -> str | None:
        return figure(value / scale.factor)

    def interval(record: Of[LevelCapacity, Tested]) -> str | None:
        low, high = record.item.interval.low, record.item.interval.high
        return bounds(low / scale.factor, high / scale.factor) if len(record.item.values) > 1 else None

    columns = (
        *cell_columns(records, lambda record: record.group.levels),
        Column("n", f"{capacities.noun}s", format="d", value="item.n"),
        Column("runs", "runs", format="d", value=lambda record: len(record.item.values)),
        Column("mean", "mean", unit, scaled, value="item.mean"),
        Column("low", value="item.interval.low"),
        Column("high", value="item.interval.high"),
        Column(head="interval", format="s", value=interval),
        Column("monotone", "monotone", format=scaled, value="item.monotone"),
        Column("bound", "bound", format=scaled, value="group.bound"),
        Column("keeps", "keeps", format=_sure, value="item.keeps"),
        Column("fails", "fails", format=_sure, value="item.fails"),
    )
    caption = (
        f"{heading(objective)}. Keeps: the confidence that this and all smaller numbers keep the objective. Fails: the"
        f" confidence that this and all larger numbers fail it. Monotone: the means made to worsen with N. Nothing is known"
        " between these numbers, or above the largest."
    )
    return Table("steps", f"Each number of {capacities.noun}s", caption, columns, records)


def _sure(share: float) -> str | None:
    """Return a confidence, which is never 100 %."""
    return ">99.99 %" if share > 0.9999 else percent(share)
