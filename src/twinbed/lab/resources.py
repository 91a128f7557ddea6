"""Checks that this machine can carry the runs of a study: memory, processes and file descriptors.

A host's need comes from its settings (``contracts/params``), a program's from the command that a plugin plans.  All other
figures were measured with 1, 10 and 40 container pairs and 1 to 4 guest pairs, HTTP and UDP, on Linux 6.12 with Python 3.11.
Each pair adds the same to the need of a run: hosts, links, and the programs on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from twinbed.contracts.check import Check
from twinbed.contracts.command import PROGRAM_BYTES, PROGRAM_TASKS, Command
from twinbed.contracts.params import DriverParams
from twinbed.contracts.place import Places, Target
from twinbed.contracts.plugins import Plugins
from twinbed.design import drawn
from twinbed.hosts.resources import DESCRIPTORS, MEMORY, TASKS, Limit
from twinbed.lab.execution import of_instrument
from twinbed.links.layout import Layout, layout
from twinbed.model.run import level_text
from twinbed.model.topology import Topology
from twinbed.study.run import Run

OWN_BYTES = 128 * 2**20
"""The controller takes 110 to 150 MB more with a lab than when it only plans."""
OWN_TASKS = 40
AGENT_DESCRIPTORS = 160
"""Descriptors of the agent that starts hosts and programs on the machine: the process with most open files.

It has three for each program on the machine (a host is one), and 7 more. A program that is being started takes 8. Each of the
16 hosts that are set up side by side takes 5 for a short program, and 4 for the one before, which are closed a moment after its
end is reported. Up to 40 were seen on a busy machine, 27 on a quiet one."""
DESCRIPTORS_OF_A_PROGRAM = 3
_MENDS = {
    MEMORY: "smaller hosts or buffers, or a machine with more",
    TASKS: "a higher limit, such as sysctl kernel.pid_max or pids.max of the control group",
    DESCRIPTORS: "a higher hard limit (ulimit -Hn, nofile in /etc/security/limits.conf)",
}


@dataclass(frozen=True, slots=True)
class Need:
    """The resources that a run takes from the machine."""

    host_bytes: int
    """Memory of all hosts, with the programs on them."""
    machine_bytes: int
    """Memory of twinbed itself and of the programs on the machine."""
    tasks: int
    """Processes and threads."""
    descriptors: int
    """Files that one process holds open: the limit is each process's own."""

    def amount(self, what: str) -> int:
        return {MEMORY: self.host_bytes + self.machine_bytes, TASKS: self.tasks, DESCRIPTORS: self.descriptors}[what]


def need(run: Run, pairs: int, plugins: Plugins) -> Need:
    """Return the need of the run if it had this many pairs."""
    topology = run.topology.model_copy(update={"pairs": pairs})
    plan, kinds = layout(topology), _kinds(run, topology)
    of_host: dict[str, list[Command]] = {host: [] for host in kinds}
    on_machines: list[Command] = []
    for command in _commands(run, topology, plan, kinds, plugins):
        of_host.get(command.host, on_machines).append(command)
    agents = len(plan.machines) - 1
    host_bytes, tasks, hosts = 0, OWN_TASKS + agents * PROGRAM_TASKS + sum(program.tasks for program in on_machines), 0
    for host, kind in kinds.items():
        if (own := kind.host_need()) is None:
            continue
        # A guest's programs are within its memory and its processes, whatever they take.
        programs = [] if kind.own_kernel else of_host[host]
        used = own.memory_bytes + sum(program.memory_bytes for program in programs)
        host_bytes += used if own.limit_bytes is None else min(used, own.limit_bytes)
        tasks += own.tasks + sum(program.tasks for program in programs)
        hosts += 1
    return Need(
        host_bytes,
        machine_bytes=OWN_BYTES + agents * PROGRAM_BYTES + sum(program.memory_bytes for program in on_machines),
        tasks=tasks,
        descriptors=AGENT_DESCRIPTORS + DESCRIPTORS_OF_A_PROGRAM * (hosts + agents + len(on_machines)),
    )


def checks(runs: Iterable[Run], plugins: Plugins, available: Mapping[str, Limit] | None) -> list[Check]:
    """Return a check for each thing that the machine lacks, with its cells. Empty where nothing is lacking or ``available`` is
    not known."""
    cells: dict[tuple[str, str, str], list[str]] = {}
    for run in _of_cells(runs):
        needed = need(run, run.topology.pairs, plugins)
        for what, limit in (available or {}).items():
            if needed.amount(what) > limit.most:
                most = _most_pairs(run, plugins, what, needed.amount(what), limit.most)
                fit = (
                    f"at most {most} pair{'s' if most > 1 else ''} of these fit" if most else "not even one pair of these fits"
                )
                name = ", ".join(f"{factor} {level_text(level)}" for factor, level in run.levels.items())
                mend = f"{fit}; fewer pairs, {_MENDS[what]}"
                cells.setdefault((what, _text(run, what, needed, limit), mend), []).append(name)
    return [Check(f"{what}, {_names(names)}", False, text, mend) for (what, text, mend), names in cells.items()]


def descriptors(runs: Iterable[Run], plugins: Plugins) -> int:
    """Return how many files one process holds open in the largest run."""
    return max((need(run, run.topology.pairs, plugins).descriptors for run in _of_cells(runs)), default=0)


def _of_cells(runs: Iterable[Run]) -> Iterable[Run]:
    """Return one run of each cell that has hosts on this machine."""
    of_cells = {tuple(run.levels.items()): run for run in runs}.values()
    return [run for run in of_cells if any(kind.host_need() for kind in run.testbed.params.kinds().values())]


def _most_pairs(run: Run, plugins: Plugins, what: str, needed: int, limit: int) -> int:
    """Return the most pairs, fewer than the run's, that the machine can carry; 0 where it cannot carry one."""
    of_one_pair = need(run, 1, plugins).amount(what)
    return 0 if of_one_pair > limit else 1 + (limit - of_one_pair) * (run.topology.pairs - 1) // (needed - of_one_pair)


def _kinds(run: Run, topology: Topology) -> dict[str, DriverParams]:
    """Return host -> the settings with which it is made. Bystanders have the settings of the hosts that they resemble."""
    kinds = run.testbed.params.kinds()
    return {host: kinds[like] for host, like in topology.made_like().items()}


def _commands(
    run: Run, topology: Topology, plan: Layout, kinds: Mapping[str, DriverParams], plugins: Plugins
) -> Iterator[Command]:
    """Yield the commands that run during the workload."""
    pairs, bystanders = (
        [(client, server, plan.addresses[server]) for client, server in names]
        for names in (topology.names(), topology.bystander_names())
    )
    work = plugins.workloads[run.workload.kind].planned(run.workload.params, pairs)
    yield from (*work.servers, *work.clients)
    targets = list(_targets(plan, kinds, pairs))
    samples = drawn(replace(run, topology=topology))
    for name, choice in run.instruments.items():
        for target in of_instrument(targets, samples.get(name)):
            yield from plugins.instruments[choice.kind].plan(choice.params, target)
    places = Places(list(plan.machines), pairs, bystanders)
    for load in run.backgrounds.values():
        yield from plugins.backgrounds[load.kind].plan(load.params, places).commands


def _targets(plan: Layout, kinds: Mapping[str, DriverParams], pairs: Sequence[tuple[str, str, str]]) -> Iterator[Target]:
    """Yield the targets that a testbed in a lab gives to instruments."""
    ends = [nics[0] for host, nics in plan.nics.items() if host not in plan.routers and host not in plan.bystanders]
    for machine in plan.machines:
        yield Target(machine, {nic.port: nic.host for nic in ends if nic.machine == machine}, captures=True)
    servers = {client: {server: address} for client, server, address in pairs}
    clients = {server: {client: plan.addresses[client]} for client, server, _ in pairs}
    for host, nics in plan.nics.items():
        if host not in plan.bystanders:
            devices = {nic.device: host for nic in nics}
            yield Target(host, devices, kinds[host].own_kernel, servers.get(host, {}), clients.get(host, {}))


def _names(cells: Sequence[str]) -> str:
    """Return the first name, and how many more there are."""
    more = len(cells) - 1
    return cells[0] + (f" and {more} more cell{'s' if more > 1 else ''}" if more else "")


def _text(run: Run, what: str, needed: Need, limit: Limit) -> str:
    of_hosts = (kind.host_need() for kind in _kinds(run, run.topology).values())
    counts = Counter(host.made_of for host in of_hosts if host is not None)
    hosts = " and ".join(f"{count} hosts, each {made_of}" for made_of, count in counts.items())
    if what == MEMORY:
        return (
            f"{_gigabytes(needed.amount(MEMORY))} are needed"
            f" ({hosts}: {_gigabytes(needed.host_bytes)} with the programs on them; "
            f"programs on the machine: {_gigabytes(needed.machine_bytes)}); "
            f"{_gigabytes(limit.most)} are available ({limit.source})"
        )
    kind = "processes and threads" if what == TASKS else what
    return f"{needed.amount(what)} {kind} are needed ({hosts}); {limit.most} are available ({limit.source})"


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB"
