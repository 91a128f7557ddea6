"""What analyses return: estimates with intervals, comparisons with verdicts, and tables.  Plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from twinbed.model.caution import Caution
from twinbed.model.looks import Look
from twinbed.model.run import Level


class Verdict(StrEnum):
    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval [low, high] at the stated confidence level (0.95 is 95 %)."""

    low: float
    high: float
    level: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean of n replicates (None for n = 0), standard deviation (ddof 1) and interval of the mean (both None for n < 2)."""

    n: int
    mean: float | None
    stdev: float | None
    interval: Interval | None
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of one cell against the reference in the matching cell."""

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
    estimate: Estimate
    reference_estimate: Estimate
    ratio: float | None
    """testbed / reference; None where the scale has no ratio or the reference is 0."""
    ratio_interval: Interval | None
    """At 1 - 2 alpha (90 % for alpha 0.05): inside the margin exactly when the two one-sided tests both reject."""
    margin: float
    verdict: Verdict
    within_rule: bool | None
    """The seeds' rule: means differ by no more than the margin (ICNC, section II)."""
    intervals_overlap: bool | None
    """The seeds' stronger rule: 95 % intervals overlap."""
    cautions: tuple[Caution, ...] = ()
    method: str = ""
    """How the ratio's interval was made: ``log``, ``fieller``, ``exact``, ``unlooked`` before a study's first look, or empty
    where there is none."""
    wide_interval: Interval | None = None
    """At 1 - alpha: outside the margin exactly when the single test for a difference rejects."""
    p_equivalent: float | None = None
    """The larger p-value of the two one-sided tests."""
    p_different: float | None = None
    """p-value of the test that the ratio is outside the margin, after Holm's correction over the family."""
    family: int = 1
    """Number of comparisons that Holm's correction covers."""
    replicates_needed: int | None = None
    """For an inconclusive ratio inside the margin: replicates a testbed that would show equivalence at the same spread."""


@dataclass(frozen=True, slots=True)
class Result:
    """What an analysis returns. ``tables`` maps a title to rows (lists of dicts); ``plots`` a title to a Vega-Lite spec."""

    analysis: str
    comparisons: tuple[Comparison, ...] = ()
    cautions: tuple[Caution, ...] = ()
    look: Look | None = None
    """The look that verdicts are of, of a study that goes on until it is decided."""
    tables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    plots: Mapping[str, dict[str, Any]] = field(default_factory=dict)
