"""Which CPUs of the machine each host of a lab is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.contracts.host_settings import HostSettings, share_cpus
from twinbed.hosts.error import HostError
from twinbed.model.caution import Caution, Kind
from twinbed.model.topology import Topology


@dataclass(frozen=True, slots=True)
class Wants:
    """What a host wants of the machine's CPUs."""

    settings: HostSettings
    cpus_each: int


@dataclass(frozen=True, slots=True)
class Pins:
    """``cpus``: host -> the CPUs that it is pinned to, without hosts that are left to the scheduler. ``used``: those of every
    host. ``wanted``: CPUs that pinned hosts would have, were there enough."""

    cpus: Mapping[str, tuple[int, ...]]
    used: Mapping[str, tuple[int, ...]]
    wanted: int

    def cautions(self, available: Sequence[int]) -> list[Caution]:
        cautions = [Caution(Kind.UNPINNED)] if len(self.cpus) < len(self.used) else []
        if self.wanted > len(available):
            detail = f"{len(self.cpus)} hosts want {self.wanted} CPUs of their own, and there are {len(available)}"
            cautions.append(Caution(Kind.SHARED_CPU, detail))
        return cautions


def pins(hosts: Mapping[str, Wants], topology: Topology, available: Sequence[int]) -> Pins:
    """``hosts`` in their order, which is that in which CPUs are given. Raises HostError where one host of a pair is to share
    its CPUs and the other is not."""
    server_of = dict([*topology.names(), *topology.bystander_names()])
    together: dict[str, list[str]] = {}
    for host, wants in hosts.items():
        if wants.settings.cpus == "none":
            continue
        client = next((client for client, server in server_of.items() if host in (client, server)), host)
        pair = {hosts[name].settings.cpus for name in (client, server_of.get(client, client))}
        if "shared" in pair and len(pair) > 1:
            raise HostError(f"{client} and {server_of[client]}: cpus: shared is of both hosts of a pair, or of neither")
        together.setdefault(client if wants.settings.cpus == "shared" else host, []).append(host)
    wanted = [max(hosts[host].cpus_each for host in group) for group in together.values()]
    shares = share_cpus(wanted, available)
    cpus = {host: share for group, share in zip(together.values(), shares, strict=True) for host in group}
    return Pins(cpus, {host: cpus.get(host, tuple(sorted(available))) for host in hosts}, sum(wanted))
