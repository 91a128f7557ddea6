"""The plugins of this twinbed by their names, as the lab and extraction are handed them.  ``registry`` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from twinbed.contracts.analysis import Analysis
from twinbed.contracts.background import Background
from twinbed.contracts.driver import Driver
from twinbed.contracts.instrument import Instrument
from twinbed.contracts.workload import Workload

# Each plugin takes params of its own class. The settings of a run were validated by that class, so that a plugin that is called
# with the params of a run is handed what it takes.
AnyDriver: TypeAlias = Driver[Any]
AnyWorkload: TypeAlias = Workload[Any]
AnyInstrument: TypeAlias = Instrument[Any]
AnyBackground: TypeAlias = Background[Any]
AnyAnalysis: TypeAlias = Analysis[Any, Any]
"""Likewise of its own params, and with a result of its own."""


@dataclass(frozen=True, slots=True)
class Plugins:
    """Name -> plugin."""

    drivers: Mapping[str, AnyDriver]
    workloads: Mapping[str, AnyWorkload]
    instruments: Mapping[str, AnyInstrument]
    backgrounds: Mapping[str, AnyBackground]

    @property
    def accompanying(self) -> Mapping[str, AnyInstrument | AnyBackground]:
        """All that measures beside the workload."""
        return {**self.instruments, **self.backgrounds}
