"""What a study file may name: the plugins with the settings that each has, their metrics, and the printed tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from twinbed.contracts.params import BackgroundParams, DriverParams, InstrumentParams, WorkloadParams


def _unknown(_workload: str, _beside: Sequence[str]) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The plugins a study may name: kind -> its params model, whose fields are the settings it has."""

    drivers: Mapping[str, type[DriverParams]]
    workloads: Mapping[str, type[WorkloadParams]]
    instruments: Mapping[str, type[InstrumentParams]]
    backgrounds: Mapping[str, type[BackgroundParams]] = field(default_factory=dict)
    metrics: Callable[[str, Sequence[str]], Mapping[str, str]] = _unknown
    """Of a workload and what measures beside it (instruments, a background load): the metrics that a run with them has, and
    their units. Empty: names are not checked."""
    printed: Sequence[str] = ()
    """The printed tables that there are. Empty: names are not checked."""
