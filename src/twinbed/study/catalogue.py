"""The catalogue of what a study file may name: plugins with their settings, metrics, and printed tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from twinbed.contracts.params import BackgroundParams, DriverParams, InstrumentParams, WorkloadParams
from twinbed.study.run import Choice


def _unknown(_workload: Choice[WorkloadParams], _beside: Sequence[str]) -> Mapping[str, str]:
    return {}


def _none() -> Mapping[str, Sequence[str]]:
    return {}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The plugins a study may name: kind -> its params model, whose fields are the settings it has."""

    drivers: Mapping[str, type[DriverParams]]
    workloads: Mapping[str, type[WorkloadParams]]
    instruments: Mapping[str, type[InstrumentParams]]
    backgrounds: Mapping[str, type[BackgroundParams]] = field(default_factory=dict)
    summaries: Mapping[str, str] = field(default_factory=dict)
    """Plugin -> one line for readers. Each name belongs to one plugin of any kind."""
    also: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Plugin -> other words that people search for."""
    metrics: Callable[[Choice[WorkloadParams], Sequence[str]], Mapping[str, str]] = _unknown
    """Return the metrics, with their units, of a run with a workload and other plugins (instruments, background loads).
    Empty: names are not checked."""
    formats: Callable[[], Mapping[str, Sequence[str]]] = _none
    """Return the formats of files that other tools made, and the metrics of each."""
    printed: Sequence[str] = ()
    """The names of printed tables. Empty: names are not checked."""
