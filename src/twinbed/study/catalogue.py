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
    summaries: Mapping[str, str] = field(default_factory=dict)
    """Plugin -> one line for readers. No two plugins of any kind have one name."""
    also: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Plugin -> other words by which it is looked for."""
    metrics: Callable[[str, Sequence[str]], Mapping[str, str]] = _unknown
    """The metrics, with their units, of a run with a workload and with what else measures (instruments, background loads).
    Empty: names are not checked."""
    printed: Sequence[str] = ()
    """The printed tables that there are. Empty: names are not checked."""
