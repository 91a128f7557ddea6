"""The plugins of this twinbed by name, for the lab and for extraction. ``registry`` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from twinbed.contracts.analysis import Analysis
from twinbed.contracts.background import Background
from twinbed.contracts.driver import Driver
from twinbed.contracts.installed import Both
from twinbed.contracts.instrument import Instrument
from twinbed.contracts.workload import Workload

# Each plugin takes params of its own class. That class has validated the settings of a run, so a plugin that is called with the
# params of a run gets the right type.
AnyDriver: TypeAlias = Driver[Any]
AnyWorkload: TypeAlias = Workload[Any]
AnyInstrument: TypeAlias = Instrument[Any]
AnyBackground: TypeAlias = Background[Any]
AnyAnalysis: TypeAlias = Analysis[Any, Any]
"""Likewise with its own params and result."""


@dataclass(frozen=True, slots=True)
class Plugins:
    """Plugins by name."""

    drivers: Mapping[str, AnyDriver]
    workloads: Mapping[str, AnyWorkload]
    instruments: Mapping[str, AnyInstrument]
    backgrounds: Mapping[str, AnyBackground]

    @property
    def accompanying(self) -> Mapping[str, AnyInstrument | AnyBackground]:
        """Return all instruments and background loads."""
        return Both(self.instruments, self.backgrounds)
