"""A testbed inside a lab: switches, and hosts of any kinds, each brought up by the maker of its kind, all at the same time."""

from __future__ import annotations

import contextlib
import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from twinbed.contracts.bed import Applied, Bed, Facts, WakeUp
from twinbed.contracts.driver import Driver
from twinbed.contracts.host_settings import HostSettings, LabHostSettings, share_cpus
from twinbed.contracts.params import ROLES, DriverParams
from twinbed.contracts.place import MACHINE, Target
from twinbed.contracts.site import Site
from twinbed.hosts import awake
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import Lab, open_lab
from twinbed.hosts.passport import describe, processors
from twinbed.links import checksums, delay_line, network, shaping
from twinbed.links.fabric import Fabric, open_fabric
from twinbed.links.layout import DEVICES, Nic, layout
from twinbed.model.caution import Caution, Kind
from twinbed.model.kernel import KEPT_AWAKE
from twinbed.model.topology import Link, Topology


@dataclass(frozen=True, slots=True)
class Wants:
    """A host's wish for the machine's CPUs."""

    settings: HostSettings
    cpus_each: int


@dataclass(frozen=True, slots=True)
class Pins:
    """The CPUs of hosts. ``cpus``: host -> the CPUs to which it is pinned, for pinned hosts. ``used``: the CPUs of every host.
    ``wanted``: how many CPUs pinned hosts need for themselves."""

    cpus: Mapping[str, tuple[int, ...]]
    used: Mapping[str, tuple[int, ...]]
    wanted: int

    def cautions(self, available: Sequence[int]) -> list[Caution]:
        cautions = [Caution(Kind.UNPINNED)] if len(self.cpus) < len(self.used) else []
        if self.wanted > len(available):
            detail = f"{len(self.cpus)} hosts need {self.wanted} CPUs for themselves, and there are {len(available)}"
            cautions.append(Caution(Kind.SHARED_CPU, detail))
        return cautions


def pins(hosts: Mapping[str, Wants], topology: Topology, available: Sequence[int]) -> Pins:
    """Give CPUs to hosts, in their order. Raises HostError where one host of a pair is to share its CPUs and the other is
    not."""
    pairs = (*topology.names(), *topology.bystander_names())
    together: dict[str, list[str]] = {}
    for host, wants in hosts.items():
        if wants.settings.cpus == "none":
            continue
        client, server = next((pair for pair in pairs if host in pair), (host, host))
        pair = {hosts[name].settings.cpus for name in (client, server)}
        if "shared" in pair and len(pair) > 1:
            raise HostError(f"{client} and {server}: give cpus: shared to both hosts of a pair, or to neither")
        together.setdefault(client if wants.settings.cpus == "shared" else host, []).append(host)
    wanted = [max(hosts[host].cpus_each for host in group) for group in together.values()]
    shares = share_cpus(wanted, available)
    cpus = {host: share for group, share in zip(together.values(), shares, strict=True) for host in group}
    return Pins(cpus, {host: cpus.get(host, tuple(sorted(available))) for host in hosts}, sum(wanted))


P = TypeVar("P", bound=DriverParams, contravariant=True)


@dataclass(frozen=True, slots=True)
class Ground:
    """The ground on which a host is made. Whatever ends it goes on ``stack``."""

    stack: contextlib.ExitStack
    lab: Lab
    fabric: Fabric
    site: Site


@dataclass(frozen=True, slots=True)
class Made:
    """A host that is up.

    ``read_back`` is called when its NICs are configured, with the facts known so far. It returns the settings of its kind as
    read back, and more facts. ``trouble`` names an event that invalidates the run, or None.  A host that does not belong to the
    lab alone has its own name for its NIC (``device``). ``own_network`` sets and reads back its part of the link.  ``at_end``
    is called after the workload."""

    host: AgentHost
    read_back: Callable[[Facts], tuple[list[Applied], Facts]]
    trouble: Callable[[], str | None] = lambda: None
    device: str = DEVICES[0]
    own_network: Callable[[Link, HostSettings], list[Applied]] | None = None
    at_end: Callable[[], Sequence[Caution]] = tuple


class Maker(Protocol):
    """A maker of hosts of one kind, for one run."""

    cpus_each: int
    """The number of CPUs to which one host is pinned."""

    @property
    def settings(self) -> HostSettings: ...

    def start(self, ground: Ground, name: str, nics: Sequence[Nic], cpus: tuple[int, ...] | None) -> Made:
        """Bring a host up, with its links on the switches."""
        ...

    def cautions(self) -> Sequence[Caution]:
        """Return cautions about this kind of host on this machine."""
        ...


class LabDriver(Driver[P]):
    """A driver whose hosts are on the switches of a lab. Subclasses give ``maker`` instead of ``up``."""

    in_lab = True

    @abstractmethod
    def maker(self, params: P, site: Site) -> Maker:
        """Return a maker of hosts with these settings, for one run."""
        ...

    def up(self, params: P, topology: Topology, site: Site) -> contextlib.AbstractContextManager[Bed]:
        return lab_bed(dict.fromkeys(ROLES, self.maker(params, site)), topology, site)


@contextlib.contextmanager
def lab_bed(makers: Mapping[str, Maker], topology: Topology, site: Site) -> Iterator[Bed]:
    """Bring up a testbed in a lab. ``makers``: ``client``, ``server`` and ``router`` -> the maker of such hosts."""
    plan = layout(topology)
    like = topology.made_like()
    maker_of = {host: makers[like[host]] for host in plan.nics}
    wants = {host: Wants(maker_of[host].settings, maker_of[host].cpus_each) for host in plan.nics}
    pinned = pins(wants, topology, site.cpus)
    with contextlib.ExitStack() as opened:
        lab = opened.enter_context(open_lab(site.probe, site.place(MACHINE)))
        topology = delay_line.resolved(lab.machine, topology)
        stack = opened.enter_context(contextlib.ExitStack())
        fabric = opened.enter_context(open_fabric(lab, topology, plan, site.place))
        ground = Ground(stack, lab, fabric, site)

        made_of: dict[str, Made] = {}

        def bring_up(name: str) -> tuple[AgentHost, list[Applied], Facts]:
            maker = maker_of[name]
            nics = _with_prefix(plan.nics[name], maker.settings)
            settings = fabric.host_settings(maker.settings)
            made = maker.start(ground, name, nics, pinned.cpus.get(name))
            made_of[name] = made
            host, forwards = made.host, name in plan.routers
            link = _without_emulation(topology.link) if forwards else topology.link
            devices = list(_devices(made, nics))
            if made.own_network is not None:
                applied = made.own_network(link, settings)
            else:
                network.configure(host, nics, link, settings)
            network.set_routes(host, plan.routes.get(name, ()), forwards=forwards)
            if forwards and name == plan.routers[0]:
                _emulate(host, topology)
            if not forwards:
                network.set_route_metrics(host, devices, settings)
            if made.own_network is None:
                applied = network.applied(host, nics, link, settings)
            applied += network.applied_routes(host, plan.routes.get(name, ()), forwards=forwards)
            if not forwards:
                applied += network.applied_route_metrics(host, devices, settings)
            if forwards and name == plan.routers[0]:
                applied += _emulated(host, topology)
            facts = describe(host, made.device)
            own_settings, own_facts = made.read_back(facts)
            return host, applied + own_settings, {**facts, **own_facts}

        answers = network.on_all(list(plan.nics), bring_up)
        fabric.shape()
        hosts = {host.name: host for host, _, _ in answers}
        # A userspace datapath may drop everything; `checksums` tries that.
        guests = [
            (hosts[client], plan.addresses[server])
            for client, server in (*topology.names(), *topology.bystander_names())
            if topology.switch not in checksums.USERSPACE
            and (maker_of[client].settings.own_kernel or maker_of[server].settings.own_kernel)
        ]
        network.on_all(guests, lambda way: network.until_answered(*way))
        kept, busy = _keep_awake(stack, lab, wants, pinned)
        yield Bed(
            hosts={**fabric.machines, **hosts},
            addresses=plan.addresses,
            targets=[
                *fabric.targets(),
                *(
                    Target(name, _devices(made_of[name], nics), maker_of[name].settings.own_kernel)
                    for name, nics in plan.nics.items()
                    if name not in plan.bystanders
                ),
            ],
            applied=[*fabric.applied(), *(item for _, applied, _ in answers for item in applied), *busy],
            passport={
                **{
                    name: {**describe(machine, None), **processors(machine), **fabric.facts(name)}
                    for name, machine in fabric.machines.items()
                },
                **{host.name: facts for host, _, facts in answers},
            },
            cautions=[*fabric.cautions(), *_cautions(maker_of), *pinned.cautions(site.cpus)],
            lab=lab.id,
            troubles=lambda: [
                *fabric.troubles(),
                *([why] if kept is not None and (why := kept.trouble()) else []),
                *(trouble for name in plan.nics if (trouble := made_of[name].trouble()) is not None),
            ],
            at_end=lambda: [*(caution for name in plan.nics for caution in made_of[name].at_end()), *fabric.at_end()],
            wake_up=_wake_up(lab.machine, topology, pinned, busy),
        )


def _keep_awake(
    stack: contextlib.ExitStack, lab: Lab, wants: Mapping[str, Wants], pinned: Pins
) -> tuple[awake.Awake | None, list[Applied]]:
    """Keep the CPUs of hosts with ``idle: busy`` awake, and read back for each host whether its CPUs are."""
    asked = {host: wanted.settings.idle for host, wanted in wants.items() if isinstance(wanted.settings, LabHostSettings)}
    wanted = {cpu for host, idle in asked.items() if idle == "busy" for cpu in pinned.used[host]}
    kept = stack.enter_context(awake.keep(lab, sorted(wanted))) if wanted else None
    awake_cpus = set(kept.cpus()) if kept is not None else set()
    if kept is not None:
        lab.machine.write(f"{lab.machine.artifacts}/{KEPT_AWAKE}", f"{json.dumps(sorted(awake_cpus))}\n".encode())
    return kept, [
        Applied(host, "idle", idle, "busy" if awake_cpus.issuperset(pinned.used[host]) else "normal", awake.SOURCE)
        for host, idle in asked.items()
    ]


def _wake_up(machine: AgentHost, topology: Topology, pinned: Pins, busy: Sequence[Applied]) -> WakeUp | None:
    """Measure a wake-up between the first client and its server, on the run's CPUs."""
    client, server = topology.names()[0]
    if not {item.subject for item in busy} >= {client, server}:
        return None
    first, second = pinned.used[client], pinned.used[server]
    cpus = tuple(sorted({cpu for share in pinned.used.values() for cpu in share}))
    return WakeUp(
        cpus,
        all(item.found == "busy" for item in busy),
        awake.wake_up_s(machine, first, second),
        awake.wake_up_s(machine, first[:1], first[:1]),
    )


def _with_prefix(nics: Sequence[Nic], settings: HostSettings) -> Sequence[Nic]:
    prefix = settings.mac_prefix if isinstance(settings, LabHostSettings) else None
    return nics if prefix is None else [replace(nic, mac_prefix=prefix) for nic in nics]


def _devices(made: Made, nics: Sequence[Nic]) -> dict[str, str]:
    """Return a host's own names of its NICs -> the host's name."""
    names = [nic.device for nic in nics] if made.own_network is None else [made.device]
    return dict.fromkeys(names, made.host.name)


def _without_emulation(link: Link) -> Link:
    """Return the link that a router sets as a host: with ``emulated_at: hosts`` only clients and servers emulate."""
    return link.model_copy(update={"delay": None, "jitter": None, "loss": None, "queue": None})


def _emulate(router: AgentHost, topology: Topology) -> None:
    """Set delay, jitter and loss on both ways out of the first router: each direction of a path passes one of them."""
    if plan := "".join(shaping.plan(nic, topology.link.at("routers")) for nic in DEVICES):
        router.run(["tc", "-batch", "-"], stdin=plan.encode())


def _emulated(router: AgentHost, topology: Topology) -> list[Applied]:
    link = topology.link.at("routers")
    return [
        replace(item, subject=router.name, setting=f"{nic}.{item.setting}")
        for nic in DEVICES
        if shaping.plan(nic, link)
        for item in network.applied_shaping(router, nic, link)
    ]


def _cautions(maker_of: Mapping[str, Maker]) -> list[Caution]:
    return [caution for maker in {id(maker): maker for maker in maker_of.values()}.values() for caution in maker.cautions()]
