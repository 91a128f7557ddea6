"""One estimate compared with a region of equivalence: p-values for lying inside, and for lying outside.

Equivalence is shown by two one-sided tests at alpha each (Schuirmann 1987, J. Pharmacokinet. Biopharm. 15:657), a difference
of more than the margin by one two-sided test at alpha.
"""

from __future__ import annotations

from scipy.special import stdtr


def p_values(above_low: float, above_high: float, df: float) -> tuple[float, float]:
    """Return the p-values of equivalence and of difference, from the t statistics at the region's lower and upper edge."""
    p_above_low, p_below_high = float(stdtr(df, -above_low)), float(stdtr(df, above_high))
    p_above_high, p_below_low = float(stdtr(df, -above_high)), float(stdtr(df, above_low))
    return max(p_above_low, p_below_high), min(1.0, 2 * min(p_above_high, p_below_low))
