"""Whether the runs of a study fit on this machine: memory, processes, file descriptors, address space.

What runs beside hosts is counted from what the plugins plan to start.  What a host or a program takes is said by its settings
(``contracts/params``).  All other figures were measured with 1, 10 and 40 container pairs and 1 to 4 guest pairs, HTTP and
UDP, on Linux 6.12 with Python 3.11.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from twinbed.contracts.check import Check
from twinbed.contracts.params import DriverParams, WorkloadParams
from twinbed.contracts.place import MACHINE, Places, Target
from twinbed.contracts.plugins import Plugins
from twinbed.contracts.resources import HostNeed, Need, ProgramNeed, Room
from twinbed.design.resources import Demand, Shortage, shortages
from twinbed.links.layout import Layout, layout
from twinbed.model.run import level_text
from twinbed.model.topology import Topology
from twinbed.study.run import Run

OWN_BYTES = 128 * 2**20
"""The controller, beyond what it has when it only plans, and the lab: 110 to 150 MB."""
OWN_TASKS = 40
CONTROLLER_DESCRIPTORS = 24
"""Beside one for every host and machine: 5, and up to 10 while hosts come up."""
AGENT_DESCRIPTORS = 160
"""Beside three for every program on the machine, of which each host is one: 7, 8 of a program that is just being started,
and for each of the 16 hosts that are set up side by side 5 of a short program and 4 of the one before it, which are closed a
moment after its end is told. On a busy machine up to 40 were seen, on a quiet one 27."""
DESCRIPTORS_OF_A_PROGRAM = 3
_PAIR = [("client", "server", "10.77.0.2")]
_MENDS = {
    "memory": "smaller hosts or buffers, or a machine with more",
    "processes": "a higher limit, such as sysctl kernel.pid_max or pids.max of the control group",
    "file descriptors": "a higher hard limit (ulimit -Hn, nofile in /etc/security/limits.conf)",
    "address space": "ulimit -v unlimited",
}


class _Counting:
    """Demands of a study's cells; cells that share settings share the count."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._workloads: dict[tuple[str, WorkloadParams], tuple[int, int]] = {}

    def demand(self, run: Run) -> Demand | None:
        """None where this machine carries none of the hosts."""
        hosts = _hosts(run.testbed.params)
        if all(need is None for need in hosts.values()):
            return None
        return Demand(self._need(run, hosts, 1), self._need(run, hosts, 2))

    def _need(self, run: Run, hosts: Mapping[str, HostNeed | None], pairs: int) -> Need:
        topology = run.topology.model_copy(update={"pairs": pairs})
        plan = layout(topology)
        roles = _roles(topology)
        programs: dict[str, list[ProgramNeed]] = {place: [] for place in (*plan.machines, *plan.nics)}
        # An agent each.
        programs[MACHINE] += [ProgramNeed()] * (len(plan.machines) - 1)
        servers, clients = self._workload(run)
        for name, role in roles.items():
            if name in plan.bystanders:
                continue
            if role == "server":
                programs[name] += [run.workload.params.server_need()] * servers
            elif role == "client":
                programs[name] += [run.workload.params.client_need()] * clients
        for choice in run.instruments.values():
            plugin = self._plugins.instruments[choice.kind]
            for target in _targets(plan, roles, hosts):
                for command in plugin.plan(choice.params, target):
                    programs[command.host].append(choice.params.program_need())
        places = _places(topology, plan)
        for load in run.backgrounds.values():
            for command in self._plugins.backgrounds[load.kind].plan(load.params, places).commands:
                programs[command.host].append(load.params.program_need())
        return _sum({name: hosts[role] for name, role in roles.items()}, programs)

    def _workload(self, run: Run) -> tuple[int, int]:
        """Programs of each server, of each client."""
        key = (run.workload.kind, run.workload.params)
        if key not in self._workloads:
            plan = self._plugins.workloads[run.workload.kind].plan(run.workload.params, _PAIR)
            self._workloads[key] = len(plan.servers), len(plan.clients)
        return self._workloads[key]


def checks(runs: Iterable[Run], plugins: Plugins, room: Room | None) -> list[Check]:
    """What does not fit, each with the cells that it is about; nothing where all do, or no room is known."""
    if room is None:
        return []
    counting = _Counting(plugins)
    found: dict[tuple[str, str, str], list[str]] = {}
    for run in {tuple(run.levels.items()): run for run in runs}.values():
        demand = counting.demand(run)
        if demand is None:
            continue
        for shortage in shortages(demand, run.topology.pairs, room):
            said = _said(run, shortage, demand.at(run.topology.pairs), room)
            found.setdefault((shortage.what, said, _mend(shortage)), []).append(_name(run))
    return [Check(f"{what}, {_cells(cells)}", False, said, mend) for (what, said, mend), cells in found.items()]


def descriptors(runs: Iterable[Run], plugins: Plugins) -> int:
    """That one process holds open in the largest of the runs."""
    counting = _Counting(plugins)
    demands = ((counting.demand(run), run.topology.pairs) for run in {tuple(run.levels.items()): run for run in runs}.values())
    return max((demand.at(pairs).descriptors for demand, pairs in demands if demand is not None), default=0)


def _hosts(params: DriverParams) -> dict[str, HostNeed | None]:
    """Role -> what each host of it takes of this machine; None where it is elsewhere."""
    return {role: kind.host_need() for role, kind in params.kinds().items()}


def _roles(topology: Topology) -> dict[str, str]:
    """Host -> role, bystanders' as that of the hosts that they are made like."""
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
    machines = [each for place, those in programs.items() if place not in hosts for each in those]
    return Need(
        host_bytes=sum(_host_bytes(need, programs[name]) for name, need in here.items()),
        machine_bytes=OWN_BYTES + sum(each.memory_bytes for each in machines),
        tasks=OWN_TASKS
        + sum(need.tasks for need in here.values())
        + sum(each.tasks for each in machines)
        + sum(each.tasks for name, need in here.items() if not need.own_memory for each in programs[name]),
        controller_descriptors=CONTROLLER_DESCRIPTORS + len(programs),
        agent_descriptors=AGENT_DESCRIPTORS + DESCRIPTORS_OF_A_PROGRAM * (len(here) + len(machines)),
        address_space_bytes=max((need.address_space_bytes for need in here.values()), default=0),
    )


def _host_bytes(need: HostNeed, programs: Iterable[ProgramNeed]) -> int:
    if need.own_memory:
        return need.memory_bytes
    taken = need.memory_bytes + sum(each.memory_bytes for each in programs)
    return taken if need.limit_bytes is None else min(taken, need.limit_bytes)


def _name(run: Run) -> str:
    return ", ".join(f"{factor} {level_text(level)}" for factor, level in run.levels.items())


def _cells(names: Sequence[str]) -> str:
    """The first, and how many more."""
    more = len(names) - 1
    return names[0] + (f" and {more} more cell{'s' if more > 1 else ''}" if more else "")


def _said(run: Run, shortage: Shortage, need: Need, room: Room) -> str:
    of_role = _hosts(run.testbed.params)
    counts = Counter(each.made_of for role in _roles(run.topology).values() if (each := of_role[role]) is not None)
    hosts = " and ".join(f"{count} hosts, each {made_of}" for made_of, count in counts.items())
    if shortage.what == "memory":
        return (
            f"{_gigabytes(need.memory_bytes)} are needed ({hosts}: {_gigabytes(need.host_bytes)} with the programs on them; "
            f"programs on the machine: {_gigabytes(need.machine_bytes)}); "
            f"{_gigabytes(shortage.available)} are available ({room.memory_source})"
        )
    if shortage.what == "address space":
        return (
            f"the largest process needs {_gigabytes(shortage.needed)} ({hosts}); a process may have "
            f"{_gigabytes(shortage.available)} (ulimit -v)"
        )
    source = room.tasks_source if shortage.what == "processes" else "the hard limit of a process"
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
