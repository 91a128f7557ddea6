"""What the LDRD report's own method says of the same runs, for comparison: one kind, such as a thread count, at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from twinbed.analyses.calibrate.result import Calibrated
from twinbed.model.run import Level, level_text
from twinbed.show.words import cell_title
from twinbed.statistics.calibration.equating import Equating, equating, logistic_curve
from twinbed.statistics.nonlinear import NoFitError

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Kind:
    """One combination of the levels of all other factors."""

    name: str
    half_width: float | None
    """The median interval of one new run by the logistic, as a share; None where it does not fit."""
    line: Equating | None
    """None where too few levels were measured on both testbeds."""


def equated(each: Calibrated) -> Sequence[Kind]:
    """Return each kind, where there is a logarithmic factor to fit logistics over; nothing otherwise."""
    fitted = each.fitted
    if not fitted.inputs[fitted.group].is_log:
        return ()
    others = [name for name in fitted.dear.levels if name != fitted.by and name in {each.name for each in fitted.inputs}]
    kinds = dict.fromkeys(tuple(fitted.dear.levels[name][at] for name in others) for at in range(len(fitted.dear)))
    return [_kind(each, dict(zip(others, kind, strict=True))) for kind in kinds]


def _kind(each: Calibrated, levels: dict[str, Level]) -> Kind:
    fitted = each.fitted
    one = fitted.inputs[fitted.group]
    dear, cheap = fitted.dear.only(levels), fitted.cheap.only(levels)
    at = np.array([math.log(one.number(one.scaled(level))) for level in dear.levels[fitted.by]])
    half, line = None, None
    with suppress(NoFitError):
        rate, low, high = logistic_curve(at, np.array(dear.values)).at(np.unique(at), LEVEL)
        half = float(np.median((high - low) / 2 / rate))
    here, there = (_means(runs.levels[fitted.by], runs.values) for runs in (cheap, dear))
    both = [name for name in there if name in here]
    with suppress(ValueError):
        line = equating(np.array([here[name] for name in both]), np.array([there[name] for name in both]))
    return Kind(cell_title(levels) if levels else "all", half, line)


def _means(levels: Sequence[Level], values: Sequence[float]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for level, value in zip(levels, values, strict=True):
        found.setdefault(level_text(level), []).append(value)
    return {name: fmean(own) for name, own in found.items()}
