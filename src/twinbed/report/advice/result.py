"""What ``advise`` gives: rules of thumb with their evidence, which metrics to trust, and what is still open."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from twinbed.model.caution import Kind
from twinbed.model.comparison import Comparison


class Topic(StrEnum):
    """What a rule is about."""

    STANDS_IN = "stands in"
    """Where one testbed may be taken for another, and where not."""
    SETTING = "setting"
    """What a setting does on a testbed."""
    FITS = "fits"
    """How many fit."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """What is held against what."""

    source: str
    """The results, as the user knows them."""
    subject: str
    """The testbed, or the level of a setting: ``offload off``."""
    against: str
    testbed: str = ""
    """Where a setting was varied; empty for a testbed against the reference."""
    factor: str = ""

    @property
    def topic(self) -> Topic:
        return Topic.SETTING if self.factor else Topic.STANDS_IN


@dataclass(frozen=True, slots=True)
class Span:
    """Cells of one verdict: the least and the largest estimate, and the bounds that hold all of their intervals. Of ratios, or
    where a scale has none, of effects. None where there are no bounds."""

    cells: int
    least: float
    most: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of thumb. All that are given hold together, at the stated error."""

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
    """Those that are shown to differ."""
    p_value: float | None
    """The largest of the cells', corrected over all that was tested; None of how many fit, whose tests have their own share."""
    cautions: tuple[Kind, ...]
    command: str
    """Shows more."""
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """What is said in one sentence: the same of one or several metrics."""

    topic: Topic
    sentence: str
    rules: tuple[Rule, ...]
    """One a metric."""
    command: str
    """Shows more."""

    @property
    def cautions(self) -> tuple[Kind, ...]:
        return tuple(dict.fromkeys(kind for rule in self.rules for kind in rule.cautions))


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one of the results shows."""

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
    """What is not advised, and what would settle it."""

    contrast: Contrast
    metric: str
    places: tuple[str, ...]
    """The cells that are open; empty texts where there is one alone."""
    runs: int
    """The least there are, on the side that has fewer."""
    few: bool
    """Whether there are too few to conclude from."""
    replicates: int | None
    """About how many of each cell would settle all of those that replicates settle; None where none would."""
    first: int | None
    """About how many would settle the one that needs fewest."""
    never: int
    """Cells that no reasonable number settles."""
    reason: str
    """Why of those."""


@dataclass(frozen=True, slots=True)
class Basis:
    """Results that advice rests on."""

    source: str
    study: str
    runs: int
    reference: str | None
    unreal: tuple[str, ...]
    """Which testbeds are no machines, and what they are."""
    margin: float


@dataclass(frozen=True, slots=True)
class Advice:
    """All of it."""

    bases: tuple[Basis, ...]
    statements: tuple[Statement, ...]
    trusted: tuple[Trusted, ...]
    open: tuple[Open, ...]
    error: float
    """The chance that any rule is wrong, at most."""
    tested: int
    """Comparisons and objectives that the error is spread over."""
    notes: tuple[str, ...] = ()
    """What could not be asked, and why."""
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Each metric by itself."""
        return tuple(rule for each in self.statements for rule in each.rules)
