"""Standard errors, tests and intervals of coefficients, by the assumed errors.

``classical`` takes one variance for all rows.  Function ``hc3`` takes a variance for each row (MacKinnon and White 1985;
recommended at every size by Long and Ervin 2000).  Function ``clustered`` takes rows that depend on each other within clusters,
with Stata's CR1 factor G/(G-1) (n-1)/(n-p) (Cameron and Miller 2015) and Student's t of G - 1 degrees of freedom.

The effect of a change of one variable on the response, with all others constant: a contrast of coefficients, as a percentage.

The contrast is the difference of two rows of the design.  In a model of log y it is the difference d of logarithms, and e^d - 1
is the relative change of y, strictly that of its geometric mean or median.  Section 3.1.2 of the LDRD report reads Table 3.4 in
this way.

Influence of each row on the fit: leverage, studentised residuals, Cook's distance and DFFITS, all from the thin QR.

Let h be the leverage, e the residual, s^2 the variance.  Internally studentised r = e / (s sqrt(1-h)); externally t = r
sqrt((n-p-1) / (n-p-r^2)).  Cook's D = r^2 h / (p (1-h)); DFFITS = t sqrt(h / (1-h)) (Cook 1977; Belsley, Kuh and Welsch 1980).
A row counts as influential by R's rules: h > 3 p/n, |DFFITS| > 3 sqrt(p/(n-p)), or D above the median of F(p, n-p). The largest
|t| is tested against Student's t of n - p - 1 degrees of freedom with Bonferroni's correction over all rows.

Limit: a row that alone determines a coefficient (h = 1) always fits perfectly: it has no studentised residual (nan here).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri, stdtr, stdtrit

from twinbed.statistics.regression.design import Design
from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.evaluation import Categorical, Column, Numeric
from twinbed.statistics.regression.least_squares import Doubles, Fit

SATURATED = 1 - 1e-10
"""A row with a larger leverage alone determines its fitted value."""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """An estimate with its standard error, Student's t and two-sided p, and interval."""

    estimate: float
    standard_error: float
    statistic: float | None
    """None where the standard error is 0."""
    p_value: float | None
    low: float
    high: float


def coefficient(estimate: float, standard_error: float, degrees_of_freedom: float, level: float) -> Coefficient:
    """Return the test and interval of one estimate; ``level`` is the interval's, such as 0.95."""
    half = float(stdtrit(degrees_of_freedom, 0.5 + level / 2)) * standard_error
    statistic = estimate / standard_error if standard_error > 0 else None
    p_value = None if statistic is None else 2 * float(stdtr(degrees_of_freedom, -abs(statistic)))
    return Coefficient(estimate, standard_error, statistic, p_value, estimate - half, estimate + half)


def classical(fit: Fit) -> Doubles:
    """Return the covariance of the coefficients (p x p) where all rows have one variance."""
    return fit.variance * (fit.root @ fit.root.T)


def hc3(fit: Fit) -> Doubles:
    """Return the covariance (p x p) whatever each row's variance. Raises RegressionError if a row alone determines its fitted
    value."""
    leverage = fit.leverage
    if np.any(leverage > SATURATED):
        row = int(np.argmax(leverage))
        raise RegressionError(
            f"row {row + 1} of those used alone determines a coefficient, so its error is unknown",
            "give every combination of levels at least two rows",
        )
    weighted = fit.q * (fit.residuals / (1 - leverage))[:, None]
    return _sandwich(fit, weighted.T @ weighted)


def clustered(fit: Fit, clusters: NDArray[np.intp]) -> Doubles:
    """Return the covariance (p x p) where rows of a cluster (codes from 0) depend on each other."""
    scores = group_sums(fit.q * fit.residuals[:, None], clusters)
    count = len(scores)
    factor = count / (count - 1) * (fit.n - 1) / fit.degrees_of_freedom
    return factor * _sandwich(fit, scores.T @ scores)


def group_sums(values: Doubles, groups: NDArray[np.intp]) -> Doubles:
    """Return the sums (g x p) of the rows (n x p) of each group, whose codes run from 0 to g - 1."""
    count = int(groups.max()) + 1
    return np.stack([np.bincount(groups, column, count) for column in values.T], axis=1)


def _sandwich(fit: Fit, middle: Doubles) -> Doubles:
    return np.asarray(fit.root @ middle @ fit.root.T)


Value = float | str


def difference(
    design: Design, data: Mapping[str, Column], variable: str, to: Value, base: Value, at: Mapping[str, Value]
) -> Doubles:
    """Return the contrast (p) of ``variable`` between ``to`` and ``base``, where the variables in ``at`` have the given values.
    Raises RegressionError where the effect depends on a variable that ``at`` does not give, or a level is not there."""
    used = design.sources
    for name in (variable, *at):
        if name not in used:
            raise RegressionError(f"{name} is not on the right side of the model", f"there are {', '.join(used)}")
    for term in design.terms:
        open_ = [name for name in term.sources if name != variable and name not in at]
        if variable in term.sources and open_:
            levels = _some(design, data, open_[0])
            raise RegressionError(
                f"the effect of {variable} depends on {open_[0]}: they interact in {term.label}",
                f"give its value: --at {open_[0]}=VALUE, such as {levels}",
            )
    values: dict[str, Value] = {name: at.get(name, _held(design, data, name)) for name in used}
    rows = []
    for value in (to, base):
        values[variable] = value
        for name in used:
            _check(design, data, name, values[name])
        rows.append(design.at(values).astype(np.float64))
    return np.asarray(rows[0] - rows[1])


def _held(design: Design, data: Mapping[str, Column], name: str) -> Value:
    """Return a value for a variable that cancels in the difference."""
    if levels := design.levels(name):
        return levels[0]
    column = data[name]
    if isinstance(column, Numeric):
        return float(column.values[design.rows[0]])
    code = int(column.codes[design.rows[0]])
    return column.levels[code] if column.numbers is None else column.numbers[code]


def _check(design: Design, data: Mapping[str, Column], name: str, value: Value) -> None:
    levels = design.levels(name)
    if levels and str(value) not in levels:
        raise RegressionError(f"{name} has no level {value!r} in the rows that are used", f"there are {', '.join(levels)}")
    if not levels and isinstance(value, str):
        raise RegressionError(f"{name} is a number, but {value!r} is not")


def _some(design: Design, data: Mapping[str, Column], name: str) -> str:
    if levels := design.levels(name):
        return " or ".join(levels[:2])
    column = data[name]
    if isinstance(column, Categorical):
        return " or ".join(column.levels[:2])
    return f"{float(np.median(column.values[design.rows])):g}"


@dataclass(frozen=True, slots=True)
class Influence:
    """Measures of every row (n). ``alone`` marks rows that alone determine a coefficient; all but leverage is nan there."""

    leverage: Doubles
    standardised: Doubles
    """Internally studentised residuals."""
    studentised: Doubles
    """Externally studentised residuals."""
    cooks_distance: Doubles
    dffits: Doubles
    alone: NDArray[np.bool_]
    influential: NDArray[np.bool_]
    outlier: int | None
    """The row with the largest externally studentised residual; None where it cannot be determined."""
    outlier_p: float | None
    """Its p-value with Bonferroni's correction."""


def influence(fit: Fit) -> Influence:
    """Return the measures of every row of a fit."""
    n, p = fit.n, fit.p
    leverage = fit.leverage
    alone = leverage > SATURATED
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.where(alone, np.nan, 1 - leverage)
        standardised = fit.residuals / np.sqrt(fit.variance * free)
        left = n - p - standardised**2
        studentised = standardised * np.sqrt((n - p - 1) / np.maximum(left, 0))
        cooks_distance = standardised**2 * leverage / (free * p)
        dffits = studentised * np.sqrt(leverage / free)
    influential = leverage > 3 * p / n
    influential |= np.abs(dffits) > 3 * np.sqrt(p / (n - p))
    influential |= cooks_distance > fdtri(p, n - p, 0.5)
    outlier, outlier_p = None, None
    if n - p > 1 and np.any(np.isfinite(studentised)):
        outlier = int(np.nanargmax(np.where(np.isnan(studentised), np.nan, np.abs(studentised))))
        largest = abs(float(studentised[outlier]))
        outlier_p = min(1.0, 2 * n * float(stdtr(n - p - 1, -largest)))
    return Influence(leverage, standardised, studentised, cooks_distance, dffits, alone, influential, outlier, outlier_p)
