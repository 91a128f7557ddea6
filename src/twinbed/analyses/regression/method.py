"""The analysis ``regression``: by how much factors and numbers change a response, with intervals and checks.

In: one row an observation (observations/frame.py).  Out: a ``Regression`` (result.py).  For each formula it has coefficients
with errors that suit its residuals, robust and mixed fits on request, effects as percentages, and checks of assumptions.
Limits: effects are linear on the model's scale; one random intercept.  Sources: see twinbed.statistics.regression.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, ConfigDict, Field
from scipy.special import ndtri

from twinbed.analyses.regression import words
from twinbed.analyses.regression.checks import checks
from twinbed.analyses.regression.fits import (
    Asked,
    Change,
    Fitted,
    data_of,
    fitted,
    least_squares,
    mixed_column,
    response_of,
    robust_column,
)
from twinbed.analyses.regression.result import Column, Inflation, Model, Point, Regression
from twinbed.contracts.analysis import Placed, RowsAnalysis
from twinbed.model.error import TwinbedError
from twinbed.model.json import Json
from twinbed.model.near import did_you_mean, instead, nearest
from twinbed.model.tables import Tables
from twinbed.model.units import QuantityError, parse_size
from twinbed.observations.frame import Frame, of_tables
from twinbed.show.section import Section
from twinbed.statistics.regression.collinearity import first_order, inflation
from twinbed.statistics.regression.design import bind
from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.formula import Formula, read
from twinbed.statistics.regression.inference import Influence, Value, influence
from twinbed.statistics.regression.robust import Weighting

BLOCK = "block"
"""The column of a study's blocks: rows of one block may resemble each other."""


def _pairs(given: object) -> object:
    """Read several NAME=VALUE as a mapping."""
    if not isinstance(given, list | tuple):
        return given
    pairs: dict[str, str] = {}
    for pair in map(str, given):
        name, _, value = (part.strip() for part in pair.partition("="))
        if not name or not value:
            raise ValueError(f"{pair!r} is not NAME=VALUE, such as nic=e1000")
        several = [part.strip() for part in pair.split(",")]
        if len(several) > 1 and all(_PAIR.fullmatch(part) for part in several):
            raise ValueError(
                f"{pair!r} has several NAME=VALUE; give an option for each: {' and '.join(map(shlex.quote, several))}"
            )
        pairs[name] = value
    return pairs


def _change(given: object) -> object:
    """Read NAME, NAME=TO or NAME=TO:FROM."""
    if not isinstance(given, str):
        return given
    name, _, change = given.partition("=")
    to, _, base = change.partition(":")
    return name.strip(), to.strip() or None, base.strip() or None


Pairs = Annotated[Mapping[str, str], BeforeValidator(_pairs)]
Changed = Annotated[tuple[str, str | None, str | None], BeforeValidator(_change)]
_PAIR = re.compile(r"[A-Za-z_]\w*\s*=\s*[^=]+")


class RegressionParams(Placed):
    """The settings of ``regression``."""

    model_config = ConfigDict(populate_by_name=True)

    formulas: tuple[str, ...] = Field(
        min_length=1, alias="formula", description="RESPONSE ~ TERMS; may be repeated, for models side by side"
    )
    bases: Pairs = Field(
        default={}, alias="base", description="FACTOR=LEVEL: the level that others are compared with; may be repeated"
    )
    effects: tuple[Changed, ...] = Field(
        default=(),
        alias="effect",
        description="NAME[=TO[:FROM]]: the effect of this change, in % for log models. Default: every level, from the base "
        "level; may be repeated",
    )
    at: Pairs = Field(default={}, description="NAME=VALUE: the value of a variable that an effect depends on; may be repeated")
    errors: Literal["auto", "classical", "hc3"] = Field(
        default="auto", description="standard errors. auto: HC3 where variances are shown to differ"
    )
    cluster: str | None = Field(
        default=None, description="errors clustered by this column, within whose levels rows depend on each other"
    )
    random: str | None = Field(
        default=None, description="also a mixed model, with a random intercept for each level of this column"
    )
    robust: Literal["huber", "tukey"] | None = Field(
        default=None, description="also an M-estimate, a fit that large residuals do not dominate"
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="the confidence of intervals")
    stars: bool = Field(default=False, description="show standard errors and significance stars instead of intervals")


class RegressionAnalysis(RowsAnalysis[RegressionParams, Regression]):
    """By how much do factors and numbers change a response? Fits a linear model, and checks its assumptions.

    Takes the runs in RESULTS, or the rows of FILE (CSV or Parquet). Intervals hold if variances differ.

    \b
    Formulas: a + b           effects of a and of b
              a * b           and their interaction: a + b + a:b
              log(y) ~ ...    effects as percentages; boxcox(y) finds the best power
              centre(x)       x less its mean; centre(x, 1): less 1
              C(x)            a number as categorical; C(x, base=8)
              I(x^2)          arithmetic

    \b
      twinbed analyse regression results/ --formula "log(requests_per_second) ~ testbed * payload"
      twinbed analyse regression runs.csv --formula "log(rps) ~ centre(pairs, 1) * nic" \\
        --base nic=e1000 --effect nic=container --at pairs=40
      twinbed analyse regression runs.csv --formula "rtt ~ nic" --formula "rtt ~ nic * load" -o table.tex
      twinbed analyse regression runs.csv --formula "boxcox(rtt) ~ nic" --random block

    --effect nic=container --at pairs=40 prints by how many percent a container's response differs from the base level's at 40
    pairs, other variables held.
    """

    name = "regression"
    params = RegressionParams
    epilog = "docs/analyse-regression.md explains each number, and how to read the checks."
    table_names = ("coefficients", "models", "effects", "checks", "inflation", "box_cox", "points", "notes")

    def columns(self, params: RegressionParams) -> tuple[str, tuple[str, ...]]:
        formulas = _read(params)
        response = response_of(formulas)
        others = [name for formula in formulas for name in formula.names if name != response]
        others += [name for name in (params.cluster, params.random) if name is not None]
        return response, tuple(dict.fromkeys(others))

    def run(self, source: Tables | Frame, params: RegressionParams | None = None) -> Regression:
        """Return all models. A study's reference is the base level of its testbeds."""
        if params is None:
            raise TwinbedError("a regression needs a formula", advice="such as log(requests_per_second) ~ testbed")
        asked, columns = self.columns(params)
        frame = source if isinstance(source, Frame) else of_tables(source, asked, params.host, params.direction)
        for name in columns:
            frame.column(name)
        reference = frame.reference
        formulas = _read(params)
        response = response_of(formulas)
        bases = dict(params.bases)
        if reference is not None and reference in map(
            str, frame.columns["testbed"].levels if "testbed" in frame.columns else ()
        ):
            bases.setdefault("testbed", reference)
        _check_bases(params, formulas)
        try:
            models = tuple(_model(frame, formula, response, bases, params) for formula in formulas)
            _check_effects(params, formulas, models)
        except RegressionError as error:
            left_out = "; ".join(f"left out: {count} {reason}" for reason, count in frame.left_out.items())
            raise TwinbedError(error.message, advice="; ".join(filter(None, (_advice(error), left_out)))) from error
        return Regression(
            frame.source, frame.response, frame.unit, params.confidence, frame.left_out, models, frame.cautions, params.stars
        )

    def section(self, result: Regression) -> Section:
        return words.section(result)

    def facts(self, result: Regression) -> Mapping[str, Json]:
        return {"response": result.response, "unit": result.unit or None, "confidence": result.confidence}


def _read(params: RegressionParams) -> list[Formula]:
    try:
        return [read(text) for text in params.formulas]
    except RegressionError as error:
        raise TwinbedError(error.message, advice=_advice(error)) from error


def _advice(error: RegressionError) -> str:
    return f"{did_you_mean(nearest(error.name, error.known))} {error.advice}".strip()


def _check_bases(params: RegressionParams, formulas: Sequence[Formula]) -> None:
    used = {name for formula in formulas for name in formula.names}
    for name in params.bases:
        if name not in used:
            raise TwinbedError(f"--base: no formula has {name}", advice=instead(name, sorted(used)))


def _check_effects(params: RegressionParams, formulas: Sequence[Formula], models: Sequence[Model]) -> None:
    """Check the requested effects. Raises RegressionError for one that no model has."""
    effects = [effect for model in models for effect in model.columns[0].effects]
    for variable, _, _ in params.effects:
        if variable not in {effect.variable for effect in effects}:
            names = {name for formula in formulas for name in formula.names} - {response_of(formulas)}
            raise RegressionError(
                f"--effect: no model has {variable} on its right side", f"models have {', '.join(sorted(names)) or 'none'}"
            )
    for name in params.at:
        if not any(name in effect.at for effect in effects):
            raise RegressionError(
                f"--at {name}: no requested effect depends on it",
                "give an --effect whose variable interacts with it, or omit --at",
            )


def _model(frame: Frame, formula: Formula, response: str, bases: Mapping[str, str], params: RegressionParams) -> Model:
    data = data_of(frame, formula, response)
    own = {name: base for name, base in bases.items() if name in formula.names}
    of = fitted(formula, data, own, params.confidence)
    asked = Asked(
        params.confidence, tuple(_changes(of, params)), {name: _value(of, name, at) for name, at in params.at.items()}
    )
    cluster = (params.cluster, _codes(frame, params.cluster, of)) if params.cluster else None
    plain = least_squares(of, params.errors, cluster, asked)
    columns = [plain]
    if params.robust is not None:
        columns.append(robust_column(of, Weighting(params.robust), asked))
    if params.random is not None:
        columns.append(mixed_column(of, params.random, _codes(frame, params.random, of), asked))
    elif (within := _within_blocks(frame, formula, params, of, asked)) is not None:
        columns.insert(0, within)
    influences = influence(of.fit)
    before = first_order(formula)
    first = bind(before, data, own)
    inflations = tuple(
        Inflation(inflated.term, inflated.columns, inflated.gvif, inflated.scaled)
        for inflated in inflation(first.terms, first.matrix)
    )
    block = None
    if BLOCK in frame.columns and not {BLOCK} & {params.cluster, params.random, *formula.names}:
        block = (BLOCK, _codes(frame, BLOCK, of))
    factors = [factor for term in of.design.terms for factor, _ in term.factors]
    return Model(
        formula=formula.text,
        response=of.label,
        logarithm=of.natural is not None,
        n=of.fit.n,
        bases={factor.source: factor.levels[0] for factor in factors if factor.levels},
        centres={name: at for factor in factors for name, at in factor.centres.items()},
        columns=tuple(columns),
        checks=tuple(checks(of, plain, influences, inflations, block)),
        first_order=before.text,
        inflation=inflations,
        box_cox=of.box_cox,
        points=points(of, influences),
        notes=tuple(_notes(of, frame)),
    )


def _within_blocks(frame: Frame, formula: Formula, params: RegressionParams, of: Fitted, asked: Asked) -> Column | None:
    """Return the column of a random intercept for each block, which comes first if the study compares within blocks. None if it
    does not, if the settings handle dependent rows, or if the fit is impossible."""
    if not frame.paired or params.cluster is not None or params.errors != "auto" or BLOCK in formula.names:
        return None
    try:
        return mixed_column(of, BLOCK, _codes(frame, BLOCK, of), asked, "the study compares within blocks: ")
    except RegressionError:
        return None


def _notes(of: Fitted, frame: Frame) -> Iterator[str]:
    yield from (f"Left out: {count} {reason}." for reason, count in frame.left_out.items())
    yield from (f"Left out: {count} rows without {name}." for name, count in of.design.missing.items())
    if of.fit.exact:
        yield "The model fits every row exactly, so there are no errors to test with."


def _codes(frame: Frame, name: str, of: Fitted) -> NDArray[np.intp]:
    """Return the codes of a column's levels, from 0, in the used rows."""
    _, codes = np.unique(frame.column(name).codes[of.design.rows], return_inverse=True)
    return codes.astype(np.intp)


def _changes(of: Fitted, params: RegressionParams) -> Iterator[Change]:
    for variable, to, base in params.effects:
        if variable not in of.design.sources:
            continue
        start = None if base is None else _value(of, variable, base)
        if to is not None:
            yield Change(variable, _value(of, variable, to), start)
        elif levels := of.design.levels(variable):
            yield from (Change(variable, level, start) for level in levels if level != (base or levels[0]))
        else:
            raise RegressionError(f"--effect: {variable} is a number", f"give both values: --effect {variable}=TO:FROM")


def _value(of: Fitted, name: str, text: str) -> Value:
    """Return the value as a level if the variable is categorical in the model, else as a number or a size in bytes."""
    if of.design.levels(name):
        return text
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return float(parse_size(text))
    except QuantityError:
        return text


MOST = 2000
"""A figure cannot separate more points."""
REMARKABLE = 100


def points(of: Fitted, influence: Influence) -> tuple[Point, ...]:
    """Return rows of the data for figures, in their order: the most remarkable ones, and others at even steps."""
    n = of.fit.n
    quantiles = np.empty(n)
    # Blom's positions (1958).
    quantiles[np.argsort(of.fit.residuals, kind="stable")] = ndtri((np.arange(1, n + 1) - 0.375) / (n + 0.25))
    return tuple(
        Point(
            row=int(of.design.rows[at]) + 1,
            fitted=float(of.fit.fitted[at]),
            residual=float(of.fit.residuals[at]),
            normal_quantile=float(quantiles[at]),
            leverage=float(influence.leverage[at]),
            standardised=_finite(influence.standardised[at]),
            studentised=_finite(influence.studentised[at]),
            cooks_distance=_finite(influence.cooks_distance[at]),
            dffits=_finite(influence.dffits[at]),
            influential=bool(influence.influential[at]),
        )
        for at in _chosen(n, influence).tolist()
    )


def _chosen(n: int, influence: Influence) -> NDArray[np.intp]:
    if n <= MOST:
        return np.arange(n)
    remarkable = [
        np.argsort(np.nan_to_num(np.abs(values), nan=np.inf))[-REMARKABLE:]
        for values in (influence.studentised, influence.cooks_distance)
    ]
    return np.unique(np.concatenate([*remarkable, np.linspace(0, n - 1, MOST - 2 * REMARKABLE).astype(np.intp)]))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


analysis = RegressionAnalysis()
