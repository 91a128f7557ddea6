"""The result of ``multifidelity``: estimates with intervals, the runs behind them, and whether mixing paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.model.caution import Cautioned
from twinbed.model.result import Interval
from twinbed.model.run import Level


@dataclass(frozen=True, slots=True)
class Estimated:
    """One quantity of the expensive testbed's values."""

    quantity: str
    """``mean``, ``variance``, ``quantile 0.9``, ``P(< 500)``."""
    value: float
    low: float | None
    """None if nothing bounds the value on that side."""
    high: float | None
    testbeds: tuple[str, ...]
    """The cheap testbeds that were mixed in."""
    alone: Interval | None
    """The interval from the expensive testbed's draws alone; None if these do not bound the value on both sides."""
    refusal: str
    """Why no other testbed was mixed in; empty if one was."""
    at_equal_time: float | None = None
    """For the mean: its squared standard error, divided by that of plain Monte Carlo on the expensive testbed in the same total
    time. None if run times are unknown, or nothing is mixed in."""


@dataclass(frozen=True, slots=True)
class Testbed:
    name: str
    draws: int
    shared: int
    """Draws shared with the expensive testbed."""
    correlation: float | None
    """The correlation with the expensive testbed over the shared draws."""
    cap: float | None
    """The largest correlation that run noise allows; None if no draw was run twice."""
    seconds: float | None
    """The length of a run."""


@dataclass(frozen=True, slots=True)
class Group:
    """The draws that agree in all factors that are not uncertain."""

    levels: Mapping[str, Level]
    estimates: Sequence[Estimated]
    testbeds: Sequence[Testbed]
    """The expensive testbed first."""


@dataclass(frozen=True, slots=True)
class Multifidelity(Cautioned):
    source: str
    response: str
    unit: str
    expensive: str
    """The expensive testbed to estimate."""
    confidence: float
    groups: Sequence[Group]
