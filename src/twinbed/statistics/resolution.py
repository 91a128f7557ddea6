"""What rounding hides: the step that values were printed in, and how far it can move their mean.

A mean of values that are rounded to whole steps h is off by at most h/2.  Where the values themselves vary, rounding averages
out: for normal noise with standard deviation sigma, the mean is off by at most (h/pi) sum exp(-2 pi^2 k^2 sigma^2/h^2)/k over
k = 1, 2, ... (Widrow and Kollar 2008, Quantization Noise, ch. 4 and app. B), which is below (h/pi) ln(1/(1 - q)) with q the
exponential at k = 1.  Limit: values that a tool cuts off, rather than rounds, are off by up to a whole step; where both
samples come of the same tool, as here, both are off the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from twinbed.statistics.moments import variance

DIGITS = 9
"""A step finer than this many digits of the largest value moves nothing, and is not looked for."""
NOISE = 1e-11
"""Share of a value that the arithmetic that it went through may have moved it by."""
SMALLEST = 1e-200
"""Nothing is printed in steps of less."""
ROUND_FROM = 4
"""As many different values are needed to tell that tens or thousands are a step, rather than chance."""
SURE = 0.95
"""That the values vary at least as much as they are taken to."""


def step(values: Sequence[float] | NDArray[np.float64]) -> float:
    """The largest power of ten that all values are whole multiples of.

    A step above 1 is believed only of ROUND_FROM different values.  0 where there is none, or all values are 0.

    >>> step([0.001, 0.25]), step([3.0, 7.0]), step([100.0]), step([1 / 3, 0.5])
    (0.001, 1.0, 1.0, 0.0)
    """
    different = np.unique(np.abs(np.asarray(values, dtype=np.float64)))
    different = different[different > 0]
    if not len(different) or different[-1] < SMALLEST:
        return 0.0
    most = math.floor(math.log10(different[-1]))
    for exponent in range(most if len(different) >= ROUND_FROM else min(most, 0), most - DIGITS, -1):
        # Negative powers of ten are not exact; dividing by positive ones is.
        steps = different / 10.0**exponent if exponent >= 0 else different * 10.0**-exponent
        if np.all(np.abs(steps - np.rint(steps)) <= NOISE * steps):
            return 10.0**exponent if exponent >= 0 else 1 / 10.0**-exponent
    return 0.0


def bias(values: Sequence[float], step: float) -> float:
    """How far rounding to whole steps can have moved the mean of at least two values, in their unit."""
    if not step:
        return 0.0
    n = len(values)
    least = max(0.0, variance(values) - step**2 / 12) * (n - 1) / float(chdtri(n - 1, 1 - SURE))
    q = math.exp(-2 * math.pi**2 * least / step**2)
    return step / 2 if q > 0.99 else min(step / 2, -step / math.pi * math.log1p(-q))
