"""Draw how many fit: the rate of a pair, the rate of all together, and loss, over the number of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from statistics import fmean

from twinbed.analyses.scaling.result import AtN, LevelScaling, Scaling
from twinbed.model.run import level_text
from twinbed.model.tables import TESTBED
from twinbed.render.over_n import Line, Panel, over_n
from twinbed.show.figure import Figure, Spec
from twinbed.show.quantities import UnitScale, share, unit_scale
from twinbed.show.words import cell_title, heading, metric_name

MOST_PANELS = 6
"""Panels in a figure; the table has the rest."""
NAMED = ("", "/s")
"""Units that a metric's name says itself."""
Held = Sequence[tuple[int, float]]


def scales(scaling: Scaling) -> tuple[UnitScale, UnitScale]:
    """Return the unit of a pair's rate, and that of all pairs together."""
    means = [(point.n, fmean(point.rates)) for group in scaling.groups for point in group.points if point.rates]
    return unit_scale(scaling.unit, [mean for _, mean in means]), unit_scale(scaling.unit, [n * mean for n, mean in means])


def figures(scaling: Scaling) -> Iterator[Figure]:
    """Yield the figures; loss only if it was measured."""
    many, name = f"{scaling.noun}s", metric_name(scaling.rate)
    caption = f"{heading(name)} of a {scaling.noun}: every run and the mean. Dashed: a single {scaling.noun}."
    yield Figure("how many fit of each", spec=partial(_single_rates, scaling), caption=caption)
    caption = f"{heading(name)} of all {many} together. Dashed: N times the single {scaling.noun}."
    yield Figure("how many fit together", spec=partial(_together, scaling), caption=caption)
    if scaling.most_loss is not None:
        caption = f"Loss: every run and the mean. Dashed: the limit of {share(scaling.most_loss)}."
        yield Figure("how many fit loss", spec=partial(_loss, scaling), caption=caption)


def _single_rates(scaling: Scaling) -> Spec:
    scale, _ = scales(scaling)

    def single(group: LevelScaling) -> Held:
        return () if group.single is None else [(at, group.single / scale.factor) for at in (1, group.rated)]

    panels = _panels(scaling, lambda at: [rate / scale.factor for rate in at.rates], single)
    return over_n(panels, f"{scaling.noun}s", f"{metric_name(scaling.rate)} per {scaling.noun}{_unit(scale)}")


def _together(scaling: Scaling) -> Spec:
    _, scale = scales(scaling)

    def times(group: LevelScaling) -> Held:
        # On a logarithmic axis, where 0 has no place.
        return [(at, at * group.single / scale.factor) for at in (1, group.rated)] if group.single else ()

    panels = _panels(scaling, lambda at: [at.n * rate / scale.factor for rate in at.rates if rate > 0], times)
    title = f"{metric_name(scaling.rate)}, all {scaling.noun}s{_unit(scale)}"
    return over_n(panels, f"{scaling.noun}s", title, logarithmic=True)


def _loss(scaling: Scaling) -> Spec:
    def allowed(group: LevelScaling) -> Held:
        return [(at, 100 * (scaling.most_loss or 0.0)) for at in (group.points[0].n, group.tested)]

    return over_n(_panels(scaling, lambda at: [100 * loss for loss in at.losses], allowed), f"{scaling.noun}s", "loss [%]")


def _unit(scale: UnitScale) -> str:
    return f" [{scale.unit}]" if scale.unit not in NAMED else ""


def _panels(scaling: Scaling, values: Callable[[AtN], Sequence[float]], held: Callable[[LevelScaling], Held]) -> list[Panel]:
    """Return a panel for each combination of the levels other than the testbed's."""
    by_title: dict[str, list[Line]] = {}
    for group in scaling.groups:
        drawn = [(point.n, values(point)) for point in group.points]
        line = Line(level_text(group.levels.get(TESTBED, "")), [point for point in drawn if point[1]], held(group))
        rest = {name: level for name, level in group.levels.items() if name != TESTBED}
        if line.values:
            by_title.setdefault(cell_title(rest) if rest else "", []).append(line)
    return [Panel(title, lines) for title, lines in islice(by_title.items(), MOST_PANELS)]
