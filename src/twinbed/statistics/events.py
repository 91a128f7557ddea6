"""The rate of events that come singly and at a constant rate, from their number: the exact interval of Garwood (1936,
Biometrika 28:437), by quantiles of the gamma distribution.  Events that come in bursts vary more than that.
"""

from __future__ import annotations

from scipy.special import gammaincinv

from twinbed.statistics.bounds import Bounds


def rate_bounds(events: int, exposure: float, level: float = 0.95) -> Bounds:
    """Return the interval of a rate per unit of exposure. Without an event the lower bound is 0, and the upper one two-sided
    still.

    >>> rate_bounds(10, 1.0)
    Bounds(low=4.795388696132, high=18.39035585607, level=0.95)
    """
    if events < 0 or exposure <= 0:
        raise ValueError(f"{events} events in {exposure:g}: events must be 0 or more, the exposure above 0")
    tail = (1 - level) / 2
    low = float(gammaincinv(events, tail)) / exposure if events else 0.0
    return Bounds(low, float(gammaincinv(events + 1, 1 - tail)) / exposure, level)
