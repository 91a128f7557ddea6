"""What the analysis ``regression`` returns: models with coefficients, checks of what they assume, and effects. Frozen data.

Estimates are on the scale of the model's response: its unit, its logarithm, or its Box-Cox transform.  What cannot be computed
is None; the sentence that goes with it says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from twinbed.model.caution import Caution
from twinbed.model.json import Json
from twinbed.model.result import Interval


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One line of the table. ``statistic`` and ``p`` are None where the standard error is 0."""

    term: str
    estimate: float
    standard_error: float
    freedom: float
    statistic: float | None
    """Student's t of ``freedom`` degrees."""
    p: float | None
    interval: Interval


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change of one variable does, all others held: a difference, and in models of a logarithm a share (0.1 is 10 %)."""

    variable: str
    to: str
    base: str
    at: Mapping[str, str]
    """Where the variables that it interacts with stand."""
    difference: Coefficient
    """On the model's scale."""
    change: float | None
    """e^difference - 1 where the response is a logarithm; None elsewhere, and where that is beyond e^200."""
    change_interval: Interval | None


@dataclass(frozen=True, slots=True)
class Column:
    """One way of fitting a model: a column of the printed table."""

    method: str
    """``least squares``, ``huber``, ``tukey`` or ``mixed``."""
    errors: str
    """``classical``, ``HC3``, ``clustered by NAME``; ``REML`` of a mixed model; what the M-estimate has."""
    why: str
    """Why these errors."""
    coefficients: tuple[Coefficient, ...]
    effects: tuple[Effect, ...]
    facts: Mapping[str, float | None]
    """Named numbers of the whole fit, such as R squared; by method."""


@dataclass(frozen=True, slots=True)
class AssumptionCheck:
    """A test of an assumption; ``holds`` is None where it could not be tested, or has no yes or no."""

    assumption: str
    test: str
    statistic: float | None
    freedom: float | None
    p: float | None
    holds: bool | None
    statement: str
    """The finding in words."""
    advice: str
    """What to use instead; empty where it holds."""


@dataclass(frozen=True, slots=True)
class Inflation:
    """Collinearity of one term, in the model without interactions and powers."""

    term: str
    columns: int
    gvif: float
    scaled: float
    """GVIF^(1/(2 df)): how many times longer the term's intervals are than those of independent terms."""


@dataclass(frozen=True, slots=True)
class Point:
    """One row of the data as the model sees it. ``row`` counts from 1 in what was read, less what was left out.

    Studentised residuals, Cook's distance and DFFITS are None for a row that alone tells some coefficient.
    """

    row: int
    fitted: float
    residual: float
    normal_quantile: float
    """Where a normal residual of its rank would lie, in standard deviations."""
    leverage: float
    standardised: float | None
    studentised: float | None
    cooks_distance: float | None
    dffits: float | None
    influential: bool


@dataclass(frozen=True, slots=True)
class BoxCox:
    """The power of the response that profile likelihood prefers; bounds are None beyond +-5."""

    best: float
    low: float | None
    high: float | None
    simple: float
    meaning: str
    simple_inside: bool


@dataclass(frozen=True, slots=True)
class Model:
    """One formula with all results. The first of ``columns`` is least squares."""

    formula: str
    response: str
    """As the formula has it; with Box-Cox's lambda."""
    logarithm: bool
    n: int
    bases: Mapping[str, str]
    centres: Mapping[str, float]
    columns: tuple[Column, ...]
    checks: tuple[AssumptionCheck, ...]
    first_order: str
    """The model whose terms have the inflations."""
    inflation: tuple[Inflation, ...]
    box_cox: BoxCox | None
    points: tuple[Point, ...]
    """At most some thousand rows: the most remarkable, and others at even steps."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Regression:
    """Models of one response, side by side."""

    source: str
    response: str
    unit: str
    confidence: float
    left_out: Mapping[str, int]
    models: tuple[Model, ...]
    cautions: tuple[Caution, ...]
    """What the runs carried."""


Row = dict[str, Json]


def tables(regression: Regression) -> dict[str, list[Row]]:
    """The analysis as flat rows by the name of their table: for JSON, CSV and Python. ``model`` counts from 1."""
    numbered = list(enumerate(regression.models, 1))
    columns = [(number, model, column) for number, model in numbered for column in model.columns]
    return {
        "models": [
            {
                "model": number,
                "formula": model.formula,
                "response": model.response,
                "observations": model.n,
                "method": column.method,
                "errors": column.errors,
                **_facts(columns, column),
            }
            for number, model, column in columns
        ],
        "coefficients": [
            {"model": number, "method": column.method, "errors": column.errors, **_coefficient(each)}
            for number, _, column in columns
            for each in column.coefficients
        ],
        "effects": [
            {"model": number, "method": column.method, "errors": column.errors, **_effect(each)}
            for number, _, column in columns
            for each in column.effects
        ],
        "checks": [{"model": number, **_check(check)} for number, model in numbered for check in model.checks],
        "inflation": [
            {"model": number, "of": model.first_order, **asdict(each)} for number, model in numbered for each in model.inflation
        ],
        "box_cox": [{"model": number, **asdict(model.box_cox)} for number, model in numbered if model.box_cox],
        "points": [{"model": number, **asdict(point)} for number, model in numbered for point in model.points],
        "notes": [{"model": number, "note": note} for number, model in numbered for note in model.notes],
    }


def _check(check: AssumptionCheck) -> Row:
    """The columns of its row; the statement's has been called ``said`` since the first release."""
    return {"said" if name == "statement" else name: value for name, value in asdict(check).items()}


def _facts(columns: list[tuple[int, Model, Column]], column: Column) -> Row:
    """All facts that any column has, so that rows have the same columns."""
    names = dict.fromkeys(name for _, _, each in columns for name in each.facts)
    return {name: column.facts.get(name) for name in names}


def _coefficient(each: Coefficient) -> Row:
    return {
        "term": each.term,
        "estimate": each.estimate,
        "standard_error": each.standard_error,
        "df": each.freedom,
        "t": each.statistic,
        "p": each.p,
        "low": each.interval.low,
        "high": each.interval.high,
        "level": each.interval.level,
    }


def _effect(each: Effect) -> Row:
    difference = {name: value for name, value in _coefficient(each.difference).items() if name not in ("term", "estimate")}
    return {
        "variable": each.variable,
        "to": each.to,
        "base": each.base,
        "at": ", ".join(f"{name}={value}" for name, value in each.at.items()),
        "difference": each.difference.estimate,
        **difference,
        "change": each.change,
        "change_low": each.change_interval.low if each.change_interval else None,
        "change_high": each.change_interval.high if each.change_interval else None,
    }
