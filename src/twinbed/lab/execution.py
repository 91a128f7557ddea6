"""One run, phase by phase: testbed up, settings compared with what was read back, links measured, servers, warm-up, background
load, instruments, workload, hosts examined, artifacts collected, everything down.

Nothing is retried and nothing waits a fixed time.  A failure is a ``RunFailed`` with its phase, and the evidence stays in the
folder.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from twinbed import linkcheck
from twinbed.contracts.background import BackgroundPlan
from twinbed.contracts.bed import Applied, Bed, Facts, differences
from twinbed.contracts.command import Command
from twinbed.contracts.host import Host
from twinbed.contracts.place import MACHINE, Places, Target
from twinbed.contracts.plugins import AnyDriver, Plugins
from twinbed.contracts.site import Site
from twinbed.design import drawn
from twinbed.hosts.error import HostError
from twinbed.hosts.stage import Stage, Started, all_at_once, placed, to_its_end
from twinbed.lab import added
from twinbed.lab.events import Events
from twinbed.lab.own_programs import listening, of_run, real_root
from twinbed.lab.watch import Watch, stops, waited
from twinbed.links import checksums
from twinbed.links.layout import layout
from twinbed.model.caution import Caution, Kind
from twinbed.model.clients import START_SKEW_LIMIT_S, ClientTimes, overlap_share, skew_s
from twinbed.model.drawn import Drawn
from twinbed.model.event import Happened
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.run import Phase
from twinbed.model.usage import ProgramUsage, Role
from twinbed.study.run import Run

GRACE_S = 30.0
"""Time that a phase may take beyond the limits of the work in it."""


class TimedPhases:
    """The phases of a run: the current one, how long each took, and an alarm that ends the run's hosts when a phase takes too
    long.

    Each wait in a phase has its own limit; this limit is for waits that nobody thought of.
    """

    def __init__(self, seconds: dict[str, float], on_phase: Callable[[Phase], None]) -> None:
        self._seconds, self._on_phase = seconds, on_phase
        self.current = Phase.UP
        self.hosts: Sequence[Host] = ()
        self.overran: str | None = None

    @contextlib.contextmanager
    def timed(self, phase: Phase, limit_s: float = 0.0) -> Iterator[None]:
        """Time a phase whose work may take ``limit_s``; the phase itself may take ``GRACE_S`` more."""
        self.current = phase
        self._on_phase(phase)
        alarm = threading.Timer(limit_s + GRACE_S, self._end, (phase, limit_s + GRACE_S))
        alarm.daemon = True
        if phase is not Phase.UP:
            alarm.start()
        started = time.monotonic()
        try:
            yield
        finally:
            alarm.cancel()
            self._seconds[phase.value] = round(time.monotonic() - started, 6)

    def _end(self, phase: Phase, limit_s: float) -> None:
        self.overran = f"the phase took longer than {limit_s:g} s; its hosts were ended"
        for host in self.hosts:
            host.close()


_EVIDENCE_LIMIT_S = 5.0
_LOG_LIMIT_S = 30.0
_COLLECT_LIMIT_S = 300.0


class RunFailed(Exception):
    """A run that failed in a phase: data, not a bug."""

    def __init__(self, phase: Phase, reason: str) -> None:
        super().__init__(f"{phase}: {reason}")
        self.phase, self.reason = phase, reason


@dataclass
class Outcome:
    """The facts known about a run so far; complete once ``execute`` has returned."""

    phases: dict[str, float] = field(default_factory=dict)
    applied: list[Applied] = field(default_factory=list)
    passport: Mapping[str, Facts] = field(default_factory=dict)
    cautions: list[Caution] = field(default_factory=list)
    lab: str = ""
    start_skew_s: float | None = None
    clients: Sequence[ClientTimes] = ()
    drawn: Mapping[str, Drawn] = field(default_factory=dict)
    """Instrument -> the hosts drawn for it, where it is not put on all."""
    events: Sequence[Happened] = ()
    programs: Sequence[ProgramUsage] = ()
    """Resources used by the programs of the workload and the instruments."""


class _AtExit(Protocol):
    """A callback of an exit stack, called with the exception that left it."""

    def __call__(self, kind: type[BaseException] | None, /, *_: object) -> None: ...


class LinkChecks(Protocol):
    """The link checks that are kept, one a cell."""

    def of(self, run: Run) -> LinkCheck | None: ...

    def keep(self, check: LinkCheck) -> None: ...


def execute(
    run: Run,
    plugins: Plugins,
    site: Site,
    outcome: Outcome,
    on_phase: Callable[[Phase], None],
    link_checks: LinkChecks | None = None,
) -> None:
    """Carry out a run, and fill ``outcome`` on the way, so that a failed run keeps its facts. Raises RunFailed.

    ``link_checks``: the run's links are measured unless a run of its cell has done so; None: they are not measured.
    """
    checked = link_checks.of(run) if link_checks else None
    if checked is not None and checked.reason is not None:
        raise RunFailed(Phase.LINK_CHECK, f"{checked.reason} (measured in run {checked.run}; --retry-failed measures again)")
    driver = plugins.drivers[run.testbed.kind]
    if run.workload.params.lab_only and not is_in_a_lab(run, plugins.drivers):
        raise RunFailed(Phase.UP, not_in_a_lab(run))
    workload = plugins.workloads[run.workload.kind]
    phases = TimedPhases(outcome.phases, on_phase)
    outcome.drawn = drawn(run)
    troubles: list[str] = []
    try:
        with contextlib.ExitStack() as stack:
            with_programs = replace(site, programs=of_run(run, plugins), real_root=real_root(run, plugins))
            # The testbed's own limits hold while it comes up; a host that hangs later is ended with its phase.
            with phases.timed(Phase.UP):
                bed: Bed = stack.enter_context(driver.up(run.testbed.params, run.topology, with_programs))
            watch = Watch(bed, site)
            stack.push(_evidence(bed, site, watch, outcome, troubles))
            phases.hosts = tuple(bed.hosts.values())
            outcome.lab = bed.lab
            outcome.passport = bed.passport
            outcome.cautions += bed.cautions
            outcome.applied += bed.applied
            pairs = [(client, server, bed.addresses[server]) for client, server in run.topology.names()]
            plan = workload.planned(run.workload.params, pairs)
            with phases.timed(Phase.CONFIGURE, _together(plan.prepare)):
                watch.clocks()
                layers = added.read_back(run, bed, site.image)
                outcome.applied += layers
                if wrong := differences([*bed.applied, *layers]):
                    raise HostError(wrong)
                if _may_leave_unfinished(driver, run):
                    checksums.hold(bed, run.topology.names())
                put_files(plan.files, bed, plan.executable)
                for command in plan.prepare:
                    to_its_end(command, bed, site)
            if link_checks is not None and checked is None and linkcheck.asks(run.topology.link):
                with phases.timed(Phase.LINK_CHECK, linkcheck.LIMIT_S):
                    checked = linkcheck.measure(run, bed, site)
                    if checked is not None:
                        link_checks.keep(checked)
                        if checked.reason is not None:
                            raise HostError(checked.reason)
            outcome.cautions += checked.cautions if checked is not None else ()
            stage = Stage(bed, site)
            stack.callback(stage.kill)
            with phases.timed(Phase.SERVE, _together(plan.servers)):
                servers = stage.start(plan.servers)
            with phases.timed(Phase.WARM_UP, _together(plan.warm_up)):
                for command in plan.warm_up:
                    to_its_end(command, bed, site)
            background: list[Started] = []
            load = _load(run, plugins, bed, pairs)
            if load.commands:
                with phases.timed(Phase.BACKGROUND, _together(load.commands)):
                    _has_places(bed, load.commands, run)
                    put_files(load.files, bed)
                    background = stage.start(load.commands)
            targets, ports = asked_by(bed, pairs), listening(plan.servers)
            placed_instruments = [
                (plugins.instruments[choice.kind], choice.params, target)
                for name, choice in run.instruments.items()
                for target in of_instrument(targets, outcome.drawn.get(name))
            ]
            measures = [command for plugin, params, target in placed_instruments for command in plugin.plan(params, target)]
            examinations = [
                command for plugin, params, target in placed_instruments for command in plugin.examine(params, target, ports)
            ]
            analyses = [command for plugin, params, target in placed_instruments for command in plugin.after(params, target)]
            with phases.timed(Phase.INSTRUMENT, _together(measures)):
                watch.begin()
                instruments = stage.start(measures)
            with phases.timed(Phase.WORKLOAD, max((command.limit_s for command in plan.clients), default=0.0)):
                for server in servers:
                    server.before = server.program.usage()
                before = stops(bed)
                events = Events(plan.events, bed, servers)
                try:
                    clients = all_at_once(plan.clients, bed, site, servers + instruments, events.begin)
                finally:
                    events.end()
                after = stops(bed)
                outcome.events = events.ended(clients.first_monotonic_s)
                outcome.start_skew_s = clients.skew_s
                outcome.clients = clients.times
                outcome.cautions += _apart(clients.times)
                outcome.cautions += _ended(background)
                if troubles_now := bed.troubles():
                    raise HostError("; ".join(troubles_now))
            if examinations:
                with phases.timed(Phase.EXAMINE, _together(examinations)):
                    stage.stop(instruments)
                    stage.stop(background)
                    for server in servers:
                        server.after = None if server.killed else server.program.usage()
                    for command in examinations:
                        to_its_end(command, bed, site)
            with phases.timed(Phase.COLLECT, _COLLECT_LIMIT_S + _together(analyses)):
                stage.stop([item for item in instruments if item.exit is None])
                stage.stop([item for item in background if item.exit is None])
                stage.stop(servers)
                for command in analyses:
                    to_its_end(command, bed, site)
                outcome.programs = [
                    *_used([*clients.started, *servers], Role.WORKLOAD),
                    *_used(instruments, Role.INSTRUMENT),
                ]
                stopped = None if before is None or after is None else after - before
                facts, cautions = waited(bed, stopped, outcome.programs, outcome.clients)
                outcome.passport = _with_machine(outcome.passport, facts)
                outcome.cautions += [*cautions, *watch.end(limit_s=_LOG_LIMIT_S)]
                outcome.applied += watch.rates.values()
                for name, host in bed.hosts.items():
                    host.collect(site.place(name))
                outcome.cautions += bed.at_end()
            with phases.timed(Phase.DOWN):
                stack.close()
    except HostError as error:
        reason = phases.overran or "; ".join(filter(None, (str(error), error.advice)))
        raise RunFailed(
            phases.current, "; ".join([reason, *(trouble for trouble in troubles if trouble not in reason)])
        ) from error


def is_in_a_lab(run: Run, drivers: Mapping[str, AnyDriver]) -> bool:
    """Return whether all hosts of the run's testbed are on a lab's switches alone; a host over SSH in a mixed testbed is
    not."""
    kind, params = run.testbed.kind, run.testbed.params
    makers = {kind, *(host.made_by(kind) for host in params.kinds().values())}
    return all(drivers[maker].in_lab for maker in makers)


def not_in_a_lab(run: Run) -> str:
    """Say why a workload may not run on this testbed."""
    kind, why = run.workload.kind, run.workload.params.lab_only
    hosts = f"hosts of {run.testbed_name} ({run.testbed.kind})"
    return f"the workload {kind} runs only in labs, and {hosts} are on other networks: {why}"


def _may_leave_unfinished(driver: AnyDriver, run: Run) -> bool:
    """Return whether a userspace datapath may join the hosts: one of the lab, or one that twinbed did not make."""
    return not driver.in_process and (not driver.in_lab or run.topology.switch in checksums.USERSPACE)


def _with_machine(passport: Mapping[str, Facts], facts: Facts) -> Mapping[str, Facts]:
    return {**passport, MACHINE: {**passport.get(MACHINE, {}), **facts}} if facts else passport


def _used(programs: Sequence[Started], role: Role) -> Iterator[ProgramUsage]:
    for item in programs:
        if item.used is not None:
            yield ProgramUsage(item.command.host, Path(item.command.argv[0]).name, role, item.used)


def _apart(clients: Sequence[ClientTimes]) -> list[Caution]:
    apart_s, share = skew_s(clients), overlap_share(clients)
    if apart_s <= START_SKEW_LIMIT_S:
        return []
    together = "" if share is None else f"; all ran together for {100 * share:.1f} % of the clients' time"
    return [Caution(Kind.SKEWED_START, f"{apart_s * 1e3:.0f} ms between the first and the last client{together}")]


def _load(run: Run, plugins: Plugins, bed: Bed, pairs: Sequence[tuple[str, str, str]]) -> BackgroundPlan:
    """Return the plans of all background loads of the run as one."""
    bystanders = [(client, server, bed.addresses[server]) for client, server in run.topology.bystander_names()]
    machines = [MACHINE, *(name for name in layout(run.topology).machines if name != MACHINE and name in bed.hosts)]
    places = Places(machines, pairs, bystanders)
    plans = [plugins.backgrounds[choice.kind].plan(choice.params, places) for choice in run.backgrounds.values()]
    files = [file for plan in plans for file in plan.files]
    return BackgroundPlan(files, [command for plan in plans for command in plan.commands])


def put_files(files: Sequence[tuple[str, str, bytes]], bed: Bed, executable: Collection[str] = ()) -> None:
    """Write files on hosts: (host, path, content). Programs are the files whose paths are ``executable``."""
    for host, path, content in files:
        bed.hosts[host].write(placed(path, bed.hosts[host]), content, mode=0o755 if path in executable else None)


def _has_places(bed: Bed, load: Sequence[Command], run: Run) -> None:
    for command in load:
        if command.host not in bed.hosts:
            raise HostError(f"the testbed {run.testbed_name} ({run.testbed.kind}) has no {command.host} to put a load on")


def _ended(programs: Sequence[Started]) -> list[Caution]:
    """Return cautions about background loads that ended before the workload."""
    ended = [item for item in programs if item.program.ended]
    return [
        Caution(Kind.BACKGROUND_ENDED, f"{item.command.argv[0]} on {item.command.host}: {item.program.wait(1.0).why}")
        for item in ended
    ]


def asked_by(bed: Bed, pairs: Sequence[tuple[str, str, str]]) -> list[Target]:
    """Return the testbed's targets, each with the servers that it asks and the clients that ask it."""
    return [
        replace(
            target,
            servers={server: address for client, server, address in pairs if client == target.name},
            clients={client: bed.addresses[client] for client, server, _ in pairs if server == target.name},
        )
        for target in bed.targets
    ]


def of_instrument(targets: Sequence[Target], drawn: Drawn | None) -> Sequence[Target]:
    """Return the targets for an instrument: of an instrument that is not put on all hosts, only the links of those drawn."""
    return targets if drawn is None else [target.narrowed(drawn.hosts) for target in targets]


def _together(commands: Sequence[Command]) -> float:
    """Return the longest time that commands may take one after another, seconds."""
    return sum(command.limit_s for command in commands)


def _evidence(bed: Bed, site: Site, watch: Watch, outcome: Outcome, troubles: list[str]) -> _AtExit:
    """Return a callback that, after a failure, collects the hosts' troubles and the artifacts of hosts that still answer."""

    def collect(kind: type[BaseException] | None, /, *_: object) -> None:
        if kind is None or not issubclass(kind, HostError):
            return
        troubles.extend(bed.troubles())
        outcome.cautions += watch.end(limit_s=_EVIDENCE_LIMIT_S, complete=False)
        for name, host in bed.hosts.items():
            with contextlib.suppress(HostError):
                host.collect(site.place(name), limit_s=_EVIDENCE_LIMIT_S)
        with contextlib.suppress(HostError):
            outcome.cautions += bed.at_end()

    return collect
