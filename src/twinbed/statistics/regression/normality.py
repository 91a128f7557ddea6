"""Normality of residuals: Shapiro and Wilk's W up to 5,000 rows (Royston 1995), Jarque and Bera's test above. Shapiro and
Wilk's W up to 5,000 rows (Royston 1995), Jarque and Bera's test above.

Jarque-Bera (1987): n/6 (skewness^2 + excess^2/4), chi-square of 2 degrees of freedom.  With very many rows every small
departure is significant, but matters less: intervals of coefficients need normal means, not normal residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from twinbed.statistics.regression.least_squares import Doubles
from twinbed.statistics.shapiro import MOST, shapiro_wilk


@dataclass(frozen=True, slots=True)
class Normality:
    """``test`` is ``shapiro-wilk`` or ``jarque-bera``; skewness and excess kurtosis are moments' ratios, normally 0."""

    test: str
    statistic: float
    p_value: float
    skewness: float
    excess_kurtosis: float


def normality(residuals: Doubles) -> Normality | None:
    """Test normality; None for fewer than 8 residuals, which say nothing, or if all are the same."""
    n = len(residuals)
    centred = residuals - residuals.mean()
    variance = float(centred @ centred) / n
    if n < 8 or variance == 0:
        return None
    scaled = centred / np.sqrt(variance)
    cubes = scaled * scaled * scaled
    skewness = float(cubes.mean())
    excess = float(cubes @ scaled) / n - 3
    if n > MOST:
        statistic = n / 6 * (skewness**2 + excess**2 / 4)
        return Normality("jarque-bera", statistic, float(chdtrc(2, statistic)), skewness, excess)
    statistic, p = shapiro_wilk(residuals)
    return Normality("shapiro-wilk", statistic, p, skewness, excess)
