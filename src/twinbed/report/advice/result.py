"""The result of ``advise``: rules of thumb with evidence, metrics to trust, and inconclusive comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from twinbed.model.caution import Kind
from twinbed.model.comparison import Comparison


class Topic(StrEnum):
    """The subject of a rule."""

    STANDS_IN = "stands in"
    """Where one testbed can replace another, and where not."""
    SETTING = "setting"
    """The effect of a setting on a testbed."""
    FITS = "fits"
    """How many fit."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """A testbed and its reference, or two levels of a setting."""

    source: str
    """The results, as the user knows them."""
    subject: str
    """The testbed, or the level of a setting: ``offload off``."""
    against: str
    testbed: str = ""
    """The testbed on which a setting varied; empty for a testbed and its reference."""
    factor: str = ""

    @property
    def topic(self) -> Topic:
        return Topic.SETTING if self.factor else Topic.STANDS_IN


@dataclass(frozen=True, slots=True)
class Span:
    """Cells of one verdict: the smallest and largest estimate, and limits that cover their confidence intervals (None without).

    The values are ratios, or effects where a scale has no ratio."""

    cells: int
    least: float
    most: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of thumb. All rules hold together, at the stated error."""

    topic: Topic
    sentence: str
    source: str
    testbed: str
    against: str
    metric: str
    """With its place, as responses are named; an objective where the rule is how many fit."""
    layer: str
    cells: int
    """Cells, or numbers of pairs, that it rests on."""
    runs: tuple[int, int]
    """The least and the most runs of one of them, on the side that has fewer."""
    within: Span | None
    """The cells that are shown to be equivalent."""
    beyond: Span | None
    """The cells that are shown to differ."""
    p_value: float | None
    """The largest p-value of the cells, corrected for all tests; None for how many fit, which has its own share."""
    cautions: tuple[Kind, ...]
    command: str
    """Shows more."""
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence about one or several metrics."""

    topic: Topic
    sentence: str
    rules: tuple[Rule, ...]
    """One for each metric."""
    command: str
    """Shows more."""

    @property
    def cautions(self) -> tuple[Kind, ...]:
        return tuple(dict.fromkeys(kind for rule in self.rules for kind in rule.cautions))


@dataclass(frozen=True, slots=True)
class Evidence:
    """A comparison in one results folder."""

    source: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Results of the same contrast, metric and workload, whose verdicts exclude each other."""

    contrast: Contrast
    """Without a source."""
    metric: str
    """With its place, as responses are named."""
    equivalent: tuple[Evidence, ...]
    different: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Count:
    """A metric, and in how many of its cells it was shown to be equivalent, and to differ."""

    metric: str
    equivalent: int
    different: int
    cells: int


@dataclass(frozen=True, slots=True)
class Trusted:
    """The metrics of one layer of a testbed."""

    source: str
    testbed: str
    against: str
    layer: str
    metrics: tuple[Count, ...]


@dataclass(frozen=True, slots=True)
class Open:
    """An inconclusive metric, and how many replicates would decide it."""

    contrast: Contrast
    metric: str
    places: tuple[str, ...]
    """The inconclusive cells; empty texts where there is only one cell."""
    runs: int
    """The fewest runs of a cell, on the side with fewer."""
    few: bool
    """True with too few runs for any verdict."""
    replicates: int | None
    """About how many replicates of each cell decide all cells that replicates can decide; None without such cells."""
    first: int | None
    """About how many decide the cell that needs fewest."""
    never: int
    """Cells that no reasonable number decides."""
    reason: str
    """The reason for these cells."""


@dataclass(frozen=True, slots=True)
class Basis:
    """Results that advice rests on."""

    source: str
    study: str
    runs: int
    reference: str | None
    unreal: tuple[str, ...]
    """Testbeds that are no machines, with what they are."""
    margin: float


@dataclass(frozen=True, slots=True)
class Advice:
    """Everything that ``advise`` prints."""

    bases: tuple[Basis, ...]
    statements: tuple[Statement, ...]
    trusted: tuple[Trusted, ...]
    open: tuple[Open, ...]
    error: float
    """The largest chance that any rule is wrong."""
    tested: int
    """Comparisons and objectives that the error is spread over."""
    notes: tuple[str, ...] = ()
    """Questions that the results cannot answer, with the reason."""
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of single metrics."""
        return tuple(rule for statement in self.statements for rule in statement.rules)
