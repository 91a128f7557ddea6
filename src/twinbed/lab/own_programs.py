"""Checks that hosts with their own programs, not the image's, have the programs that a study starts on them.

These are the programs that the plugins plan, and those of the link check.

Where the servers of a workload listen, as their plans say how to know that they are ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from twinbed import linkcheck
from twinbed.contracts.check import Check
from twinbed.contracts.command import Command
from twinbed.contracts.params import DriverParams
from twinbed.contracts.place import MACHINE, Places, Target
from twinbed.contracts.plugins import AnyDriver, Plugins
from twinbed.hosts.agent import PROBE
from twinbed.study.run import Run


def listening(servers: Sequence[Command]) -> Mapping[str, Sequence[int]]:
    """Host -> the ports that the workload's programs there listen on, in their order."""
    ports: dict[str, list[int]] = {}
    for command in servers:
        if command.ready is not None and command.ready.listening is not None:
            ports.setdefault(command.host, []).append(command.ready.listening)
    return ports


_WRAPPER = "stdbuf"
_ANY = "10.77.0.2"


def checks(runs: Iterable[Run], plugins: Plugins) -> list[Check]:
    """Ask the hosts of each testbed once."""
    wanted: list[tuple[AnyDriver, DriverParams, dict[str, set[str]]]] = []
    for run in {tuple(run.levels.items()): run for run in runs}.values():
        driver, params = plugins.drivers[run.testbed.kind], run.testbed.params
        hosts = next((hosts for known, given, hosts in wanted if known is driver and given == params), None)
        if hosts is None:
            hosts = {}
            wanted.append((driver, params, hosts))
        for host, program in _started(run, plugins, captures=True):
            hosts.setdefault(host, set()).add(program)
    results = [check for driver, params, hosts in wanted for check in driver.check_programs(params, hosts)]
    return list(dict.fromkeys(results))


def of_run(run: Run, plugins: Plugins) -> dict[str, set[str]]:
    """Return host -> the programs that a run starts there, for hosts that are asked once they are up; none captures links."""
    hosts: dict[str, set[str]] = {}
    for host, program in _started(run, plugins, captures=False):
        hosts.setdefault(host, set()).add(program)
    return hosts


def real_root(run: Run, plugins: Plugins) -> frozenset[str]:
    """Return the hosts on which a run starts programs that need the machine's real root."""
    return frozenset(command.host for command in _commands(run, plugins, captures=False) if command.real_root)


def _started(run: Run, plugins: Plugins, *, captures: bool) -> Iterable[tuple[str, str]]:
    """Yield host and program. ``captures``: links are captured on the hosts."""
    pairs = [(*names, _ANY) for names in run.topology.names()]
    own = plugins.workloads[run.workload.kind].plan(run.workload.params, pairs).executable
    for command in _commands(run, plugins, captures=captures):
        yield from ((command.host, program) for program in started_by(command.argv) if program not in own)
    for client, server in run.topology.names():
        for program in linkcheck.programs(run.topology.link):
            yield from ((client, program), (server, program))


def _commands(run: Run, plugins: Plugins, *, captures: bool) -> Iterable[Command]:
    topology = run.topology
    pairs = [(*names, _ANY) for names in topology.names()]
    bystanders = [(*names, _ANY) for names in topology.bystander_names()]
    plan = plugins.workloads[run.workload.kind].planned(run.workload.params, pairs)
    commands = [*plan.prepare, *plan.servers, *plan.warm_up, *plan.clients]
    for client, server, _ in pairs:
        for name, asked, asking in ((client, {server: _ANY}, {}), (server, {}, {client: _ANY})):
            target = Target(name, {"nic": name}, own_kernel=True, servers=asked, clients=asking, captures=captures)
            for choice in run.instruments.values():
                plugin = plugins.instruments[choice.kind]
                commands += [
                    *plugin.plan(choice.params, target),
                    *plugin.examine(choice.params, target, listening(plan.servers)),
                ]
    places = Places([MACHINE], pairs, bystanders)
    loads = (plugins.backgrounds[choice.kind].plan(choice.params, places).commands for choice in run.backgrounds.values())
    return chain(commands, *loads)


def started_by(argv: Sequence[str]) -> Iterable[str]:
    """Yield the program of an argument list and the program that a wrapper starts, without those that twinbed puts on hosts."""
    program, *rest = argv
    if program != PROBE and not program.startswith("{bin}/"):
        yield program
    if program == _WRAPPER:
        yield from started_by([argument for argument in rest if not argument.startswith("-")][:1])
