"""The explicit list of every plugin.  A new one is its file and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinbed.instruments.counters import counters
from twinbed.instruments.packets import packets
from twinbed.instruments.syscalls import syscalls
from twinbed.model.study import Catalogue
from twinbed.testbeds.container import container
from twinbed.testbeds.fake import fake
from twinbed.testbeds.qemu import qemu
from twinbed.testbeds.remote import remote
from twinbed.workloads.http import http
from twinbed.workloads.planted import planted


@dataclass(frozen=True, slots=True)
class Plugins:
    """Name -> plugin."""

    drivers: Mapping[str, Any]
    workloads: Mapping[str, Any]
    instruments: Mapping[str, Any]


PLUGINS = Plugins(
    drivers={driver.name: driver for driver in (container, qemu, remote, fake)},
    workloads={workload.name: workload for workload in (http, planted)},
    instruments={instrument.name: instrument for instrument in (packets, counters, syscalls)},
)


def analysis(name: str) -> Any:
    """An analysis by its name. Imported only when asked for: the statistics behind them are slow to load."""
    from twinbed.analyses.anova import anova
    from twinbed.analyses.chain import chain
    from twinbed.analyses.compare import compare
    from twinbed.analyses.regression import regression

    return {each.name: each for each in (compare, chain, anova, regression)}[name]


def catalogue() -> Catalogue:
    """The settings that a study file may give to each plugin."""
    return Catalogue(
        drivers={name: plugin.params for name, plugin in PLUGINS.drivers.items()},
        workloads={name: plugin.params for name, plugin in PLUGINS.workloads.items()},
        instruments={name: plugin.params for name, plugin in PLUGINS.instruments.items()},
    )
