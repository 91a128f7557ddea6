"""Logistic regression with a ridge: the chance that a run is of one kind, from other metrics of the run.

Columns are centred by the mean of the rows fitted and divided by their standard deviation, or by a given spread: a difference
of many such spreads then needs only a small coefficient. A column that does not vary has no effect.  The penalty is half of
``ridge`` times the sum of squared coefficients (not of the intercept), which keeps them finite where a column separates the
kinds wholly (Le Cessie and van Houwelingen 1992, Appl. Stat. 41:191).  The fit is by Newton's method with halved steps; the
penalised likelihood has one maximum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]
ROUNDS = 100
CLOSE = 1e-10
"""At this Newton decrement one more step is the last: its error is the square of that of the step before."""


@dataclass(frozen=True, slots=True)
class Logistic:
    centre: Floats
    scale: Floats
    """Spreads; infinite for columns that do not vary."""
    intercept: float
    coefficients: Floats
    """Coefficients for a change by one spread."""

    def scores(self, rows: Floats) -> Floats:
        """Return log odds."""
        scores: Floats = self.intercept + ((rows - self.centre) / self.scale) @ self.coefficients
        return scores


def logistic(rows: Floats, kinds: NDArray[np.bool_], ridge: float = 1.0, spread: Floats | None = None) -> Logistic:
    """Fit rows of both kinds. ``ridge`` is above 0; ``spread`` None takes standard deviations."""
    centre = rows.mean(axis=0)
    spread = rows.std(axis=0, ddof=1) if spread is None else spread
    scale = np.where(spread > 1e-12 * np.abs(centre), spread, np.inf)
    design = np.column_stack([np.ones(len(rows)), (rows - centre) / scale])
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = 0.0
    target = kinds.astype(np.float64)
    coefficients = np.zeros(design.shape[1])
    loss = _loss(design, target, penalty, coefficients)
    for _ in range(ROUNDS):
        chance = expit(design @ coefficients)
        slope = design.T @ (target - chance) - penalty * coefficients
        curvature = design.T @ (design * (chance * (1 - chance))[:, None]) + np.diag(penalty)
        step = np.linalg.solve(curvature, slope)
        if float(slope @ step) < CLOSE:
            coefficients = coefficients + step
            break
        size = 1.0
        while (after := _loss(design, target, penalty, coefficients + size * step)) > loss and size > CLOSE:
            size /= 2
        coefficients, loss = coefficients + size * step, after
    return Logistic(centre, scale, float(coefficients[0]), coefficients[1:])


def _loss(design: Floats, target: Floats, penalty: Floats, coefficients: Floats) -> float:
    log_odds = design @ coefficients
    return float(np.sum(np.logaddexp(0.0, log_odds) - target * log_odds) + np.sum(penalty * coefficients**2) / 2)
