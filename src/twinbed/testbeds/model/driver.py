"""Driver ``model``: no hosts and no links, but a simulation of the workloads http and iperf3 over the study's links.

It needs nothing from the machine. Its numbers are computed, and every run carries a caution about this.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence

from twinbed.contracts.bed import Applied, Bed
from twinbed.contracts.check import Check
from twinbed.contracts.driver import Driver
from twinbed.contracts.place import MACHINE
from twinbed.contracts.site import Site
from twinbed.hosts.error import HostError
from twinbed.links.layout import layout
from twinbed.model.caution import Caution, Kind
from twinbed.model.topology import Link, Topology
from twinbed.testbeds.model.host import ModelHost, Network
from twinbed.testbeds.model.settings import ModelSettings

_NOT_MODELLED = {
    "wrk": ("tool: wrk", "tool: ab"),
    "openssl": ("https", "https: off"),
    "planted-response": ("kind: planted", "the driver fake"),
}
"""Program to the setting that starts it, and what to use instead."""
_ONLY_PAIRS = "not modelled: only pairs on one switch, which is never the bottleneck, are"


class Model(Driver[ModelSettings]):
    name = "model"
    params = ModelSettings
    in_process = True
    summary = "no hosts: a simulation of http (ab) and iperf3 over the study's links"
    also = ("simulation", "simulator", "ns3", "ns_3", "omnet", "emulation")

    def check(self, params: ModelSettings) -> Sequence[Check]:
        return []

    def check_programs(self, params: ModelSettings, wanted: Mapping[str, Collection[str]]) -> Sequence[Check]:
        started = {program for programs in wanted.values() for program in programs}
        return [
            Check(f"model: {what}", False, "is not modelled", f"for this testbed: {instead}")
            for program, (what, instead) in _NOT_MODELLED.items()
            if program in started
        ]

    def check_topology(self, topology: Topology) -> Sequence[Check]:
        return [
            Check(f"model: {what}", False, _ONLY_PAIRS, "leave it out for this testbed") for what in _not_modelled(topology)
        ]

    @contextlib.contextmanager
    def up(self, params: ModelSettings, topology: Topology, site: Site) -> Iterator[Bed]:
        if missing := _not_modelled(topology):
            raise HostError(f"{', '.join(missing)}: {_ONLY_PAIRS}")
        nics = layout(topology).nics
        network = Network(topology, params, f"{site.seed}/{site.run}")
        for name, (nic, *_) in nics.items():
            address = nic.address.partition("/")[0]
            network.by_address[address] = ModelHost(name, str(site.place(name)), address, network)
        hosts = {host.name: host for host in network.by_address.values()}
        settings = params.model_dump(mode="json")
        yield Bed(
            hosts=hosts,
            addresses={name: host.address for name, host in hosts.items()},
            targets=[],
            applied=[item for host in hosts.values() for item in _applied(host, params, topology.link)],
            passport={MACHINE: {"kind": "model: no machine"}, **{name: {"kind": "model", **settings} for name in hosts}},
            cautions=[Caution(Kind.MODELLED)],
        )


def _not_modelled(topology: Topology) -> list[str]:
    """List the parts of a topology that a model lacks."""
    asked = {
        f"kind: {topology.kind}": topology.kind != "pairs",
        f"routers: {topology.routers}": topology.routers > 0,
        f"trunk: {topology.trunk}": topology.trunk != "none",
        f"bystanders: {topology.bystanders}": topology.bystanders > 0,
    }
    return [what for what, is_asked in asked.items() if is_asked]


def _applied(host: ModelHost, params: ModelSettings, link: Link) -> Iterator[Applied]:
    """Compare settings and link as asked with those that the host's simulations use."""
    source = "the model itself"
    settings, taken = host.network.settings, host.network.topology.link
    values = settings.model_dump(mode="json")
    for name, asked in params.model_dump(mode="json").items():
        yield Applied(host.name, name, asked, values[name], source)
    tcp = settings.tcp(host.network.topology)
    yield Applied(host.name, "mss", None, tcp.mss_bytes, source)
    yield Applied(host.name, "window", None, tcp.window_bytes, source)
    for name in ("rate", "shaper", "delay", "jitter", "loss", "mtu"):
        yield Applied(host.name, name, getattr(link, name), getattr(taken, name), source)
    yield Applied(host.name, "burst", link.burst_bytes, taken.burst_bytes, source)
    yield Applied(host.name, "queue", link.queue_packets, taken.queue_packets, source)


model = Model()
