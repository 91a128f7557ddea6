"""The result of ``compare``: estimates with intervals, comparisons with verdicts, metrics in the order of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, overload

from twinbed.model.caution import Caution, Kind
from twinbed.model.interim import InterimAnalysis
from twinbed.model.result import Interval, Verdict
from twinbed.model.run import Level
from twinbed.model.tables import TESTBED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEW = 5
"""Fewer replicates than this get a caution: neither an outlier nor two modes can be seen in them."""
OTHER_SETTINGS = "other settings"
"""Why runs are left out: the study as it stands does not ask for them."""


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of replicates; its interval holds for any continuous distribution. None for fewer than ``needed`` values."""

    share: float
    """0.5 is the median."""
    value: float
    interval: Interval | None
    needed: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean of n replicates (None for n = 0), standard deviation (ddof 1) and interval of the mean (both None for n < 2)."""

    n: int
    mean: float | None
    stdev: float | None
    interval: Interval | None
    values: tuple[float, ...]
    quantiles: tuple[Quantile, ...] = ()
    """The median and P90, P95, P99; empty for n < 2."""
    centre: float | None = None
    """The mean that ratios are of: geometric where all values are positive, else arithmetic; of sessions, where these are what
    is compared."""
    centre_interval: Interval | None = None
    """Its Student's t interval, of logarithms where it is geometric; None as for that of the mean."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect that is compared on a scale without ratios."""

    name: str
    """``difference`` (of means, in the unit), ``cliffs_delta`` or ``total_variation``."""
    value: float
    interval: Interval | None
    """At 1 - 2 alpha."""
    margin: float | None
    """How far from 0 still counts as equivalent; None where the metric gives none, so that there is no verdict."""
    p_same: float | None = None
    """p-value of no difference at all: Mann and Whitney's, chi-square, exact or by permutation."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How many times as much a testbed varies as the reference. Ratios are None where a standard deviation is 0 or unknown."""

    relative: bool
    """True if ``ratio`` is of the standard deviations of logarithms, or where there are none, of the values themselves."""
    ratio: float | None
    interval: Interval | None
    """At 1 - alpha."""
    deviation_ratio: float | None
    """The ratio of the standard deviations in the unit of the metric."""
    deviation_interval: Interval | None
    variation_ratio: float | None
    """The ratio of the coefficients of variation."""
    p_value: float | None
    """The p-value of equal spreads (Bonett), after Holm's correction over the family."""
    p_brown_forsythe: float | None
    """The p-value of equal spreads by Brown and Forsythe's test, after Holm's correction over its family."""
    p_at_values: float | None = None
    """The same about a value in place of the median, the larger p-value of the two middle ones."""
    family: int = 1
    differs: bool = False
    """True if the spreads are shown to differ at alpha, by ``p_value`` and ``p_at_values``: not by one slow run, or a few."""
    reason: str = ""
    """Why something above is None."""


@dataclass(frozen=True, slots=True)
class AllRuns:
    """A comparison of all runs, where the study leaves some out for a caution."""

    runs: int
    """Runs of the testbed that has fewer."""
    ratio: float | None
    interval: Interval | None
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The first stage of a comparison: one metric of one cell on a testbed and on the reference, before any test."""

    metric: str
    unit: str
    layer: str
    scale: str
    host: str
    direction: str
    headline: bool
    cell: Mapping[str, Level]
    """The levels of all factors but ``testbed``."""
    testbed: str
    reference: str
    by: str = TESTBED
    """The factor whose levels are compared: ``testbed`` and ``reference`` are such levels, named ``workload.keep_alive on``
    where it is another than the testbed."""
    estimate: Estimate
    reference_estimate: Estimate
    margin: float
    within_rule: bool | None
    """The seeds' rule: means differ by no more than the margin (ICNC, section II); None where a share of a mean means
    nothing."""
    intervals_overlap: bool | None
    """The seeds' stronger rule: 95 % intervals overlap."""
    paired: bool = False
    """True if means are compared by differences within blocks or sessions."""
    sessions: tuple[int, int] | None = None
    """How many sessions means are of, here and on the reference; None where they are of runs."""
    step: float = 0.0
    """The step that values are rounded to, in the unit; 0 where none shows."""
    events: bool = False
    """True if values are counts of events."""
    cautions: tuple[Caution, ...] = ()

    @property
    def place(self) -> str:
        """The metric and where it is measured, as responses are named: ``cpu_seconds_per_request@client``."""
        return "@".join(part for part in (self.metric, self.host, self.direction) if part)

    @property
    def runs(self) -> int:
        """The number of runs of the testbed that has fewer."""
        return min(self.estimate.n, self.reference_estimate.n)


@dataclass(frozen=True, kw_only=True)
class Tested:
    """The results of tests of two samples. P-values are not corrected, and the verdict is the tests' own until the last
    stage."""

    ratio: float | None = None
    """testbed / reference; None where the scale has no ratio or the reference is 0."""
    ratio_interval: Interval | None = None
    """At 1 - 2 alpha (90 % for alpha 0.05): inside the margin exactly when the two one-sided tests both reject."""
    wide_interval: Interval | None = None
    """At 1 - alpha: outside the margin exactly when the single test for a difference rejects."""
    verdict: Verdict = Verdict.INCONCLUSIVE
    method: str = ""
    """How the interval was made. Ratios: ``log``, ``fieller``, ``exact``, ``counts`` (of rare events) or ``unseen`` (both are 0
    throughout, so that there is none). Others: ``welch``, ``student`` (of pairs), ``newcombe`` or the test that names were
    compared by. ``unlooked`` before a study's first interim analysis; empty where there is none."""
    p_equivalent: float | None = None
    """The larger p-value of the two one-sided tests."""
    p_different: float | None = None
    """p-value of the test that the ratio is outside the margin."""
    replicates_needed: int | None = None
    """For an inconclusive ratio inside the margin: replicates a testbed that would show equivalence at the same spread."""
    event_counts: tuple[int, int] | None = None
    """How many events a verdict on few of them is of, here and on the reference."""
    pair_deviation: float | None = None
    """The standard deviation of the differences of logarithms within pairs, ddof 1; None where there are none."""
    bootstrap_interval: Interval | None = None
    """The interval of the ratio by BCa, at 1 - 2 alpha, where values are far from normal and there are enough of them."""
    median_ratio: float | None = None
    median_ratio_interval: Interval | None = None
    """At 1 - alpha, by Price and Bonett: for distributions of one mode."""
    spread: Spread | None = None
    """None for fewer than two values on a side, and on scales without differences."""
    effect: Effect | None = None
    """On other scales than ratio."""


@dataclass(frozen=True, kw_only=True)
class Comparison(Measured, Tested):
    """The last stage: ``p_different`` and the spread are corrected for the family, cautions have been heeded, and the verdict
    is final."""

    p_different_alone: float | None = None
    """``p_different`` before the correction, for families of more than one study."""
    family: int = 1
    """Number of comparisons that Holm's correction covers."""
    all_runs: AllRuns | None = None
    """The same of all runs; None where the study leaves none out for a caution."""
    predictable: float | None = None
    """The half-width, as a share, of the reference's mean as a calibration that was kept with the results predicts it here;
    None without one, or where it refuses."""


@dataclass(frozen=True, slots=True)
class Pooled:
    """One headline metric's ratio over all cells that both testbeds have."""

    metric: str
    host: str
    direction: str
    testbed: str
    reference: str
    cells: int
    ratio: float
    """The geometric mean of the cells' ratios."""
    interval: Interval
    """At 1 - 2 alpha."""
    least: float
    most: float
    """The smallest and the largest ratio of a cell."""
    p_agree: float | None
    """p-value that the true ratio is the same in all cells; None where some cell does not vary."""
    agree: bool
    """True if it is not shown at alpha that cells differ."""


@dataclass(frozen=True, slots=True)
class Residual:
    """A run's value less the mean of its cell on its testbed, in the order in which runs were made."""

    order: int
    """From 1."""
    testbed: str
    block: int
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class Residuals(Sequence[Residual]):
    """Residuals of a metric by columns, in the order of runs. ``testbed`` is an index into ``testbeds``."""

    order: NDArray[np.int64]
    testbed: NDArray[np.intp]
    block: NDArray[np.int64]
    value: NDArray[np.float64]
    testbeds: Sequence[str]

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, index: int) -> Residual: ...
    @overload
    def __getitem__(self, index: slice[int | None, int | None, int | None]) -> Residuals: ...
    def __getitem__(self, index: int | slice[int | None, int | None, int | None]) -> Residual | Residuals:
        if isinstance(index, slice):
            return self._rows(index)
        testbed = self.testbeds[self.testbed[index]]
        return Residual(int(self.order[index]), testbed, int(self.block[index]), float(self.value[index]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def of(self, testbed: str) -> Residuals:
        """Return those of one testbed."""
        return self._rows(self.testbed == self.testbeds.index(testbed))

    def _rows(self, rows: slice[int | None, int | None, int | None] | NDArray[np.bool_]) -> Residuals:
        return Residuals(self.order[rows], self.testbed[rows], self.block[rows], self.value[rows], self.testbeds)


@dataclass(frozen=True, slots=True)
class Drift:
    """The effect of order on one metric on one testbed, apart from its cells. P-values are of each test alone."""

    testbed: str
    runs: int
    inside_cells: bool
    """True if ``change`` is from the first to the last run of a cell, as cells were measured one after the other."""
    change: float
    """From the first run to the last: a share (-0.08 is 8 % less) where residuals are relative, else in the unit."""
    p_trend: float
    trend: bool
    """True if a trend is shown at alpha."""
    correlation: float | None
    """Correlation of the rank of each residual with the next's; None for fewer runs than a test needs."""
    p_serial: float | None
    serial: bool


@dataclass(frozen=True, slots=True)
class Ordering:
    """One metric in the order in which runs were made."""

    metric: str
    unit: str
    host: str
    direction: str
    relative: bool
    """True if residuals are of logarithms, or of the values in their unit."""
    residuals: Residuals
    drifts: tuple[Drift, ...]
    blocks: int
    p_blocks: float | None
    """None where runs were not made in blocks, one after the other."""
    blocks_differ: bool
    farthest_block: int | None
    """The block whose residuals are farthest from 0 in the mean."""
    farthest_by: float | None
    """A share where residuals are relative, else in the unit."""


@dataclass(frozen=True, slots=True)
class Estimated:
    """One metric of one cell on one testbed, the reference's too."""

    metric: str
    host: str
    direction: str
    unit: str
    layer: str
    headline: bool
    description: str
    cell: Mapping[str, Level]
    testbed: str
    estimate: Estimate
    few: bool
    """True if there are too few values to see an outlier or two modes."""
    scale: str = ""
    step: float = 0.0
    """The step that values are rounded to, in the unit; 0 where none shows."""
    events: bool = False
    """True if values are counts of events."""


@dataclass(frozen=True, slots=True)
class CellCautions:
    """Cautions about all metrics of a cell on a testbed."""

    cell: Mapping[str, Level]
    testbed: str
    cautions: tuple[Caution, ...]


@dataclass(frozen=True, slots=True)
class Excluded:
    """``ids`` are complete runs with one of the cautions ``kinds``."""

    kinds: Sequence[str]
    ids: frozenset[str]
    runs: Mapping[str, tuple[int, int]]
    """Testbed -> complete runs that are left out, and how many there are."""
    decided_after: int = 0
    """How many runs there were when the study file came to say so."""
    asked_now: bool = False
    """True if the user who asked for the result excludes them, not the study."""

    @property
    def sentence(self) -> str:
        counts = ", ".join(f"{name} {out} of {of}" for name, (out, of) in self.runs.items())
        whose = "as requested for this comparison, not by the study" if self.asked_now else "as the study says"
        return f"Runs left out, {whose} (exclude: {', '.join(self.kinds)}): {counts}."

    def cautions(self) -> Iterator[Caution]:
        shares = {out / of for out, of in self.runs.values() if of}
        if len(shares) > 1:
            counts = ", ".join(f"{name} {out} of {of}" for name, (out, of) in self.runs.items())
            yield Caution(Kind.EXCLUDED_UNEQUALLY, f"{', '.join(self.kinds)}: {counts}")
        if self.asked_now:
            yield Caution(Kind.EXCLUDED_AFTERWARDS, f"{', '.join(self.kinds)}: requested after the results were known")
        elif self.decided_after:
            yield Caution(Kind.EXCLUDED_AFTERWARDS, f"{', '.join(self.kinds)}: after {self.decided_after} runs")


@dataclass(frozen=True, slots=True)
class Comparisons:
    """The result of ``compare`` for a study."""

    comparisons: tuple[Comparison, ...] = ()
    by: str = TESTBED
    """The factor whose levels are compared."""
    about: str = ""
    """A sentence on what is compared, where it is something else than testbeds."""
    alpha: float = 0.05
    """The error of each kind of wrong verdict."""
    cautions: tuple[Caution, ...] = ()
    interim: InterimAnalysis | None = None
    """The look that verdicts are of, of a study that goes on until it is decided."""
    pooled: tuple[Pooled, ...] = ()
    """Pooled ratios of headline metrics in two cells and more."""
    orderings: tuple[Ordering, ...] = ()
    """Headline metrics in the order of runs."""
    estimates: tuple[Estimated, ...] = ()
    """Every metric of every cell and testbed."""
    cell_cautions: tuple[CellCautions, ...] = ()
    """One for every cell that a testbed has runs of."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of runs that are not in it."""
    excluded: Excluded | None = None
    """Runs that the study leaves out for a caution; None where its file names none."""
