"""Whether this machine can carry the runs of a study: memory, processes, file descriptors, address space.

What a host or a program takes is said by its settings (``contracts/params``); which programs run is what the plugins plan to
start.  All other figures were measured with 1, 10 and 40 container pairs and 1 to 4 guest pairs, HTTP and UDP, on Linux 6.12
with Python 3.11.  What a run takes grows by the same with every pair: hosts, links, and the programs on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from twinbed.contracts.check import Check
from twinbed.contracts.place import MACHINE, Places, Target
from twinbed.contracts.plugins import Plugins
from twinbed.contracts.resources import HostNeed, ProgramNeed
from twinbed.hosts.resources import Available
from twinbed.links.layout import Layout, layout
from twinbed.model.run import level_text
from twinbed.model.topology import Topology
from twinbed.study.run import Run

OWN_BYTES = 128 * 2**20
"""The controller, beyond what it has when it only plans, and the lab: 110 to 150 MB."""
OWN_TASKS = 40
AGENT_DESCRIPTORS = 160
"""Of the agent that starts hosts and programs on the machine, the process that has most files open. Besides three for every
program on the machine, of which each host is one: 7, 8 of a program that is just being started,
and for each of the 16 hosts that are set up side by side 5 of a short program and 4 of the one before it, which are closed a
moment after its end is reported. On a busy machine up to 40 were seen, on a quiet one 27."""
DESCRIPTORS_OF_A_PROGRAM = 3
_MENDS = {
    "memory": "smaller hosts or buffers, or a machine with more",
    "processes": "a higher limit, such as sysctl kernel.pid_max or pids.max of the control group",
    "file descriptors": "a higher hard limit (ulimit -Hn, nofile in /etc/security/limits.conf)",
    "address space": "ulimit -v unlimited",
}


class Need(NamedTuple):
    """What a run takes of the machine."""

    host_bytes: int
    """Memory of all hosts, with the programs on them."""
    machine_bytes: int
    """Memory of twinbed itself and of the programs on the machine."""
    tasks: int
    """Processes and threads."""
    descriptors: int
    """That one process holds open: the limit is each process's own."""
    address_space_bytes: int
    """Of the largest process."""

    @property
    def memory_bytes(self) -> int:
        return self.host_bytes + self.machine_bytes


@dataclass(frozen=True, slots=True)
class Demand:
    """What runs that differ only in their number of pairs take."""

    one: Need
    """With one pair."""
    two: Need

    def at(self, pairs: int) -> Need:
        return Need(*(one + (pairs - 1) * (two - one) for one, two in zip(self.one, self.two, strict=True)))


@dataclass(frozen=True, slots=True)
class Shortage:
    """One thing that there is not enough of."""

    what: str
    """A key of ``_MENDS``."""
    needed: int
    available: int
    most_pairs: int
    """That there would be enough for, of this thing; 0: not for one."""


_TAKEN: Mapping[str, Callable[[Need], int]] = {
    "memory": lambda need: need.memory_bytes,
    "processes": lambda need: need.tasks,
    "file descriptors": lambda need: need.descriptors,
    "address space": lambda need: need.address_space_bytes,
}


def shortages(demand: Demand, pairs: int, available: Available) -> Iterator[Shortage]:
    """What the machine lacks for a run with ``pairs``."""
    limits = (available.memory_bytes, available.tasks, available.descriptors, available.address_space_bytes)
    for (what, taken), limit in zip(_TAKEN.items(), limits, strict=True):
        needed = taken(demand.at(pairs))
        if limit is not None and needed > limit:
            enough = (fewer for fewer in range(pairs - 1, 0, -1) if taken(demand.at(fewer)) <= limit)
            yield Shortage(what, needed, limit, next(enough, 0))


def demand(run: Run, plugins: Plugins) -> Demand | None:
    """None where this machine carries none of the hosts."""
    if not any(_hosts(run).values()):
        return None
    return Demand(need(run, 1, plugins), need(run, 2, plugins))


def need(run: Run, pairs: int, plugins: Plugins) -> Need:
    """Of the run as it would be with so many pairs."""
    topology = run.topology.model_copy(update={"pairs": pairs})
    plan, roles, hosts = layout(topology), _roles(topology), _hosts(run)
    programs: dict[str, list[ProgramNeed]] = {place: [] for place in (*plan.machines, *plan.nics)}
    # An agent each.
    programs[MACHINE] += [ProgramNeed()] * (len(plan.machines) - 1)
    places = _places(topology, plan)
    work = plugins.workloads[run.workload.kind].plan(run.workload.params, places.pairs)
    for command in work.servers:
        programs[command.host].append(run.workload.params.server_need())
    for command in work.clients:
        programs[command.host].append(run.workload.params.client_need())
    for choice in run.instruments.values():
        for target in _targets(plan, roles, hosts):
            for command in plugins.instruments[choice.kind].plan(choice.params, target):
                programs[command.host].append(choice.params.program_need())
    for load in run.backgrounds.values():
        for command in plugins.backgrounds[load.kind].plan(load.params, places).commands:
            programs[command.host].append(load.params.program_need())
    return _sum({name: hosts[role] for name, role in roles.items()}, programs)


def checks(runs: Iterable[Run], plugins: Plugins, available: Available | None) -> list[Check]:
    """What the machine lacks, each thing with the cells that it is about. Nothing where it lacks nothing, or where what it has
    is not known."""
    if available is None:
        return []
    cells: dict[tuple[str, str, str], list[str]] = {}
    for run in _of_cells(runs):
        if (of_run := demand(run, plugins)) is None:
            continue
        for shortage in shortages(of_run, run.topology.pairs, available):
            text = _text(run, shortage, of_run.at(run.topology.pairs), available)
            cells.setdefault((shortage.what, text, _mend(shortage)), []).append(_name(run))
    return [Check(f"{what}, {_names(of)}", False, text, mend) for (what, text, mend), of in cells.items()]


def descriptors(runs: Iterable[Run], plugins: Plugins) -> int:
    """That one process holds open in the largest of the runs."""
    demands = ((demand(run, plugins), run.topology.pairs) for run in _of_cells(runs))
    return max((of_run.at(pairs).descriptors for of_run, pairs in demands if of_run is not None), default=0)


def _of_cells(runs: Iterable[Run]) -> Iterable[Run]:
    """One run of each cell."""
    return {tuple(run.levels.items()): run for run in runs}.values()


def _hosts(run: Run) -> dict[str, HostNeed | None]:
    """Role -> what each such host takes of this machine; None where it is elsewhere."""
    return {role: kind.host_need() for role, kind in run.testbed.params.kinds().items()}


def _roles(topology: Topology) -> dict[str, str]:
    """Host -> role. Bystanders have that of the hosts that they are made like."""
    pairs = (*topology.names(), *topology.bystander_names())
    ends = {name: role for pair in pairs for name, role in zip(pair, ("client", "server"), strict=True)}
    return {**ends, **dict.fromkeys(topology.router_names(), "router")}


def _places(topology: Topology, plan: Layout) -> Places:
    """As a lab gives them to background loads."""
    pairs, bystanders = (
        [(client, server, plan.addresses[server]) for client, server in names]
        for names in (topology.names(), topology.bystander_names())
    )
    return Places(list(plan.machines), pairs, bystanders)


def _targets(plan: Layout, roles: Mapping[str, str], hosts: Mapping[str, HostNeed | None]) -> Iterable[Target]:
    """As a testbed in a lab gives them to instruments."""
    for machine in plan.machines:
        ends = [nics[0] for host, nics in plan.nics.items() if host not in plan.routers and host not in plan.bystanders]
        yield Target(machine, {nic.port: nic.host for nic in ends if nic.machine == machine}, captures=True)
    for host, nics in plan.nics.items():
        if host in plan.bystanders:
            continue
        need = hosts[roles[host]]
        yield Target(
            host,
            {nic.device: host for nic in nics},
            own_kernel=need is None or need.own_memory,
            servers={"server": "10.77.0.2"} if roles[host] == "client" else {},
            clients={"client": "10.77.0.1"} if roles[host] == "server" else {},
        )


def _sum(hosts: Mapping[str, HostNeed | None], programs: Mapping[str, list[ProgramNeed]]) -> Need:
    here = {name: need for name, need in hosts.items() if need is not None}
    machines = [each for place, of_place in programs.items() if place not in hosts for each in of_place]
    in_containers = [each for name, need in here.items() if not need.own_memory for each in programs[name]]
    return Need(
        host_bytes=sum(_host_bytes(need, programs[name]) for name, need in here.items()),
        machine_bytes=OWN_BYTES + sum(each.memory_bytes for each in machines),
        tasks=OWN_TASKS + sum(each.tasks for each in here.values()) + sum(each.tasks for each in (*machines, *in_containers)),
        descriptors=AGENT_DESCRIPTORS + DESCRIPTORS_OF_A_PROGRAM * (len(here) + len(machines)),
        address_space_bytes=max((need.address_space_bytes for need in here.values()), default=0),
    )


def _host_bytes(need: HostNeed, programs: Iterable[ProgramNeed]) -> int:
    if need.own_memory:
        return need.memory_bytes
    taken = need.memory_bytes + sum(each.memory_bytes for each in programs)
    return taken if need.limit_bytes is None else min(taken, need.limit_bytes)


def _name(run: Run) -> str:
    return ", ".join(f"{factor} {level_text(level)}" for factor, level in run.levels.items())


def _names(cells: Sequence[str]) -> str:
    """The first, and how many more."""
    more = len(cells) - 1
    return cells[0] + (f" and {more} more cell{'s' if more > 1 else ''}" if more else "")


def _text(run: Run, shortage: Shortage, need: Need, available: Available) -> str:
    of_role = _hosts(run)
    counts = Counter(each.made_of for role in _roles(run.topology).values() if (each := of_role[role]) is not None)
    hosts = " and ".join(f"{count} hosts, each {made_of}" for made_of, count in counts.items())
    if shortage.what == "memory":
        return (
            f"{_gigabytes(need.memory_bytes)} are needed ({hosts}: {_gigabytes(need.host_bytes)} with the programs on them; "
            f"programs on the machine: {_gigabytes(need.machine_bytes)}); "
            f"{_gigabytes(shortage.available)} are available ({available.memory_source})"
        )
    if shortage.what == "address space":
        return (
            f"the largest process needs {_gigabytes(shortage.needed)} ({hosts}); a process may have "
            f"{_gigabytes(shortage.available)} (ulimit -v)"
        )
    source = available.tasks_source if shortage.what == "processes" else "the hard limit of a process"
    kind = "processes and threads" if shortage.what == "processes" else shortage.what
    return f"{shortage.needed} {kind} are needed ({hosts}); {shortage.available} are available ({source})"


def _mend(shortage: Shortage) -> str:
    if shortage.what == "address space":
        return f"smaller hosts, or {_MENDS[shortage.what]}"
    most = shortage.most_pairs
    fit = f"at most {most} pair{'s' if most > 1 else ''} of these fit" if most else "not even one pair of these fits"
    return f"{fit}; fewer pairs, {_MENDS[shortage.what]}"


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB"
