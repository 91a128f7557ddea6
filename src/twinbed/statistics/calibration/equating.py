"""The LDRD report's method (Quantifying Uncertainty in Emulations, section 3.2), for comparison: one thread count at a time.

A logistic of the rate over ln payload with an interval for one new run, and an equating line that takes one testbed's rate to
another's.  A logistic of slope 1 is Hockney's t = a + p/b.  It assumes the same noise in requests a second at all payloads,
which no rate has. Where the line limits, one rate of the cheap testbed stands for many payloads, which equating by rate alone
cannot distinguish.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.nonlinear import Curve, NoFitError, Values, fit

Doubles = NDArray[np.float64]
_STEP = 1e-30


def _logistic(parameters: Values, x: Doubles) -> Values:
    """Return A/(1 + exp((x - m)/s)) from ln A, m and ln s."""
    rates: Values = np.exp(parameters[0]) / (1.0 + np.exp((x - parameters[1]) / np.exp(parameters[2])))
    return rates


@dataclass(frozen=True, slots=True)
class LogisticCurve:
    curve: Curve

    def at(self, log_payload: Doubles, level: float) -> tuple[Doubles, Doubles, Doubles]:
        """Return the rate, and the interval of one new run, at each place."""
        from scipy.special import stdtrit

        steps = self.curve.parameters + 1j * _STEP * np.eye(3)
        slopes = np.stack([np.imag(_logistic(step, log_payload)) / _STEP for step in steps], axis=1)
        rate = np.asarray(_logistic(self.curve.parameters, log_payload), dtype=np.float64)
        variance = np.einsum("ij,jk,ik->i", slopes, self.curve.covariance, slopes) + self.curve.standard_deviation**2
        half = float(stdtrit(self.curve.degrees_of_freedom, (1 + level) / 2)) * np.sqrt(variance)
        return rate, rate - half, rate + half


def logistic_curve(log_payload: Doubles, rates: Doubles) -> LogisticCurve:
    """Fit a logistic to one value a run. Raises NoFitError."""
    middle = float(np.interp(-rates.max() / 2, -rates[order := np.argsort(log_payload)], log_payload[order]))
    best: Curve | None = None
    for slope in (1.0, 0.5, 2.0):
        try:
            curve = fit(_logistic, log_payload, rates, np.array([np.log(rates.max()), middle, np.log(slope)]))
        except NoFitError:
            continue
        if best is None or curve.residual_sum < best.residual_sum:
            best = curve
    if best is None:
        raise NoFitError("no logistic fits: the payloads do not reach from one limit to the other")
    return LogisticCurve(best)


@dataclass(frozen=True, slots=True)
class Equating:
    """The line expensive = offset + factor * cheap."""

    offset: float
    factor: float
    error: float
    """Standard deviation about the line."""

    def of(self, cheap: Doubles) -> Doubles:
        rates: Doubles = self.offset + self.factor * cheap
        return rates


def equating(cheap: Doubles, expensive: Doubles) -> Equating:
    """Fit the line to means of the same payloads on both testbeds. Raises ValueError for fewer than three."""
    if len(cheap) < 3:
        raise ValueError("a line needs three payloads that both testbeds have")
    factor, offset = np.polyfit(cheap, expensive, 1)
    left = expensive - offset - factor * cheap
    return Equating(float(offset), float(factor), float(np.sqrt(left @ left / (len(cheap) - 2))))
