"""Driver ``remote``: hosts over SSH, each leased for a run and put back as it was.

The experiment link belongs to the hosts. twinbed sets its addresses, MTU and offloads, and adds a shaper at each end if the
rate differs from the NIC's. It sets nothing between the NICs; it only checks that packets pass.

In a mixed testbed the lab's switch reaches such a host over a NIC of this machine, and rates are shaped at the switch:

    hybrid: {driver: mixed, client: {driver: container}, server: {driver: remote, uplink: eth1, hosts: {server: root@s1}}}
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Interface

from pydantic import Field

from twinbed.contracts.bed import Applied, Bed
from twinbed.contracts.check import Check
from twinbed.contracts.driver import Driver
from twinbed.contracts.host_settings import HostSettings
from twinbed.contracts.place import Target
from twinbed.contracts.site import Site
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.hosts.lease import Lease, open_leases
from twinbed.hosts.session import Wanted
from twinbed.links import checksums, network
from twinbed.links.lab_bed import Ground, LabDriver, Made
from twinbed.links.layout import Nic
from twinbed.model.caution import Caution, Kind
from twinbed.model.topology import Link, Topology
from twinbed.testbeds.remote import facts
from twinbed.testbeds.remote.check import checks, programs
from twinbed.testbeds.remote.nic import Experiment, applied, chosen, configure, prepare, way
from twinbed.testbeds.remote.settings import RemoteSettings

_REACH_LIMIT_S = 5.0
_REACH_AFTER_LINK_UP_S = 40.0
"""A switch with spanning tree forwards nothing for 30 s after a link comes up."""


class Remote(Driver[RemoteSettings]):
    name = "remote"
    params = RemoteSettings
    summary = "existing hosts over SSH, usually physical: leased for a run and put back as they were"
    also = ("ssh", "physical", "bare_metal", "baremetal", "hardware", "real", "machine", "host")

    def check(self, params: RemoteSettings) -> Sequence[Check]:
        return checks(params)

    def check_programs(self, params: RemoteSettings, wanted: Mapping[str, Collection[str]]) -> Sequence[Check]:
        return programs(params, wanted)

    @contextlib.contextmanager
    def up(self, params: RemoteSettings, topology: Topology, site: Site) -> Iterator[Bed]:
        addresses = _addresses(params, topology)
        image = site.image if params.image == "archive" else None
        wanted = [
            Wanted(params.hosts[name].reached(name), params.lease, image, params.hosts[name].folder) for name in addresses
        ]
        with open_leases(wanted, site.probe) as leases:
            one_kernel = _distinguished(leases)

            def ready(lease: Lease) -> tuple[Experiment, list[Applied]]:
                host = lease.host
                nic = chosen(lease, params.hosts[host.name].nic, network.devices_of(host))
                experiment = prepare(lease, nic, addresses[host.name], topology.link, params)
                threads = facts.set_threads(lease, params.smt)
                configure(host, experiment, topology.link, params)
                network.set_route_metrics(host, [nic], params)
                tcp = network.applied_route_metrics(host, [nic], params)
                return experiment, [*threads, *applied(host, experiment, topology.link, params), *tcp]

            answers = network.on_all(leases, ready)
            ends = {lease.host.name: (lease.host, experiment) for lease, (experiment, _) in zip(leases, answers, strict=True)}
            ways = [item for pair in topology.names() for item in _path(*(ends[name] for name in pair))]
            passports = network.on_all(
                leases, lambda lease: facts.facts(lease, ends[lease.host.name][1].nic, own_tools=image is None)
            )
            hosts = {lease.host.name: lease.host for lease in leases}
            for name in hosts:
                site.place(name)
            yield Bed(
                hosts=hosts,
                addresses={name: str(address.ip) for name, address in addresses.items()},
                targets=[Target(name, {ends[name][1].nic: name}, own_kernel=True, captures=True) for name in hosts],
                applied=[item for _, items in answers for item in items] + ways,
                passport=dict(zip(hosts, passports, strict=True)),
                cautions=[*one_kernel, *_as_found(topology)],
                at_end=watched({name: (host, experiment.nic) for name, (host, experiment) in ends.items()}),
            )


def _addresses(params: RemoteSettings, topology: Topology) -> dict[str, IPv4Interface]:
    """Return each host's address on the experiment link. Raises HostError for a missing host, a pair on two networks, or a
    topology with parts between the hosts."""
    if topology.kind != "pairs" or topology.routers:
        asked = f"routers: {topology.routers}" if topology.routers else f"kind: {topology.kind}"
        raise HostError(f"{asked}: twinbed makes nothing between hosts over SSH; leave it out for this testbed")
    if topology.bystanders:
        raise HostError(f"bystanders: {topology.bystanders}: all hosts over SSH run the workload; leave it out here")
    if topology.client_machines > 1:
        raise HostError(
            f"client_machines: {topology.client_machines}: twinbed cannot move hosts over SSH to other machines; leave it"
            " out for this testbed"
        )
    names = [name for pair in topology.names() for name in pair]
    if missing := [name for name in names if name not in params.hosts]:
        raise HostError(
            f"the testbed has no host for {', '.join(missing)}: its hosts are {', '.join(params.hosts) or 'none'}, and"
            f" {topology.pairs} pair{'s' if topology.pairs > 1 else ''} need {', '.join(names)}"
        )
    addresses: dict[str, IPv4Interface] = {}
    for number, pair in enumerate(topology.names()):
        for role, name in enumerate(pair, start=1):
            addresses[name] = params.hosts[name].address or IPv4Interface(f"10.77.{number}.{role}/24")
        client, server = (addresses[name] for name in pair)
        if client.network != server.network or client.ip == server.ip:
            raise HostError(f"{pair[0]} has {client} and {pair[1]} has {server}: set two addresses in one network")
    return addresses


def _as_found(topology: Topology) -> list[Caution]:
    """Return a caution for settings of switches, since twinbed sets none between these hosts."""
    asked = [f"trunk: {topology.trunk}"] if topology.trunk != "none" else []
    asked += [f"vlan: {topology.vlan}"] if topology.vlan is not None else []
    return [Caution(Kind.NOT_SET, ", ".join(asked))] if asked else []


def _distinguished(leases: Sequence[Lease]) -> list[Caution]:
    """Return a caution for hosts that share a kernel. Raises HostError for hosts that also share its network: they are one."""
    kernels: dict[str, dict[object, str]] = {}
    for lease in leases:
        kernel = facts.boot(lease.host)
        namespace = str(lease.host.connection.hello(0.0).get("netns"))
        if kernel is None:
            continue
        others = kernels.setdefault(kernel, {})
        if namespace in others:
            raise HostError(f"{others[namespace]} and {lease.host.name} are the same host: give two different hosts")
        others[namespace] = lease.host.name
    shared = [", ".join(others.values()) for others in kernels.values() if len(others) > 1]
    return [Caution(Kind.STAND_IN, f"{names} share one kernel") for names in shared]


def _path(client: tuple[AgentHost, Experiment], server: tuple[AgentHost, Experiment]) -> list[Applied]:
    """Check that packets leave by the experiment NIC and arrive."""
    result = []
    for (host, own), (peer, other) in ((client, server), (server, client)):
        address = str(other.address.ip)
        device = way(host, address)
        if device != own.nic:
            raise HostError(
                f"{host.name}: packets to {peer.name} ({address}) leave by {device or 'no NIC'}, not by {own.nic}",
                advice="set address to a network that the management link and its routes do not use",
            )
        result.append(Applied(host.name, "way", own.nic, device, f"ip -j route get {address}"))
    host, own = client
    address = str(server[1].address.ip)
    limit_s = _REACH_LIMIT_S if own.was_up and server[1].was_up else _REACH_AFTER_LINK_UP_S
    before = checksums.dropped(server[0])
    if not host.reaches(address, limit_s):
        after = checksums.dropped(server[0])
        if before is not None and after is not None and after > before:
            raise checksums.Unfinished(host.name, server[0].name, after - before)
        neighbour = host.run(["ip", "neigh", "show", address, "dev", own.nic], check=False).text.strip()
        resolved = "lladdr" in neighbour
        raise HostError(
            f"{host.name}: no answer from {server[0].name} ({address}) by {own.nic} within {limit_s:g} s: "
            + ("it answers ARP but not TCP; check firewalls" if resolved else "not even to ARP; check cable, port and VLAN")
            + f"\n    {neighbour or 'no entry in the neighbour table'}"
        )
    return result


def watched(ends: Mapping[str, tuple[AgentHost, str]]) -> Callable[[], Sequence[Caution]]:
    """Count how often the hosts' links have changed by now. Return a function that reports later changes as cautions."""
    before = {name: facts.carrier_changes(host, nic) for name, (host, nic) in ends.items()}

    def at_end() -> Sequence[Caution]:
        cautions = []
        for name, (host, nic) in ends.items():
            changes, earlier = facts.carrier_changes(host, nic), before[name]
            if changes is not None and earlier is not None and changes != earlier:
                cautions.append(Caution(Kind.LINK_DOWN, f"{name}: {nic}'s carrier changed {changes - earlier} times"))
        return cautions

    return at_end


remote = Remote()


class UplinkedSettings(RemoteSettings):
    uplink: str = Field(
        min_length=1,
        max_length=15,
        examples=["eth1"],
        description="this machine's NIC towards the hosts: up, without addresses; the lab borrows it",
    )


class Uplinked(LabDriver[UplinkedSettings]):
    """Makes hosts over SSH for the driver ``mixed``."""

    name = "remote"
    summary = "hosts over SSH, reached over a NIC of this machine"
    params = UplinkedSettings

    def check(self, params: UplinkedSettings) -> Sequence[Check]:
        return checks(params)

    def check_programs(self, params: UplinkedSettings, wanted: Mapping[str, Collection[str]]) -> Sequence[Check]:
        return programs(params, wanted)

    def maker(self, params: UplinkedSettings, site: Site) -> RemoteMaker:
        return RemoteMaker(params)


class RemoteMaker:
    cpus_each = 0

    def __init__(self, settings: UplinkedSettings) -> None:
        self.settings = settings

    def start(self, ground: Ground, name: str, nics: Sequence[Nic], cpus: tuple[int, ...] | None) -> Made:
        if name not in self.settings.hosts:
            raise HostError(f"the testbed has no host for {name}: over SSH it has {', '.join(self.settings.hosts) or 'none'}")
        if len(nics) > 1:
            raise HostError(f"{name}: a host over SSH has one NIC for the experiment and cannot be a router")
        (nic,), host = nics, self.settings.hosts[name]
        image = ground.site.image if self.settings.image == "archive" else None
        wanted = Wanted(host.reached(name), self.settings.lease, image, host.folder)
        (lease,) = ground.stack.enter_context(open_leases([wanted], ground.site.probe))
        device = chosen(lease, host.nic, network.devices_of(lease.host))
        ground.fabric.attach_uplink(ground.lab, nic, self.settings.uplink)
        ground.site.place(name)

        def own_network(link: Link, settings: HostSettings) -> list[Applied]:
            here = link.at("hosts")
            experiment = prepare(lease, device, IPv4Interface(nic.address), here, settings)
            threads = facts.set_threads(lease, self.settings.smt)
            configure(lease.host, experiment, here, settings)
            return [*threads, *applied(lease.host, experiment, here, settings)]

        return Made(
            lease.host,
            lambda _: ([], facts.facts(lease, device, own_tools=image is None)),
            device=device,
            own_network=own_network,
            at_end=watched({name: (lease.host, device)}),
        )

    def cautions(self) -> Sequence[Caution]:
        return []


uplinked = Uplinked()
