"""Quantiles and tails of Student's t and Fisher's F as plain numbers, by scipy.special, which is quick to import."""

from __future__ import annotations

from scipy import special


def t_quantile(probability: float, freedom: float) -> float:
    return float(special.stdtrit(freedom, probability))


def t_two_sided(statistic: float, freedom: float) -> float:
    """Return P(|T| > |statistic|)."""
    return 2 * float(special.stdtr(freedom, -abs(statistic)))


def f_quantile(probability: float, numerator: float, denominator: float) -> float:
    """Return a quantile of F: ``f_quantile(0.99, 9, 40)`` is the table's 2.89."""
    return float(special.fdtri(numerator, denominator, probability))


def f_tail(statistic: float, numerator: float, denominator: float) -> float:
    """Return P(F > statistic)."""
    return float(special.fdtrc(numerator, denominator, statistic))


def normal_quantile(confidence: float) -> float:
    """Return the two-sided quantile: 1.96 for 0.95."""
    return float(special.ndtri((1 + confidence) / 2))
