"""Driver ``mixed``: clients, servers and routers made by different drivers, in one lab.

    mixed: {driver: mixed, client: {driver: container}, server: {driver: qemu, nic: e1000}}

It also serves for two kinds of guests, or for one kind with different settings at each end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model

from twinbed.contracts.bed import Bed
from twinbed.contracts.check import Check
from twinbed.contracts.driver import Driver
from twinbed.contracts.params import ROLES, DriverParams
from twinbed.contracts.site import Site
from twinbed.links.lab_bed import LabDriver, lab_bed
from twinbed.model.topology import Topology


class _KindOfHost(DriverParams):
    """Settings of hosts that name their driver. ``Mixed`` makes subclasses with the field ``driver``."""

    if TYPE_CHECKING:
        driver: str

    def made_by(self, driver: str) -> str:
        return self.driver


class MixedSettings(DriverParams):
    """Settings by role. ``Mixed`` makes a subclass with the fields ``client``, ``server`` and ``router``."""

    def kinds(self) -> Mapping[str, DriverParams]:
        """Return the settings of each role; without a router's, routers are like servers."""
        given: dict[str, DriverParams] = {role: getattr(self, role) for role in ROLES}
        return {**given, "router": given["router"] or given["server"]}

    def estimate_seconds(self) -> float:
        """Return the longest estimate: hosts come up side by side."""
        return max(kind.estimate_seconds() for kind in self.kinds().values())


def _only(name: str) -> Any:
    """Return the type of this one text."""
    return Literal[name]


class Mixed(Driver[MixedSettings]):
    in_lab = True
    name = "mixed"
    summary = (
        "clients, servers and routers of different kinds in one lab: containers with guests, or guests with different NICs"
    )
    also = ("hybrid", "heterogeneous", "mix")

    def __init__(self, drivers: Mapping[str, LabDriver[Any]]) -> None:
        """Take the drivers that may make hosts."""
        self._drivers = drivers
        kinds: list[type[DriverParams]] = [
            create_model(
                f"{name.title()}Host",
                __base__=(_KindOfHost, driver.params),
                driver=(_only(name), Field(description="driver of these hosts")),
            )
            for name, driver in drivers.items()
        ]
        kind: Any = Annotated[reduce(or_, kinds), Field(discriminator="driver")]
        self.params: type[MixedSettings] = create_model(
            "MixedSettings",
            __base__=MixedSettings,
            client=(kind, Field(examples=[{"driver": "container"}], description="the clients: a driver and its settings")),
            server=(kind, Field(examples=[{"driver": "qemu"}], description="the servers: a driver and its settings")),
            router=(kind | None, Field(None, examples=[{"driver": "qemu"}], description="the routers; null: like servers")),
        )

    def check(self, params: MixedSettings) -> Sequence[Check]:
        checks = [check for kind in params.kinds().values() for check in self._maker(kind).check(kind)]
        return list(dict.fromkeys(checks))

    def check_programs(self, params: MixedSettings, wanted: Mapping[str, Collection[str]]) -> Sequence[Check]:
        checks = [check for kind in params.kinds().values() for check in self._maker(kind).check_programs(kind, wanted)]
        return list(dict.fromkeys(checks))

    def up(self, params: MixedSettings, topology: Topology, site: Site) -> contextlib.AbstractContextManager[Bed]:
        makers = {role: self._maker(kind).maker(kind, site) for role, kind in params.kinds().items()}
        return lab_bed(makers, topology, site)

    def _maker(self, kind: DriverParams) -> LabDriver[Any]:
        return self._drivers[kind.made_by(self.name)]
