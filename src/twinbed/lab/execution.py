"""One run, phase by phase: testbed up, settings held against what was read back, servers, warm-up, instruments, workload,
artifacts collected, everything down.

Nothing is retried and nothing waits a fixed time.  What goes wrong is a ``RunFailed`` with the phase, and the evidence stays
in the folder.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twinbed.hosts.agent import Running
from twinbed.hosts.error import HostError, LimitExceeded, ProgramFailed
from twinbed.hosts.site import Site
from twinbed.model.caution import Caution
from twinbed.model.plugin import Applied, Bed, Command
from twinbed.model.run import Phase, Run

_STOP_LIMIT_S = 10.0
_DRAIN_LIMIT_S = 5.0
_DRAIN_STEP_S = 0.02
_SIGUSR1 = 10
_EVIDENCE_LIMIT_S = 5.0


class RunFailed(Exception):
    """A run that did not come to its end: data, not a bug."""

    def __init__(self, phase: Phase, reason: str) -> None:
        super().__init__(f"{phase}: {reason}")
        self.phase, self.reason = phase, reason


@dataclass
class Outcome:
    """What is known of a run so far; complete once ``execute`` has returned."""

    phases: dict[str, float] = field(default_factory=dict)
    applied: list[Applied] = field(default_factory=list)
    passport: Mapping[str, Any] = field(default_factory=dict)
    cautions: list[Caution] = field(default_factory=list)
    lab: str = ""


def execute(run: Run, plugins: Any, site: Site, outcome: Outcome, on_phase: Callable[[Phase], None]) -> None:
    """Carry out a run. Fills ``outcome`` as it goes, so that a failed run keeps what was learnt. Raises RunFailed."""
    driver = plugins.drivers[run.testbed.kind]
    workload = plugins.workloads[run.workload.kind]
    clock = _Clock(outcome, on_phase)
    try:
        with contextlib.ExitStack() as stack:
            with clock.phase(Phase.UP):
                bed: Bed = stack.enter_context(driver.up(run.testbed.params, run.topology, site))
            stack.push(_Evidence(bed, site))
            outcome.lab = bed.lab
            outcome.passport = bed.passport
            outcome.cautions += bed.cautions
            outcome.applied += bed.applied
            with clock.phase(Phase.CONFIGURE):
                _hold_to(bed.applied)
                pairs = [(client, server, bed.addresses[server]) for client, server in run.topology.names()]
                plan = workload.plan(run.workload.params, pairs)
                for host, path, content in plan.files:
                    bed.hosts[host].write(_placed(path, bed.hosts[host]), content)
                for command in plan.prepare:
                    _to_its_end(command, bed, site)
            stage = _Stage(bed, site)
            stack.callback(stage.kill)
            with clock.phase(Phase.SERVE):
                servers = stage.start(plan.servers)
            with clock.phase(Phase.WARM_UP):
                for command in plan.warm_up:
                    _to_its_end(command, bed, site)
            with clock.phase(Phase.INSTRUMENT):
                instruments = stage.start(
                    command
                    for choice in run.instruments.values()
                    for target in bed.targets
                    for command in plugins.instruments[choice.kind].plan(choice.params, target)
                )
            with clock.phase(Phase.WORKLOAD):
                _workload(plan.clients, bed, site)
                _still_there(servers + instruments)
            with clock.phase(Phase.COLLECT):
                stage.stop(instruments)
                stage.stop(servers)
                for name, host in bed.hosts.items():
                    host.collect(site.place(name))
            with clock.phase(Phase.DOWN):
                stack.close()
    except HostError as error:
        raise RunFailed(clock.current, str(error)) from error


class _Clock:
    """Times the phases, and knows in which one a run is."""

    def __init__(self, outcome: Outcome, on_phase: Callable[[Phase], None]) -> None:
        self._outcome, self._on_phase = outcome, on_phase
        self.current = Phase.UP

    @contextlib.contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        self.current = phase
        self._on_phase(phase)
        started = time.monotonic()
        try:
            yield
        finally:
            self._outcome.phases[phase.value] = round(time.monotonic() - started, 6)


class _Evidence:
    """On the way out of a failed run: bring what its hosts have written so far, from those that still answer."""

    def __init__(self, bed: Bed, site: Site) -> None:
        self._bed, self._site = bed, site

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not issubclass(kind, HostError):
            return
        for name, host in self._bed.hosts.items():
            with contextlib.suppress(HostError):
                host.collect(self._site.place(name), limit_s=_EVIDENCE_LIMIT_S)


def _hold_to(applied: Sequence[Applied]) -> None:
    wrong = [item for item in applied if not item.agrees]
    if wrong:
        raise HostError(
            "; ".join(
                f"{item.subject}: {item.setting} should be {item.asked!r} but `{item.source}` says {item.found!r}"
                for item in wrong
            )
        )


@dataclass
class _Started:
    command: Command
    program: Running
    output: Path


class _Stage:
    """The programs that stay while a workload runs."""

    def __init__(self, bed: Bed, site: Site) -> None:
        self._bed, self._site = bed, site
        self._running: list[_Started] = []

    def start(self, commands: Any) -> list[_Started]:
        """Start all, then wait until each is ready."""
        started = [_start(command, self._bed, self._site) for command in commands]
        self._running += started
        for item in started:
            _until_ready(item, self._bed)
        return started

    def stop(self, started: Sequence[_Started]) -> None:
        """End each by its own signal, once it has written what it still holds, and keep what it said.

        Those that hold nothing are ended first: they would go on measuring while the others are waited for.
        """
        for item in sorted(started, key=lambda item: item.command.drained is not None):
            if item.command.drained:
                _drain(item)
            item.program.signal(item.command.stop)
        for item in started:
            item.program.wait(_STOP_LIMIT_S)
            self._running.remove(item)
            _keep(item)

    def kill(self) -> None:
        """On the way out of a failed run: keep what the programs have said. They die with the lab."""
        for item in self._running:
            _keep(item)


def _start(command: Command, bed: Bed, site: Site) -> _Started:
    host = bed.hosts[command.host]
    argv = [_placed(argument, host) for argument in command.argv]
    program = host.start(argv, env={name: _placed(value, host) for name, value in command.env.items()})
    name = command.stdout or f"{Path(command.argv[0]).name}.out"
    return _Started(command, program, site.place(command.host) / name)


def _until_ready(item: _Started, bed: Bed) -> None:
    ready = item.command.ready
    if ready is None:
        raise AssertionError(f"{item.command.argv}: a program that stays must say how to know that it is ready")
    if ready.says is not None:
        item.program.says(ready.says, item.command.limit_s)
    elif ready.listening is not None:
        try:
            bed.hosts[item.command.host].listening(ready.listening, item.command.limit_s)
        except HostError as error:
            if item.program.ended:
                item.program.says(lambda _: False, 0.1)
            raise error


def _drain(item: _Started) -> None:
    """Ask with SIGUSR1 until the program's answer says that nothing is left in its buffers."""
    assert item.command.drained is not None
    deadline = time.monotonic() + _DRAIN_LIMIT_S
    while True:
        answered = _longer_than(len(item.program.stderr))
        item.program.signal(_SIGUSR1)
        item.program.says(answered, _DRAIN_LIMIT_S)
        if item.command.drained(bytes(item.program.stderr)):
            return
        if time.monotonic() > deadline:
            raise LimitExceeded(f"{item.command.host}: {item.command.argv[0]} still holds data after {_DRAIN_LIMIT_S:g} s")
        with item.program.changed:
            item.program.changed.wait(_DRAIN_STEP_S)


def _longer_than(length: int) -> Callable[[bytes], bool]:
    """Whether whole lines have been said since."""
    return lambda said: len(said) > length and said.endswith(b"\n")


def _to_its_end(command: Command, bed: Bed, site: Site) -> None:
    item = _start(command, bed, site)
    try:
        done = item.program.wait(command.limit_s)
    finally:
        _keep(item)
    if done.code != 0:
        raise ProgramFailed(command.host, command.argv, done.why, done.stderr or done.stdout)


def _workload(commands: Sequence[Command], bed: Bed, site: Site) -> None:
    """Start all clients at once and wait for each; the first that fails is the run's failure."""
    started = [_start(command, bed, site) for command in commands]
    failures: list[HostError] = []
    for item in started:
        try:
            done = item.program.wait(item.command.limit_s)
            if done.code != 0:
                raise ProgramFailed(item.command.host, item.command.argv, done.why, done.stderr or done.stdout)
        except HostError as error:
            failures.append(error)
        finally:
            _keep(item)
    if failures:
        raise failures[0]


def _still_there(programs: Sequence[_Started]) -> None:
    for item in programs:
        if item.program.ended:
            done = item.program.wait(1.0)
            raise ProgramFailed(item.command.host, item.command.argv, f"{done.why} while the workload ran", done.stderr)


def _keep(item: _Started) -> None:
    """Standard output and, where there is any, error output become artifacts."""
    if item.program.stdout or item.command.stdout:
        item.output.write_bytes(bytes(item.program.stdout))
    if item.program.stderr:
        item.output.with_name(f"{item.output.name}.err").write_bytes(bytes(item.program.stderr))


def _placed(text: str, host: Any) -> str:
    return text.replace("{artifacts}", host.artifacts).replace("{bin}", host.bin)
