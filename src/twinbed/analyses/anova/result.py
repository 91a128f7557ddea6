"""The result of an analysis of variance: how much of a response's variation each factor explains.

All values are on the scale of the model: the response's unit, or its natural logarithm if ``logarithm`` is true.  A value that
cannot be computed is None, with its reason in ``Anova.notes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.model.caution import Caution
from twinbed.model.result import Interval
from twinbed.model.run import Level
from twinbed.statistics.assumptions import Residual

Term = tuple[str, ...]
"""The factors of a term, in the model's order: one is a main effect, several an interaction."""


def term_text(term: Term) -> str:
    """Return ``testbed:payload``, as R and statsmodels write it."""
    return ":".join(term)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table. The line of the errors has no F; without errors no line has one."""

    term: Term
    """Empty for the errors."""
    sum_of_squares: float
    share: float
    """The share of the total sum of squares about the mean: 0.25 is 25 % of the variation."""
    freedom: int
    mean_square: float | None
    f: float | None = None
    critical: float | None = None
    """The table's F at the confidence level."""
    p: float | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """The distance of a combination of levels from the prediction of lower terms; of a main effect from the mean of all."""

    term: Term
    levels: tuple[Level, ...]
    estimate: float
    standard_error: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class SignEffect:
    """A column of the sign table of a 2^k r design: half the change from the first level to the second."""

    term: Term
    effect: float
    sum_of_squares: float
    share: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean at a level of a factor, over equally weighted cells of the others; with all ``factors``, a cell's mean."""

    factors: Term
    levels: tuple[Level, ...]
    n: int
    mean: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Difference:
    """The second level's mean less the first's."""

    factor: str
    first: Level
    second: Level
    neighbours: bool
    """True for differences of neighbours, False for all pairs."""
    estimate: float
    standard_error: float | None
    interval: Interval | None
    """The interval of this difference by itself."""
    simultaneous: Interval | None
    """The interval that holds together with all others of its kind."""
    p: float | None
    p_simultaneous: float | None
    method: str
    """How the simultaneous interval was made."""


@dataclass(frozen=True, slots=True)
class AssumptionCheck:
    """A test of an assumption; ``holds`` None if it could not be tested."""

    assumption: str
    """``equal variances`` or ``normal errors``."""
    test: str
    statistic: float | None
    p: float | None
    holds: bool | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A test of a term that does not need a failed assumption."""

    term: Term
    test: str
    instead_of: str
    """The assumption that the test does not need."""
    statistic: float | None
    freedom: tuple[float, ...]
    p: float | None


@dataclass(frozen=True, slots=True)
class Truncation:
    """The cost of dropping terms from the whole model."""

    dropped: tuple[Term, ...]
    share: float
    """The share of the variation that they explained."""
    r_squared: float
    """R squared of the whole model."""
    f: float | None
    """F of all dropped terms together, by the errors of the whole model."""
    p: float | None


@dataclass(frozen=True, slots=True)
class Anova:
    """The whole analysis."""

    source: str
    response: str
    unit: str
    logarithm: bool
    kind: str
    """The type of sums of squares: I, II or III."""
    confidence: float
    n: int
    factors: Mapping[str, tuple[Level, ...]]
    cells: int
    balanced: bool
    terms: tuple[Term, ...]
    mean: float
    squares: float
    """SSY: the sum of the squared responses."""
    mean_squares: float
    """SS0: n times the squared mean."""
    total: float
    """SST = SSY - SS0, computed about the mean."""
    lines: tuple[Line, ...]
    """One line a term, in the model's order."""
    errors: Line
    r_squared: float
    effects: tuple[Effect, ...]
    signs: tuple[SignEffect, ...]
    """Empty unless it is a 2^k r design."""
    means: tuple[Mean, ...]
    cell_means: tuple[Mean, ...]
    differences: tuple[Difference, ...]
    checks: tuple[AssumptionCheck, ...]
    alternatives: tuple[Alternative, ...]
    truncation: Truncation | None
    residuals: tuple[Residual, ...]
    notes: tuple[str, ...]
    """Choices, omissions and missing values with their reasons, one sentence each."""
    cautions: tuple[Caution, ...] = ()
    """The cautions of the runs."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """Return nothing: ``notes`` reports omissions."""
        return {}


@dataclass(frozen=True, slots=True)
class Unexplained:
    """A response that cannot be analysed, and why."""

    response: str
    reason: str
    """Without a full stop."""
