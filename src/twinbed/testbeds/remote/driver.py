"""Driver ``remote``: hosts over SSH, each leased for a run and put back as it was.

The experiment link is the hosts' own: twinbed gives it addresses, MTU, offloads and, where its rate is to be another than the
NIC's, a shaper at each end.  twinbed sets nothing of what lies between the NICs; it only checks that packets pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Interface

from twinbed.contracts.bed import Applied, Bed
from twinbed.contracts.check import Check
from twinbed.contracts.driver import Driver
from twinbed.contracts.place import Target
from twinbed.contracts.site import Site
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.hosts.lease import Lease, open_leases
from twinbed.hosts.session import Wanted
from twinbed.links import checksums, network
from twinbed.model.caution import Caution, Kind
from twinbed.model.topology import Topology
from twinbed.testbeds.remote import facts
from twinbed.testbeds.remote.check import checks, programs
from twinbed.testbeds.remote.nic import Experiment, applied, chosen, configure, prepare, way
from twinbed.testbeds.remote.settings import RemoteSettings
from twinbed.testbeds.remote.threads import set_threads

_REACH_LIMIT_S = 5.0
_REACH_AFTER_LINK_UP_S = 40.0
"""A switch with spanning tree forwards nothing for 30 s after a link has come up."""


class Remote(Driver[RemoteSettings]):
    name = "remote"
    params = RemoteSettings
    summary = "hosts over SSH, physical ones first of all: leased for a run, and put back as they were"
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
            one_kernel = _told_apart(leases)

            def ready(lease: Lease) -> tuple[Experiment, list[Applied]]:
                host = lease.host
                nic = chosen(lease, params.hosts[host.name].nic, network.devices_of(host))
                experiment = prepare(lease, nic, addresses[host.name], topology.link, params)
                threads = set_threads(lease, params.smt)
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
    """Host -> its address on the experiment link. Raises HostError where one is missing, a pair is not on one network, or the
    topology asks for what lies between the hosts."""
    if topology.kind != "pairs" or topology.routers:
        asked = f"routers: {topology.routers}" if topology.routers else f"kind: {topology.kind}"
        raise HostError(f"{asked}: what lies between hosts over SSH is not twinbed's to make; leave it out for this testbed")
    if topology.bystanders:
        raise HostError(f"bystanders: {topology.bystanders}: hosts over SSH are those of the workload; leave it out here")
    if topology.client_machines > 1:
        raise HostError(
            f"client_machines: {topology.client_machines}: hosts over SSH are on the machines that they are on, not spread by"
            " twinbed; leave it out for this testbed"
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
            raise HostError(f"{pair[0]} has {client} and {pair[1]} has {server}: they must be two addresses of one network")
    return addresses


def _as_found(topology: Topology) -> list[Caution]:
    """A caution about what the study asks of switches: those between these hosts are as they are."""
    asked = [f"trunk: {topology.trunk}"] if topology.trunk != "none" else []
    asked += [f"vlan: {topology.vlan}"] if topology.vlan is not None else []
    return [Caution(Kind.NOT_SET, ", ".join(asked))] if asked else []


def _told_apart(leases: Sequence[Lease]) -> list[Caution]:
    """Hosts that share a kernel stand in for machines; those that share its network too are one host."""
    kernels: dict[str, dict[object, str]] = {}
    for lease in leases:
        kernel = facts.boot(lease.host)
        network_of = str(lease.host.connection.hello(0.0).get("netns"))
        if kernel is None:
            continue
        others = kernels.setdefault(kernel, {})
        if network_of in others:
            raise HostError(f"{others[network_of]} and {lease.host.name} are one and the same host: two are needed")
        others[network_of] = lease.host.name
    shared = [", ".join(others.values()) for others in kernels.values() if len(others) > 1]
    return [Caution(Kind.STAND_IN, f"{names} share one kernel") for names in shared]


def _path(client: tuple[AgentHost, Experiment], server: tuple[AgentHost, Experiment]) -> list[Applied]:
    """Checks that packets leave by the experiment NIC, and really arrive."""
    result = []
    for (host, own), (peer, other) in ((client, server), (server, client)):
        address = str(other.address.ip)
        device = way(host, address)
        if device != own.nic:
            raise HostError(
                f"{host.name}: packets to {peer.name} ({address}) leave by {device or 'no NIC'}, not by {own.nic}: the"
                " experiment needs a network that the management link and its routes do not have"
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
            f"{host.name}: nothing comes back from {server[0].name} ({address}) by {own.nic} within {limit_s:g} s: "
            + (
                "it answers ARP but not TCP: does a firewall drop it?"
                if resolved
                else "not even ARP: look at cable, port and VLAN"
            )
            + f"\n    {neighbour or 'no entry in the neighbour table'}"
        )
    return result


def watched(ends: Mapping[str, tuple[AgentHost, str]]) -> Callable[[], Sequence[Caution]]:
    """Counts how often the hosts' links have gone down by now, to compare at the end."""
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
