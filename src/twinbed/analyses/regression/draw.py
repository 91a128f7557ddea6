"""Draw a regression: effects with intervals, and residuals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from twinbed.analyses.regression.result import Model
from twinbed.observations import diagnostics
from twinbed.observations.diagnostics import Bar
from twinbed.show.figure import Figure
from twinbed.statistics.assumptions import Residual


def effects(model: Model) -> Iterator[Figure]:
    """Yield the effects of the first fit; nothing if none was requested."""
    if not model.columns[0].effects:
        return
    bars = []
    for effect in model.columns[0].effects:
        where = "".join(f", {name} {value}" for name, value in effect.at.items())
        name = f"{effect.variable} {effect.to} / {effect.base}{where}"
        if effect.change is not None and effect.change_interval is not None:
            interval = effect.change_interval
            bars.append(Bar(name, 1 + effect.change, 1 + interval.low, 1 + interval.high))
        else:
            bars.append(Bar(name, effect.difference.estimate, effect.difference.interval.low, effect.difference.interval.high))
    of, none = ("ratio", 1.0) if model.logarithm else ("difference", 0.0)
    caption = "Effects with intervals, other variables held. Coloured: the interval excludes no effect."
    yield Figure("effects", spec=partial(diagnostics.intervals, bars, of, none), caption=caption)


def residuals(model: Model) -> Iterator[Figure]:
    """Yield residuals against predictions, their Q-Q plot, and their size."""
    some = f" {len(model.points):,} of {model.n:,} rows are drawn." if len(model.points) < model.n else ""
    rows = [Residual(point.fitted, point.residual, point.normal_quantile) for point in model.points]
    caption = f"Residuals by predicted {model.response}. Equal variances form a band of one width.{some}"
    yield Figure("residuals", spec=partial(diagnostics.residuals, rows, ""), caption=caption)
    caption = f"Normal Q-Q plot. Residuals of normal errors lie along the line.{some}"
    yield Figure("normal Q-Q", spec=partial(diagnostics.normal_quantiles, rows, ""), caption=caption)
    pairs = [(point.fitted, point.standardised) for point in model.points if point.standardised is not None]
    caption = f"Scale-location plot. Equal variances lie at one height.{some}"
    yield Figure("scale-location", spec=partial(diagnostics.scale_location, pairs, ""), caption=caption)
