"""Driver ``mixed``: clients, servers and routers made by different drivers, in one lab.

    mixed: {driver: mixed, client: {driver: container}, server: {driver: qemu, nic: e1000}}

Also for two kinds of guests against each other, or the same kind with settings of its own at either end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from twinbed.contracts.plugin import Bed, Check
from twinbed.hosts.site import Site
from twinbed.links.lab_bed import lab_bed
from twinbed.model.topology import Topology


class _Mixed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def kinds(self) -> dict[str, Any]:
        """Role -> what makes it; routers are made as the servers are unless they are given."""
        given: dict[str, Any] = {role: getattr(self, role) for role in ("client", "server", "router")}
        return {**given, "router": given["router"] or given["server"]}

    def estimate_seconds(self) -> float:
        """What a run takes beside its workload: hosts come up side by side."""
        return max(float(kind.estimate_seconds()) for kind in self.kinds().values())


def _only(name: str) -> Any:
    """The type of that text alone."""
    return Literal[name]


class Mixed:
    name = "mixed"
    summary = (
        "clients, servers and routers of different kinds in one lab: containers with guests, or guests with different NICs"
    )

    def __init__(self, drivers: Mapping[str, Any]) -> None:
        """``drivers`` are those that have a ``maker``."""
        self._drivers = drivers
        kinds: list[Any] = [
            create_model(f"{name.title()}Host", __base__=driver.params, driver=(_only(name), ...))
            for name, driver in drivers.items()
        ]
        kind: Any = Annotated[reduce(or_, kinds), Field(discriminator="driver")]
        self.params: type[_Mixed] = create_model(
            "MixedSettings",
            __base__=_Mixed,
            client=(kind, Field(description="what clients are: a driver and its settings")),
            server=(kind, Field(description="what servers are: a driver and its settings")),
            router=(kind | None, Field(None, description="what routers are; null: as servers")),
        )

    def check(self, params: Any) -> Sequence[Check]:
        found: list[Check] = []
        for kind in params.kinds().values():
            found += [check for check in self._drivers[kind.driver].check(kind) if check not in found]
        return found

    def check_programs(self, params: Any, wanted: Mapping[str, Collection[str]]) -> Sequence[Check]:
        found: list[Check] = []
        for kind in params.kinds().values():
            driver = self._drivers[kind.driver]
            if hasattr(driver, "check_programs"):
                found += [check for check in driver.check_programs(kind, wanted) if check not in found]
        return found

    def up(self, params: Any, topology: Topology, site: Site) -> contextlib.AbstractContextManager[Bed]:
        makers = {role: self._drivers[kind.driver].maker(kind, site) for role, kind in params.kinds().items()}
        return lab_bed(makers, topology, site)
