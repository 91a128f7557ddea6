"""Box and Cox's transformation (1964) of a response above 0, with lambda by profile likelihood and the model's covariates.

y(lambda) = (y^lambda - 1) / lambda, and log y at 0.  The profile log-likelihood is
-n/2 log(RSS(lambda)/n) + (lambda - 1) sum(log y), where RSS is that of y(lambda) on all of the model's columns.  The
interval holds the lambdas within chi-square(1)/2 of the largest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.least_squares import Doubles

SIMPLE = {-2.0: "1/y^2", -1.0: "1/y", -0.5: "1/sqrt(y)", 0.0: "log(y)", 1 / 3: "y^(1/3)", 0.5: "sqrt(y)", 1.0: "y", 2.0: "y^2"}
"""The lambdas with a simple meaning."""
WIDEST = 5.0
"""Lambdas are sought from minus to plus this."""
_MOST_EXPONENT = 300.0
"""The largest exponent of e; its square is still a number."""
_WORST = 1e12
"""A likelihood above all others."""


@dataclass(frozen=True, slots=True)
class BoxCox:
    """``low`` and ``high`` are None where the interval goes beyond +-5."""

    best: float
    low: float | None
    high: float | None
    level: float
    simple: float
    """The simple lambda nearest to the best one, among those in the interval if there are any."""
    simple_inside: bool

    @property
    def meaning(self) -> str:
        return SIMPLE[self.simple]


def transformed(response: Doubles, power: float) -> Doubles:
    """Return y(lambda). Raises RegressionError for a response that is not above 0."""
    logs = _logs(response)
    return logs if power == 0 else np.expm1(power * logs) / power


def log_likelihood(response: Doubles, q: Doubles, power: float) -> float:
    """Return the profile, less a constant; ``q`` (n x p) is an orthonormal basis of the model's columns."""
    return _profile(_logs(response), q, power)


def box_cox(response: Doubles, q: Doubles, level: float = 0.95) -> BoxCox:
    """Return the best lambda and its interval. Raises RegressionError for a response that is not above 0."""
    from scipy.optimize import brentq, minimize_scalar

    logs = _logs(response)
    optimum = minimize_scalar(
        lambda power: -_profile(logs, q, power), bounds=(-WIDEST, WIDEST), method="bounded", options={"xatol": 1e-8}
    )
    best, least = float(optimum.x), float(-optimum.fun - chdtri(1, 1 - level) / 2)

    def above(power: float) -> float:
        return _profile(logs, q, power) - least

    low = float(brentq(above, -WIDEST, best, xtol=1e-6)) if above(-WIDEST) < 0 else None
    high = float(brentq(above, best, WIDEST, xtol=1e-6)) if above(WIDEST) < 0 else None
    inside = [power for power in SIMPLE if (low is None or low <= power) and (high is None or power <= high)]
    # Values that hardly vary in proportion determine no power: they stay as they are.
    wanted = 1.0 if low is None and high is None else best
    simple = min(inside or SIMPLE, key=lambda power: abs(power - wanted))
    return BoxCox(best, low, high, level, simple, bool(inside))


def _logs(response: Doubles) -> Doubles:
    if not np.all(response > 0):
        bad = np.flatnonzero(~(response > 0))
        raise RegressionError(
            f"a Box-Cox response must be above 0: {len(bad)} of {len(response)} rows are not, such as {response[bad[0]]:g}",
            "a 0 is often a failed or empty measurement: leave such rows out, or use the untransformed response",
        )
    return np.log(response)


def _profile(logs: Doubles, q: Doubles, power: float) -> float:
    # After division by the geometric mean the second term of the likelihood is 0, and powers stay in range.
    centred = logs - logs.mean()
    if np.max(power * centred) > _MOST_EXPONENT:
        return -_WORST
    values = centred if power == 0 else np.expm1(power * centred) / power
    inside = q.T @ values
    whole = float(values @ values)
    left = whole - float(inside @ inside)
    if left < 1e-4 * whole:
        residuals = values - q @ inside
        left = float(residuals @ residuals)
    return -len(logs) / 2 * float(np.log(left / len(logs))) if left > 0 else _WORST
