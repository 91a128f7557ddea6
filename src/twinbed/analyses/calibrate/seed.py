"""What the LDRD report's own method says of the same runs, for comparison: one kind, such as a thread count, at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from twinbed.analyses.calibrate.result import Calibrated, Calibrations
from twinbed.model.run import Level, level_text
from twinbed.render.tabular import Tabular
from twinbed.show.numbers import figure, percent
from twinbed.show.words import cell_title
from twinbed.statistics.calibration.equating import equating, logistic_curve
from twinbed.statistics.nonlinear import NoFitError

LEVEL = 0.95


def seed_table(found: Calibrations, each: Calibrated) -> Iterator[Tabular]:
    """A table, where there is a logarithmic factor to fit logistics over; None otherwise."""
    fitted = each.fitted
    one = fitted.inputs[fitted.group]
    if not one.is_log:
        return
    rows = []
    others = [name for name in fitted.dear.levels if name != fitted.by and name in {each.name for each in fitted.inputs}]
    for kind in dict.fromkeys(tuple(fitted.dear.levels[name][at] for name in others) for at in range(len(fitted.dear))):
        levels = dict(zip(others, kind, strict=True))
        row = _row(each, levels)
        rows.append((cell_title(levels) if levels else "all", *row))
    caption = (
        f"A logistic over ln {fitted.by} of {found.dear} alone, with the interval of one new run, and a line that takes"
        f" {found.cheap} to {found.dear}: section 3.2 of Quantifying Uncertainty in Emulations."
    )
    heads = ("at", "half-width of the logistic", "equating line: offset", "factor", "error about it")
    yield Tabular("By logistics and equating", caption, heads, tuple(rows), texts=1)


def _row(each: Calibrated, levels: dict[str, Level]) -> Sequence[str | None]:
    fitted = each.fitted
    one = fitted.inputs[fitted.group]
    dear, cheap = fitted.dear.only(levels), fitted.cheap.only(levels)
    at = np.array([math.log(one.number(one.scaled(level))) for level in dear.levels[fitted.by]])
    try:
        rate, low, high = logistic_curve(at, np.array(dear.values)).at(np.unique(at), LEVEL)
        half = percent(float(np.median((high - low) / 2 / rate)))
    except NoFitError:
        half = None
    means = [_means(runs.levels[fitted.by], runs.values) for runs in (cheap, dear)]
    both = [name for name in means[1] if name in means[0]]
    try:
        line = equating(np.array([means[0][name] for name in both]), np.array([means[1][name] for name in both]))
    except ValueError:
        return half, None, None, None
    return half, figure(line.offset), figure(line.factor), figure(line.error)


def _means(levels: Sequence[Level], values: Sequence[float]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for level, value in zip(levels, values, strict=True):
        found.setdefault(level_text(level), []).append(value)
    return {name: sum(own) / len(own) for name, own in found.items()}
