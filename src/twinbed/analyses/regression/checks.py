"""Test the assumptions of a linear model, each with an alternative if it fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri

from twinbed.analyses.regression.fits import LEVEL, Fitted, unequal_variances
from twinbed.analyses.regression.result import AssumptionCheck, Column, Inflation
from twinbed.statistics.regression.collinearity import USUAL_LIMIT
from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.inference import Influence
from twinbed.statistics.regression.mixed import mixed
from twinbed.statistics.regression.residuals import LEAST_A_CELL, ChiSquare, normality
from twinbed.statistics.regression.robust import robust

VARIANCES = "equal variances"
NORMAL = "normal residuals"
CONDITION = 100
"""Scaled condition number above which dependence is strong (Belsley, Kuh and Welsch 1980); interactions always have some."""
MANY = 30
"""With this many rows per coefficient, means are taken as normal."""


def checks(
    of: Fitted, column: Column, influence: Influence, inflation: Sequence[Inflation], block: tuple[str, NDArray[np.intp]] | None
) -> Iterator[AssumptionCheck]:
    """Yield all checks of a fit; ``block``: groups that the model does not include. Little can be tested without residuals."""
    if of.fit.exact:
        yield from _collinear(of, inflation)
        return
    yield from _variances(of, column)
    yield _normal(of)
    yield from _collinear(of, inflation)
    yield _outlier(influence)
    yield _influential(of, influence)
    yield _robust(of, column)
    yield from _power(of)
    if block is not None:
        yield from _dependent(of, *block)


def _variances(of: Fitted, column: Column) -> Iterator[AssumptionCheck]:
    if column.errors == "HC3":
        instead = "the HC3 errors and intervals hold anyway"
    elif column.errors.startswith("clustered"):
        instead = "the clustered errors hold anyway"
    else:
        instead = "use --errors hc3 for intervals that hold anyway"
    if of.power == 1 and of.positive is not None and unequal_variances(of):
        instead += "; or explain log(response), if its spread grows with its mean"
    for name, test in (("Breusch-Pagan (Koenker)", of.pagan), ("White", of.white)):
        yield _chi_square(name, test, instead, of.few_a_cell)


def _chi_square(name: str, test: ChiSquare | None, instead: str, few: bool) -> AssumptionCheck:
    if few:
        least = f"not tested: the model has a mean for each cell, and the test needs {LEAST_A_CELL} rows in each"
        return AssumptionCheck(VARIANCES, name, None, None, None, None, least, "make more replicates, or use --errors hc3")
    if test is None:
        return AssumptionCheck(
            VARIANCES,
            name,
            None,
            None,
            None,
            None,
            "not tested: the test needs more rows than squares and products of columns",
            "",
        )
    holds = test.p_value >= LEVEL
    statement = "no difference of variances is shown" if holds else "variances differ with the explaining variables"
    return AssumptionCheck(
        VARIANCES, name, test.statistic, test.degrees_of_freedom, test.p_value, holds, statement, "" if holds else instead
    )


def _normal(of: Fitted) -> AssumptionCheck:
    tested = normality(of.fit.residuals)
    if tested is None:
        return AssumptionCheck(
            NORMAL, "Shapiro-Wilk", None, None, None, None, "not tested: fewer than 8 rows, or no residuals", ""
        )
    holds = tested.p_value >= LEVEL
    statement = f"skewness {tested.skewness:.2g}, excess kurtosis {tested.excess_kurtosis:.2g}"
    advice = ""
    if not holds and of.fit.n >= MANY * of.fit.p:
        advice = f"with {of.fit.n} rows, intervals of coefficients nearly hold; predictions of single runs do not"
    elif not holds:
        advice = "look at the Q-Q plot; try another transformation, or --robust huber"
    name = {"shapiro-wilk": "Shapiro-Wilk", "jarque-bera": "Jarque-Bera"}[tested.test]
    freedom = 2.0 if tested.test == "jarque-bera" else None
    return AssumptionCheck(NORMAL, name, tested.statistic, freedom, tested.p_value, holds, statement, advice)


def _collinear(of: Fitted, inflation: Sequence[Inflation]) -> Iterator[AssumptionCheck]:
    what, test = "independent terms", "GVIF^(1/(2 df))"
    if inflation:
        worst = max(inflation, key=lambda inflated: inflated.scaled)
        holds = worst.scaled < USUAL_LIMIT**0.5
        statement = f"largest {worst.scaled:.3g}, of {worst.term}, before interactions"
        advice = "" if holds else "terms explain each other: omit one, or interpret them together"
        yield AssumptionCheck(what, test, worst.scaled, None, None, holds, statement, advice)
    condition = of.fit.condition
    holds = condition < CONDITION
    statement = f"condition number {condition:.3g} of the whole model's scaled columns"
    advice = "" if holds else "main effects and interactions depend on each other: centre numeric variables, such as centre(x)"
    yield AssumptionCheck(what, "condition number", condition, None, None, holds, statement, advice)


def _outlier(influence: Influence) -> AssumptionCheck:
    what, test = "no outliers", "largest studentised residual (Bonferroni)"
    if influence.outlier is None or influence.outlier_p is None:
        return AssumptionCheck(what, test, None, None, None, None, "not tested: too few rows", "")
    value = float(influence.studentised[influence.outlier])
    holds = influence.outlier_p >= LEVEL
    if not np.isfinite(value):
        return AssumptionCheck(
            what,
            test,
            None,
            None,
            influence.outlier_p,
            False,
            f"only row {influence.outlier + 1} has a residual",
            "look at that run",
        )
    statement = f"{value:.3g} in row {influence.outlier + 1}"
    advice = "" if holds else "look at that run; --robust tukey fits the model without outliers"
    return AssumptionCheck(what, test, value, None, influence.outlier_p, holds, statement, advice)


def _influential(of: Fitted, influence: Influence) -> AssumptionCheck:
    n, p = of.fit.n, of.fit.p
    distances = np.where(np.isfinite(influence.cooks_distance), influence.cooks_distance, -1.0)
    row = int(np.argmax(distances))
    largest = float(distances[row])
    holds = largest <= float(fdtri(p, n - p, 0.5)) and not influence.alone.any()
    outstanding = int(influence.influential.sum())
    statement = f"largest {largest:.3g} in row {row + 1}; {outstanding} of {n} rows stand out by leverage or DFFITS"
    advice = "" if holds else "the fit depends on that row: report the fit without it"
    if influence.alone.any():
        statement += f"; rows that alone determine a coefficient: {int(influence.alone.sum())}"
        advice = "give every combination of levels at least two rows"
    return AssumptionCheck(
        "no row decides", "Cook's distance", largest if largest >= 0 else None, None, None, holds, statement, advice
    )


def _robust(of: Fitted, column: Column) -> AssumptionCheck:
    what, test = "a robust fit agrees", "Huber's M-estimate"
    try:
        estimate = robust(of.fit, of.response)
    except RegressionError as error:
        return AssumptionCheck(what, test, None, None, None, None, f"not tested: {error.message}", "")
    errors = np.array([coefficient.standard_error for coefficient in column.coefficients])
    moves = np.abs(estimate.coefficients - of.fit.coefficients) / np.where(errors > 0, errors, np.inf)
    at = int(np.argmax(moves))
    holds = bool(moves[at] <= 1)
    statement = f"the robust fit moves {of.design.labels[at]} most, by {moves[at]:.2g} of its standard error"
    return AssumptionCheck(
        what, test, float(moves[at]), None, None, holds, statement, "" if holds else "--robust huber shows the robust fit, too"
    )


def _power(of: Fitted) -> Iterator[AssumptionCheck]:
    what, test = "the response's scale", "Box-Cox"
    if of.positive is None:
        statement = "not tested: the response is not above 0 in every row"
        yield AssumptionCheck(what, test, None, None, None, None, statement, "")
    elif of.box_cox is not None and of.power is not None:
        low, high = (
            (-np.inf if of.box_cox.low is None else of.box_cox.low),
            (np.inf if of.box_cox.high is None else of.box_cox.high),
        )
        # With very many rows the interval is too short for a simple power: use the nearest.
        holds = bool(low <= of.power <= high) or of.power == of.box_cox.simple
        beyond = [f"{bound:.3g}" if bound is not None else "beyond 5" for bound in (of.box_cox.low, of.box_cox.high)]
        statement = f"lambda {of.box_cox.best:.3g} [{', '.join(beyond)}] with these terms; the model's is {of.power:.3g}"
        near = "" if of.box_cox.simple_inside else " (the simple power nearest to the interval)"
        advice = "" if holds else f"explain {of.box_cox.meaning}{near}, where y is the response before transformation"
        yield AssumptionCheck(what, test, of.box_cox.best, None, None, holds, statement, advice)


def _dependent(of: Fitted, name: str, groups: NDArray[np.intp]) -> Iterator[AssumptionCheck]:
    try:
        estimate = mixed(of.fit, of.matrix, groups)
    except RegressionError:
        return
    holds = estimate.p_value >= LEVEL
    share = f"{estimate.intraclass_correlation:.2g} of the residual variance lies between levels of {name}"
    advice = "" if holds else f"rows of one {name} resemble each other: --random {name} or --cluster {name}"
    yield AssumptionCheck(
        "independent rows", f"variance between levels of {name}", None, 1.0, estimate.p_value, holds, share, advice
    )
