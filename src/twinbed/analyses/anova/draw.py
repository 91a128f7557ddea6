"""Draw an analysis of variance: effects, interactions, differences and residuals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import fmean

from twinbed.analyses.anova.result import Anova, Difference, Effect, term_text
from twinbed.model.result import Interval
from twinbed.model.run import level_text
from twinbed.observations import diagnostics
from twinbed.observations.diagnostics import Bar, Point
from twinbed.show.figure import Figure, Spec
from twinbed.show.quantities import UnitScale, unit_scale
from twinbed.show.words import metric_name

MOST_INTERACTIONS = 3
"""Pairs of factors that are drawn, the strongest first."""
MOST_BARS = 45
"""Differences in a plot: all pairs of ten levels. A factor with more levels has them in the table only."""


def title(anova: Anova) -> str:
    """Return ``loss percentage``, with its place."""
    name, *where = anova.response.split("@")
    return f"{metric_name(name)} ({', '.join(where)})" if where else metric_name(name)


def unit_of(anova: Anova) -> UnitScale:
    """Return the unit that means are shown in."""
    if anova.logarithm:
        return unit_scale(anova.unit, [math.exp(mean.mean) for mean in anova.means])
    return unit_scale(anova.unit, [mean.mean for mean in anova.means])


def pair_text(difference: Difference) -> str:
    """Return ``container → e1000``."""
    return f"{level_text(difference.first)} → {level_text(difference.second)}"


def _figure(anova: Anova, spec: Callable[[], Spec], caption: str, name: str) -> Figure:
    return Figure(f"{title(anova)} {name}", f"{caption} The tables have the numbers.", spec, caption=caption)


def _unit(anova: Anova) -> str:
    unit = unit_of(anova).unit
    return f" [{unit}]" if unit else ""


def _value(anova: Anova, value: float) -> float:
    """Return an effect or difference as shown: a factor if logarithms were analysed."""
    return math.exp(value) if anova.logarithm else value / unit_of(anova).factor


def _bar(anova: Anova, name: str, value: float, own: Interval | None, together: Interval | None = None) -> Bar:
    ends = [_value(anova, end) for interval in (own, together) if interval for end in (interval.low, interval.high)]
    low, high = ends[:2] if own else (None, None)
    wide_low, wide_high = ends[-2:] if together else (None, None)
    return Bar(name, _value(anova, value), low, high, wide_low, wide_high)


def effects(anova: Anova, most_bars: int) -> Iterator[Figure]:
    """Yield the effects of each factor's levels."""
    main = [effect for effect in anova.effects if len(effect.term) == 1]
    for factor in anova.factors:
        of: list[Effect] = [effect for effect in main if effect.term == (factor,)]
        bars = [_bar(anova, level_text(effect.levels[0]), effect.estimate, effect.interval) for effect in of]
        if 0 < len(bars) <= most_bars:
            axis = f"factor of {title(anova)}" if anova.logarithm else f"effect on {title(anova)}{_unit(anova)}"
            spec = partial(diagnostics.intervals, bars, axis, 1.0 if anova.logarithm else 0.0)
            caption = f"Effects of {factor} with intervals. Coloured: the interval excludes no effect."
            yield _figure(anova, spec, caption, f"effects of {factor}")


def interactions(anova: Anova) -> Iterator[Figure]:
    """Yield the strongest interactions of two factors."""
    strength = {line.term: line.share for line in anova.lines if len(line.term) == 2}
    for pair in sorted(strength, key=lambda term: -strength[term])[:MOST_INTERACTIONS]:
        points = list(_points(anova, pair))
        spec = partial(diagnostics.interaction, points, pair[0], f"{title(anova)}{_unit(anova)}", anova.logarithm)
        caption = f"{term_text(pair)}: means of cells, a line for each {pair[1]}. Parallel lines mean no interaction."
        yield _figure(anova, spec, caption, f"means by {' and '.join(pair)}")


def _points(anova: Anova, pair: tuple[str, ...]) -> Iterator[Point]:
    """Yield the means of the cells of two factors, over equally weighted cells of the other factors."""
    at = [list(anova.factors).index(name) for name in pair]
    factor = unit_of(anova).factor

    def shown(value: float) -> float:
        return (math.exp(value) if anova.logarithm else value) / factor

    for first, second in itertools.product(*(anova.factors[name] for name in pair)):
        of = [mean for mean in anova.cell_means if (mean.levels[at[0]], mean.levels[at[1]]) == (first, second)]
        if not of:
            continue
        interval = of[0].interval if len(of) == 1 else None
        bounds = (shown(interval.low), shown(interval.high)) if interval else (None, None)
        yield Point(level_text(second), level_text(first), shown(fmean(mean.mean for mean in of)), *bounds)


def differences(anova: Anova, of: Sequence[Difference], most_bars: int) -> Figure:
    """Return the differences of one factor, of neighbours or of all pairs."""
    bars = [
        _bar(anova, pair_text(difference), difference.estimate, difference.interval, difference.simultaneous)
        for difference in of[:most_bars]
    ]
    axis = "ratio" if anova.logarithm else f"difference{_unit(anova)}"
    cut = f" Only the first {most_bars} are drawn." if len(of) > most_bars else ""
    caption = f"Thick: the interval of each pair. Thin: all pairs together ({of[0].method}). Coloured: shown to differ.{cut}"
    spec = partial(diagnostics.intervals, bars, axis, 1.0 if anova.logarithm else 0.0)
    return _figure(anova, spec, caption, f"differences between levels of {of[0].factor}")


def residuals(anova: Anova, most_points: int) -> Iterator[Figure]:
    """Yield residuals against predictions, and their Q-Q plot; nothing where there are none."""
    if anova.errors.sum_of_squares <= 0:
        return
    unit = " (logarithm)" if anova.logarithm else (f" [{anova.unit}]" if anova.unit else "")
    some = f" {most_points:,} of {anova.n:,} are drawn." if anova.n > most_points else ""
    rows = diagnostics.thinned(anova.residuals, most_points)
    yield _figure(
        anova,
        partial(diagnostics.residuals, rows, unit),
        f"Residuals by predicted value. Equal variances form a band of one width.{some}",
        "residuals against predicted values",
    )
    yield _figure(
        anova,
        partial(diagnostics.normal_quantiles, rows, unit),
        f"Normal Q-Q plot. Residuals of normal errors lie along the line.{some}",
        "normal Q-Q of residuals",
    )
