"""Fit one formula: least squares with errors that suit its residuals, and robust and mixed fits on request."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from twinbed.analyses.regression.result import BoxCox, Coefficient, Column, Effect
from twinbed.model.error import TwinbedError
from twinbed.model.result import Interval
from twinbed.model.run import Level, level_text
from twinbed.model.units import magnitudes
from twinbed.observations import frame as frames
from twinbed.observations.frame import Frame
from twinbed.statistics.regression import evaluation
from twinbed.statistics.regression.box_cox import box_cox, transformed
from twinbed.statistics.regression.design import Design
from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.evaluation import Categorical, Numeric
from twinbed.statistics.regression.expression import BOX_COX, Expression, second
from twinbed.statistics.regression.formula import Formula
from twinbed.statistics.regression.inference import Value, classical, clustered, coefficient, difference, hc3
from twinbed.statistics.regression.least_squares import Doubles, Fit, fit, fit_formula
from twinbed.statistics.regression.mixed import mixed
from twinbed.statistics.regression.residuals import ChiSquare, breusch_pagan, few_a_cell, white
from twinbed.statistics.regression.robust import Weighting, robust


def response_of(formulas: Sequence[Formula]) -> str:
    """Return the column that the models explain. Raises TwinbedError if there is none, or several."""
    responses = dict.fromkeys(next(iter(formula.response.names), "") for formula in formulas)
    if "" in responses:
        raise TwinbedError("the formula's response is not a column", advice="such as log(requests_per_second) ~ testbed")
    if len(responses) > 1:
        raise TwinbedError(
            f"models side by side must explain one response, not {' and '.join(responses)}",
            advice="use a command for each response",
        )
    return next(iter(responses))


def data_of(frame: Frame, formula: Formula, response: str) -> dict[str, evaluation.Column]:
    """Return the columns that a formula uses; the response has the formula's name for it."""
    columns: dict[str, evaluation.Column] = {response: Numeric(frame.y)}
    return columns | {name: _typed_column(frame.column(name)) for name in formula.names if name != response}


def _typed_column(column: frames.Column) -> evaluation.Column:
    if column.numeric:
        return Numeric(column.numbers())
    return Categorical(column.codes, tuple(map(level_text, column.levels)), _sizes(column.levels))


def _sizes(levels: Sequence[Level]) -> tuple[float, ...] | None:
    """Return sizes such as 1MiB in bytes, for formulas that need numbers; None if levels are no sizes."""
    known = magnitudes([str(level) for level in levels])
    return tuple(size[1] for size in known if size) if all(size and size[0] == "bytes" for size in known) else None


LEVEL = 0.05
"""The level of the tests of assumptions."""
LOGARITHMS = {"log": 1.0, "log2": float(np.log(2)), "log10": float(np.log(10))}
"""The factor that turns a difference of this logarithm into one of natural logarithms."""
FEW_CLUSTERS = 20
MOST_EXPONENT = 200.0
"""A ratio with a larger exponent of e is too large to print."""


@dataclass(frozen=True, slots=True)
class Change:
    """A requested effect: the change of ``variable`` from ``base`` (None: its base level) to ``to``."""

    variable: str
    to: Value
    base: Value | None


@dataclass(frozen=True, slots=True)
class Asked:
    """The requested values of every column."""

    confidence: float
    effects: Sequence[Change]
    at: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A formula's design and least squares fit.

    ``natural`` turns differences into differences of natural logarithms; None if the response is no logarithm. ``positive``:
    the response before its transformation, if known and above 0.
    """

    design: Design
    data: Mapping[str, evaluation.Column]
    matrix: Doubles
    response: Doubles
    fit: Fit
    natural: float | None
    positive: Doubles | None
    power: float | None
    """The power of the response in Box and Cox's family: 1 for the response itself, 0 for its logarithm."""
    box_cox: BoxCox | None
    label: str
    pagan: ChiSquare | None
    white: ChiSquare | None
    few_a_cell: bool
    """True if a cell has too few rows to test whether variances differ."""


def fitted(formula: Formula, data: Mapping[str, evaluation.Column], bases: Mapping[str, str], confidence: float) -> Fitted:
    """Fit by least squares. Raises RegressionError."""
    design, estimated = fit_formula(formula, data, bases)
    response = design.response.astype(np.float64)
    call = formula.response
    natural, power, label = None, 1.0, str(call)
    original = response
    if call.function in LOGARITHMS:
        natural, power = LOGARITHMS[call.function], 0.0
        original = np.exp(natural * response)
    elif call.function == BOX_COX:
        power = _power(call, response, estimated, confidence)
        natural = 1.0 if power == 0 else None
        label = f"{call.argument}^({power:.4g})" if power else f"log({call.argument})"
        response = transformed(response, power)
        if np.ptp(response) <= 1e-12 * float(np.max(np.abs(response))):
            raise RegressionError(f"{call} at lambda {power:g} leaves no differences between rows", "use the response itself")
        estimated = fit(design.matrix, response, design.labels, design.constant)
    positive = original if bool(np.all(original > 0)) else None
    matrix = design.matrix.astype(np.float64, copy=False)
    preferred = None
    if positive is not None and not estimated.exact:  # an exact fit has no likelihood
        at = box_cox(positive, estimated.q, confidence)
        preferred = BoxCox(at.best, at.low, at.high, at.simple, at.meaning, at.simple_inside)
    few = few_a_cell(estimated, matrix)
    tests = (None, None) if estimated.exact or few else (breusch_pagan(estimated), white(estimated, matrix))
    return Fitted(design, data, matrix, response, estimated, natural, positive, power, preferred, label, *tests, few)


def _power(call: Expression, response: Doubles, fit: Fit, confidence: float) -> float:
    """Return the given power, else the simple one in the interval, else the best."""
    if isinstance(call.tree, ast.Call) and (given := second(call.tree)) is not None:
        return given
    at = box_cox(response, fit.q, confidence)
    return at.simple if at.simple_inside else round(at.best, 4)


def least_squares(
    of: Fitted,
    errors: Literal["auto", "classical", "hc3"],
    cluster: tuple[str, NDArray[np.intp]] | None,
    asked: Asked,
) -> Column:
    """Return the column of the least squares fit."""
    freedom = float(of.fit.degrees_of_freedom)
    unequal = unequal_variances(of)
    if cluster is not None:
        name, codes = cluster
        groups = int(codes.max()) + 1
        if groups < 2:
            raise RegressionError(f"all rows have one {name}, so errors cannot be clustered by it", "omit --cluster")
        covariance, freedom = clustered(of.fit, codes), groups - 1.0
        least = np.diag(covariance) / np.diag(of.fit.root @ of.fit.root.T)
        if least.min() < 1e-12 * of.fit.variance:
            term = of.design.labels[int(np.argmin(least))]
            raise RegressionError(
                f"errors clustered by {name} cannot estimate the error of {term}, which its levels determine",
                f"cluster by a column with several levels for each {term}",
            )
        label, why = f"clustered by {name}", f"requested; {groups} clusters"
        if groups < FEW_CLUSTERS:
            why += f", which make intervals too short: --random {name} needs fewer"
    elif errors == "hc3" or (errors == "auto" and unequal):
        why = "requested" if errors == "hc3" else "the residuals' variances are shown to differ"
        try:
            covariance, label = hc3(of.fit), "HC3"
        except RegressionError as error:
            if errors == "hc3":
                raise
            covariance, label = classical(of.fit), "classical"
            why = f"variances differ, but HC3 errors are impossible: {error.message}; these intervals may be wrong"
    else:
        covariance, label = classical(of.fit), "classical"
        why = "requested" if errors == "classical" else "the residuals' variances are not shown to differ"
        if errors == "classical" and unequal:
            why += ", though variances are shown to differ"
    frees = np.full(of.fit.p, freedom)
    return _column("least squares", label, why, of, (of.fit.coefficients, covariance, frees), asked, _facts(of))


def unequal_variances(of: Fitted) -> bool:
    """Return whether either test rejects equal variances."""
    return any(test is not None and test.p_value < LEVEL for test in (of.pagan, of.white))


def robust_column(of: Fitted, weighting: Weighting, asked: Asked) -> Column:
    """Return the column of an M-estimate."""
    estimate = robust(of.fit, of.response, weighting)
    facts: dict[str, float | None] = {
        "residual_standard_deviation": estimate.scale,
        "rows_of_half_weight_or_less": float(np.sum(estimate.weights <= 0.5)),
    }
    frees = np.full(of.fit.p, float(of.fit.degrees_of_freedom))
    return _column(
        str(weighting), "of the M-estimate", "", of, (estimate.coefficients, estimate.covariance, frees), asked, facts
    )


def mixed_column(of: Fitted, name: str, groups: NDArray[np.intp], asked: Asked, reason: str = "") -> Column:
    """Return the column of a model with a random intercept; ``reason`` begins its explanation."""
    estimate = mixed(of.fit, of.matrix, groups)
    facts: dict[str, float | None] = {
        "residual_standard_deviation": estimate.residual_variance**0.5,
        "group_standard_deviation": estimate.group_variance**0.5,
        "groups": float(estimate.groups),
        "intraclass_correlation": estimate.intraclass_correlation,
        "p_no_group_variance": estimate.p_value,
    }
    why = f"{reason}a random intercept for each of {estimate.groups} levels of {name}, by restricted likelihood"
    estimates = (estimate.coefficients, estimate.covariance, estimate.degrees_of_freedom)
    return _column("mixed", "REML", why, of, estimates, asked, facts)


Estimates = tuple[Doubles, Doubles, Doubles]
"""Coefficients, their covariance, their degrees of freedom."""


def _column(
    method: str, errors: str, why: str, of: Fitted, estimates: Estimates, asked: Asked, facts: Mapping[str, float | None]
) -> Column:
    values, covariance, frees = estimates
    deviations = np.sqrt(np.diag(covariance))
    coefficients = tuple(
        _coefficient(label, float(values[at]), float(deviations[at]), float(frees[at]), asked.confidence)
        for at, label in enumerate(of.design.labels)
    )
    effects = tuple(_effect(of, change, estimates, asked) for change in asked.effects)
    return Column(method, errors, why, coefficients, effects, facts)


def _coefficient(term: str, estimate: float, error: float, freedom: float, level: float) -> Coefficient:
    if freedom < 1:
        raise RegressionError(f"there are too few groups to estimate the error of {term}", "use another random effect")
    tested = coefficient(estimate, error, freedom, level)
    return Coefficient(
        term, estimate, error, freedom, tested.statistic, tested.p_value, Interval(tested.low, tested.high, level)
    )


def _effect(of: Fitted, change: Change, estimates: Estimates, asked: Asked) -> Effect:
    values, covariance, frees = estimates
    base = change.base if change.base is not None else _base(of.design, change.variable)
    where = {name: value for name, value in asked.at.items() if _meets(of.design, change.variable, name)}
    contrast = difference(of.design, of.data, change.variable, change.to, base, where)
    if not np.any(contrast):
        raise RegressionError(
            f"{change.variable} from {base} to {change.to} is not a change in this model", "give two different values"
        )
    freedom = float(frees[contrast != 0].min())
    name = f"{change.variable} {change.to} against {base}"
    deviation = float(np.sqrt(contrast @ covariance @ contrast))
    estimate = _coefficient(name, float(contrast @ values), deviation, freedom, asked.confidence)
    share, interval = None, None
    exponents = [(of.natural or 0.0) * value for value in (estimate.estimate, estimate.interval.low, estimate.interval.high)]
    if of.natural is not None and max(exponents) < MOST_EXPONENT:
        share, low, high = map(math.expm1, exponents)
        interval = Interval(low, high, asked.confidence)
    return Effect(
        change.variable, _text(change.to), _text(base), {n: _text(v) for n, v in where.items()}, estimate, share, interval
    )


def _text(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:.15g}"


def _meets(design: Design, variable: str, name: str) -> bool:
    return name != variable and any({variable, name} <= set(term.sources) for term in design.terms)


def _base(design: Design, variable: str) -> str:
    if levels := design.levels(variable):
        return levels[0]
    raise RegressionError(f"{variable} has no base level in this model", f"give both values: --effect {variable}=TO:FROM")


def _facts(of: Fitted) -> dict[str, float | None]:
    test = of.fit.test_of_all
    return {
        "r_squared": of.fit.r_squared,
        "adjusted_r_squared": of.fit.adjusted_r_squared,
        "residual_standard_deviation": of.fit.variance**0.5,
        "df": float(of.fit.degrees_of_freedom),
        "f": test.statistic if test else None,
        "f_df": float(test.numerator) if test else None,
        "f_p": test.p_value if test else None,
        "condition_number": of.fit.condition,
    }
