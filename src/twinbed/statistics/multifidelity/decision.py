"""The decision whether mixing in cheap models pays, with the reason if not.

Let w be the expensive model's cost over the cheap one's. Two models pay if the correlation is above 2 sqrt(w) / (1 + w). There
(sqrt(1 - rho^2) + |rho| / sqrt(w))^2, the variance at equal cost, is 1 (``mfmc``).  For existing runs, the variance over that
of the expensive model's draws alone is expected to be (1 - R^2) (n - 2) / (n - K - 2) + R^2 n / N. R^2 is the adjusted one of n
draws by K cheap models, which have N draws.  Deciding by R^2, not by which interval came out narrower, keeps the interval
honest: with 10 pairs it covers 93.8 % at the worst correlation, 94.5 % with 20.

The interval is that of a straight line.  If a square in addition to the line explains more than chance does, the relation
bends. The mean of the mix is then off and its interval too short, so the expensive model's draws are used alone.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from twinbed.statistics.multifidelity.allocation import Matrix
from twinbed.statistics.multifidelity.estimate import LEAST_SHARED, Estimate, helpers, mixed, plain, shared, usable


def variance_at_equal_cost(rho: float, w: float) -> float:
    """Return the variance of the best mix of two models over that of plain Monte Carlo on the expensive one."""
    return (math.sqrt(1 - rho**2) + abs(rho) / math.sqrt(w)) ** 2


def needed_correlation(w: float) -> float:
    """Return the correlation above which two models pay; 1 if the cheap one is no cheaper."""
    return 2 * math.sqrt(w) / (1 + w) if w > 1 else 1.0


def correlation(values: Matrix, model: int) -> float | None:
    """Correlate the expensive model with a cheap one over shared draws; None for too few, or if one does not vary. ``values``
    has shape (draws, models), NaN where a model was not run."""
    both = values[~np.isnan(values[:, 0]) & ~np.isnan(values[:, model])]
    if len(both) < LEAST_SHARED or np.ptp(both[:, 0]) == 0 or np.ptp(both[:, model]) == 0:
        return None
    return float(np.corrcoef(both[:, 0], both[:, model])[0, 1])


ROUNDING = 1e-20
"""Squares that are less than this share of all are rounding errors."""
BENT = 0.1
"""A relation bends if chance makes as much curvature less often than this. A needless fallback costs a wider interval."""


def line_chance(values: Matrix, model: int) -> float | None:
    """Return the p-value of a square in addition to the line, by F over the draws shared by the expensive model and a cheap
    one. Each is explained by the other, since a bend may show in one of the two alone. None for too few draws, or if either has
    two values or fewer."""
    both = values[~np.isnan(values[:, 0]) & ~np.isnan(values[:, model])][:, [0, model]]
    if len(both) < LEAST_SHARED or min(len(np.unique(column)) for column in both.T) < 3:
        return None
    return min(1.0, 2 * min(_square_chance(both[:, 1], both[:, 0]), _square_chance(both[:, 0], both[:, 1])))


def _is_bent(values: Matrix, model: int) -> bool:
    chance = line_chance(values, model)
    return chance is not None and chance < BENT


def _square_chance(x: Matrix, y: Matrix) -> float:
    from scipy.special import fdtrc

    scaled = (x - x.mean()) / x.std()
    line, square = (np.column_stack([scaled**power for power in range(most + 1)]) for most in (1, 2))
    left = [float(np.sum((y - of @ np.linalg.lstsq(of, y, rcond=None)[0]) ** 2)) for of in (line, square)]
    df = len(y) - 3
    if left[1] <= ROUNDING * float(np.sum((y - y.mean()) ** 2)):
        return 1.0 if left[0] <= 2 * left[1] else 0.0
    return float(fdtrc(1, df, (left[0] - left[1]) / left[1] * df))


@dataclass(frozen=True, slots=True)
class Decision:
    """The estimate to go by."""

    estimate: Estimate
    plain: Estimate
    """From the expensive model's draws alone."""
    expected: float | None
    """The expected variance of the best mix over that of ``plain``; None if no mix could be tried."""
    refusal: str
    """The reason why nothing is mixed in; empty if something is."""


def decide(values: Matrix, level: float, names: Sequence[str], line: Matrix | None = None) -> Decision:
    """Return the mix with the least expected variance, or the expensive model alone. Draws ``values`` are as in
    ``correlation``, ``names`` those of models; ``line`` are the values whose relation must be a straight line, if ``values``
    were computed from others. Raises ValueError for fewer than 2 draws of the expensive model."""
    alone = plain(values, level)
    if alone.standard_error == 0:
        return Decision(alone, alone, None, _why_not(values, names, alone))
    cheap = usable(values)
    expected: dict[tuple[int, ...], float] = {}
    # Where no draws were run by all: by the variance that the best linear unbiased estimate has.
    apart: dict[tuple[int, ...], Estimate] = {}
    for size in range(1, len(cheap) + 1):
        for models in combinations(cheap, size):
            if _shares_enough(values, models):
                own = _expected(values, models)
                if own is not None:
                    expected[models] = own
            elif size > 1:
                with contextlib.suppress(ValueError):
                    apart[models] = mixed(values, models, level)
                    expected[models] = apart[models].standard_error ** 2 / alone.standard_error**2
    if not expected:
        return Decision(alone, alone, None, _why_not(values, names, alone))
    best = min(expected, key=lambda models: expected[models])
    if expected[best] >= 1:
        return Decision(alone, alone, expected[best], _weak(values, best, names))
    if bent := [names[model] for model in best if _is_bent(values if line is None else line, model)]:
        return Decision(alone, alone, expected[best], f"{names[0]} is not linear in {' and '.join(bent)}")
    further = helpers(values, best)
    if best in apart and not further:
        return Decision(apart[best], alone, expected[best], "")
    for helping in [further, []] if further else [[]]:
        try:
            return Decision(mixed(values, best, level, helping), alone, expected[best], "")
        except ValueError as error:
            reason = str(error)
    return Decision(alone, alone, None, reason)


def _shares_enough(values: Matrix, models: tuple[int, ...]) -> bool:
    """Return whether the expensive model and all of these ran enough draws in common."""
    n, k = int((~np.isnan(values[:, (0, *models)])).all(axis=1).sum()), len(models)
    return n >= LEAST_SHARED + k - 1 and n - k - 2 > 0


def _expected(values: Matrix, models: tuple[int, ...]) -> float | None:
    expensive = values[~np.isnan(values[:, 0])]
    both = expensive[~np.isnan(expensive[:, models]).any(axis=1)]
    n, k = len(both), len(models)
    x = both[:, models] - both[:, models].mean(axis=0)
    y = both[:, 0] - both[:, 0].mean()
    if np.linalg.matrix_rank(x) < k or not y @ y:
        return None
    residuals = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    squared = 1 - float(residuals @ residuals) / (n - k - 1) / (float(y @ y) / (n - 1))
    most = int((~np.isnan(values[:, models])).sum(axis=0).min())
    squared = max(squared, 0.0)
    return (1 - squared) * (n - 2) / (n - k - 2) * len(expensive) / n + squared * len(expensive) / most


def _why_not(values: Matrix, names: Sequence[str], alone: Estimate) -> str:
    if alone.standard_error == 0:
        return f"{names[0]} does not vary"
    reasons = []
    for model in range(1, values.shape[1]):
        together = shared(values, model)
        if together < LEAST_SHARED:
            reasons.append(
                f"{names[model]} shares {together} draws with {names[0]}, fewer than {LEAST_SHARED}:"
                " only shared draws correlate"
            )
        else:
            reasons.append(f"{names[model]} does not vary over the {together} draws that it shares with {names[0]}")
    return "; ".join(reasons) or f"there is no testbed but {names[0]}"


def _weak(values: Matrix, models: tuple[int, ...], names: Sequence[str]) -> str:
    parts = []
    for model in models:
        rho, further = correlation(values, model), int((~np.isnan(values[:, model])).sum()) - shared(values, model)
        if not further:
            parts.append(f"{names[model]} has no draws beyond those of {names[0]}")
        else:
            parts.append(f"{names[model]} correlates by {rho:.2f} over {shared(values, model)} shared draws")
    return f"{'; '.join(parts)}: too little to narrow the interval"
