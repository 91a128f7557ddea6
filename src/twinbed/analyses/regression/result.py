"""The result of ``regression``: models with coefficients, checks of their assumptions, and effects.

Estimates are on the scale of the model's response: its unit, its logarithm, or its Box-Cox transform.  A value that cannot be
computed is None, with the reason in its sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.model.caution import Caution
from twinbed.model.result import Interval


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One line of the table. ``statistic`` and ``p`` are None if the standard error is 0."""

    term: str
    estimate: float
    standard_error: float
    freedom: float
    statistic: float | None
    """Student's t with ``freedom`` degrees."""
    p: float | None
    interval: Interval


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a change of one variable, others held: a difference, and in models of a logarithm a share (0.1 is 10 %)."""

    variable: str
    to: str
    base: str
    at: Mapping[str, str]
    """The values of the variables that it interacts with."""
    difference: Coefficient
    """The difference on the model's scale."""
    change: float | None
    """e^difference - 1 if the response is a logarithm; None otherwise, and beyond e^200."""
    change_interval: Interval | None


@dataclass(frozen=True, slots=True)
class Column:
    """One way of fitting a model: a column of the printed table."""

    method: str
    """``least squares``, ``huber``, ``tukey`` or ``mixed``."""
    errors: str
    """``classical``, ``HC3``, ``clustered by NAME``; ``REML`` for a mixed model; ``of the M-estimate``."""
    why: str
    """Why these errors."""
    coefficients: tuple[Coefficient, ...]
    effects: tuple[Effect, ...]
    facts: Mapping[str, float | None]
    """Numbers of the whole fit by name, such as R squared; they depend on the method."""


@dataclass(frozen=True, slots=True)
class AssumptionCheck:
    """A test of an assumption; ``holds`` is None if it could not be tested, or has no yes or no."""

    assumption: str
    test: str
    statistic: float | None
    freedom: float | None
    p: float | None
    holds: bool | None
    statement: str
    """The finding in words."""
    advice: str
    """The alternative; empty if the assumption holds."""


@dataclass(frozen=True, slots=True)
class Inflation:
    """Collinearity of one term, in the model without interactions and powers."""

    term: str
    columns: int
    gvif: float
    scaled: float
    """GVIF^(1/(2 df)): the factor by which the term's intervals are longer than with independent terms."""


@dataclass(frozen=True, slots=True)
class Point:
    """One row of the data in the model. ``row`` counts from 1 in what was read, without omitted rows.

    Studentised residuals, Cook's distance and DFFITS are None for a row that alone determines a coefficient.
    """

    row: int
    fitted: float
    residual: float
    normal_quantile: float
    """The place of a normal residual of its rank, in standard deviations."""
    leverage: float
    standardised: float | None
    studentised: float | None
    cooks_distance: float | None
    dffits: float | None
    influential: bool


@dataclass(frozen=True, slots=True)
class BoxCox:
    """The power of the response with the best profile likelihood; bounds are None beyond +-5."""

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
    """The response as in the formula, with Box-Cox's lambda."""
    logarithm: bool
    n: int
    bases: Mapping[str, str]
    centres: Mapping[str, float]
    columns: tuple[Column, ...]
    checks: tuple[AssumptionCheck, ...]
    first_order: str
    """The model that the inflations belong to."""
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
    """The cautions of the runs."""
    stars: bool = False
    """True if readers get standard errors and significance stars instead of intervals."""
