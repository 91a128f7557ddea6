"""What the analysis ``regression`` returns: models with coefficients, checks of what they assume, and effects. Frozen data.

Estimates are on the scale of the model's response: its unit, its logarithm, or its Box-Cox transform.  What cannot be computed
is None; the sentence that goes with it says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.model.caution import Caution
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
    stars: bool = False
    """Whether readers get standard errors and stars of significance in place of intervals."""
