"""2^k r factorial designs by the sign table: effects, allocation of variation, intervals of effects.

The design has k factors of two levels (-1 the first, +1 the second), and r replicates of every combination.  An effect q is
half the change from the first level to the second; its sum of squares is 2^k r q^2.  Where r is 1 there is no estimate of the
error, and no interval.  Source: Jain (1991), chapters 17 and 18.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.anova import Cells, Term


@dataclass(frozen=True, slots=True)
class SignEffect:
    """One column of the sign table; ``half_width`` is of the interval of the effect, None without an estimate of the error."""

    term: Term
    effect: float
    sum_of_squares: float
    half_width: float | None


def is_factorial(of: Cells) -> bool:
    """Return whether it is a 2^k r design: two factors or more of two levels each, all combinations present, equally often."""
    k = len(of.levels)
    return k >= 2 and set(of.levels) == {2} and len(of.codes) == 2**k and len(set(of.counts.tolist())) == 1


def signs(of: Cells, term: Term) -> NDArray[np.float64]:
    """Return a term's column of the sign table, for each cell."""
    return np.asarray(np.prod(2.0 * of.codes[:, list(term)] - 1, axis=1))


def sign_effects(of: Cells, confidence: float) -> list[SignEffect]:
    """Return the effects of all factors and interactions, main effects first."""
    from scipy.special import stdtrit

    k, count = len(of.levels), float(of.counts[0])
    freedom = of.n - 2**k
    error = math.fsum(of.within)
    half = None
    if freedom > 0:
        half = float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(error / freedom / of.n)
    effects = []
    for size in range(1, k + 1):
        for term in itertools.combinations(range(k), size):
            effect = math.fsum(signs(of, term) * of.means) / 2**k
            effects.append(SignEffect(term, effect, 2**k * count * effect**2, half))
    return effects
