"""What the dear testbed gives over uncertain inputs: estimates with intervals, what they rest on, and whether mixing paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from twinbed.model.caution import Caution
from twinbed.model.result import Interval
from twinbed.model.run import Level


@dataclass(frozen=True, slots=True)
class Estimated:
    """One quantity of the dear testbed's values."""

    quantity: str
    """``mean``, ``variance``, ``quantile 0.9``, ``P(< 500)``."""
    value: float
    low: float | None
    """None where nothing bounds it on that side."""
    high: float | None
    testbeds: tuple[str, ...]
    """Cheap ones that were mixed in."""
    alone: Interval | None
    """From the dear testbed's draws alone; None where these do not bound it on both sides."""
    refusal: str
    """Why no other testbed was mixed in; empty where one was."""
    at_equal_time: float | None = None
    """Of the mean: the squared standard error over that of plain Monte Carlo on the dear testbed in the time that all runs of
    the mix took; None where run times are not known, or nothing is mixed in."""


@dataclass(frozen=True, slots=True)
class Testbed:
    name: str
    draws: int
    shared: int
    """With the dear one."""
    correlation: float | None
    """With the dear one, over the shared draws."""
    cap: float | None
    """The most that run noise leaves of it; None where no draw was run twice."""
    seconds: float | None
    """A run."""


@dataclass(frozen=True, slots=True)
class Group:
    """The draws that agree in all factors that are not uncertain."""

    levels: Mapping[str, Level]
    estimates: Sequence[Estimated]
    testbeds: Sequence[Testbed]
    """The dear one first."""


@dataclass(frozen=True, slots=True)
class Multifidelity:
    source: str
    response: str
    unit: str
    dear: str
    """The testbed that is asked about."""
    confidence: float
    groups: Sequence[Group]
    cautions: Sequence[Caution] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of runs or rows that are not in it."""
