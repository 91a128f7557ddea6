"""Programs of a run on its hosts: started, awaited until ready, drained and ended. Their output becomes artifacts."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal, Never

from twinbed.contracts.bed import Bed
from twinbed.contracts.command import Command
from twinbed.contracts.host import Exit, Host, Program
from twinbed.contracts.site import Site
from twinbed.hosts import files
from twinbed.hosts.error import HostError, HostLost, LimitExceeded, ProgramFailed
from twinbed.model.clients import ClientTimes, skew_s
from twinbed.model.usage import Usage

_STOP_LIMIT_S = 30.0
_DRAIN_LIMIT_S, _DRAIN_MOST_S = 15.0, 60.0
"""The most time that a program may hold data without progress, and in all."""
_DRAIN_STEP_S = 0.02
_LISTEN_STEP_S = 0.25
_SIGUSR1 = 10
_SIGKILL = 9
_SIGTERM = 15
_CHROOT = "/usr/sbin/chroot"
"""Its path, since the programs' PATH is their root's."""
_ON_THE_WAY_S = 0.05
"""A common start reaches all clients in this time plus twice the time that it took to read their hosts' clocks."""


@dataclass
class Started:
    command: Command
    program: Program
    output: Path
    before: Usage | None = None
    """Its usage at the start of the measurement, if it ran before."""
    after: Usage | None = None
    """Its usage at the end of the measurement, if it ran on."""
    exit: Exit | None = None
    """Its end, once it has ended."""
    killed: bool = False
    """An event of the run has killed it."""

    @property
    def used(self) -> Usage | None:
        """Return its usage from the start of the measurement to the end; None if unknown."""
        total = self.after or (self.exit.usage if self.exit else None)
        return total.since(self.before) if total and self.before else total


class Stage:
    """The programs that stay while a workload runs."""

    def __init__(self, bed: Bed, site: Site) -> None:
        self._bed, self._site = bed, site
        self._running: list[Started] = []

    def start(self, commands: Iterable[Command]) -> list[Started]:
        """Start all programs of a round, wait until each is ready, and go on with the next round."""
        started: list[Started] = []
        for _, together in groupby(sorted(commands, key=_round), _round):
            items = [_start(command, self._bed, self._site) for command in together]
            self._running += items
            for item in items:
                _until_ready(item, self._bed)
            started += items
        return started

    def stop(self, started: Sequence[Started]) -> None:
        """End each by its own signal, once it has written the data that it holds, and keep its output.

        Programs that hold nothing end first, since they would go on measuring while the others drain; the last round comes
        before earlier ones.
        """
        for item in sorted(started, key=lambda item: (item.command.drained is not None, -item.command.round)):
            if item.command.drained:
                _drain(item)
            item.program.signal(item.command.stop)
        for item in started:
            item.exit = item.program.wait(item.command.stop_limit_s or _STOP_LIMIT_S)
            self._running.remove(item)
            _keep(item)

    def end(self) -> None:
        """Kill all running programs and wait for their ends. Their output is not kept."""
        for item in self._running:
            item.program.signal(_SIGKILL)
            item.program.wait(_STOP_LIMIT_S)
        self._running.clear()

    def kill(self) -> None:
        """Keep the output of running programs when a run has failed. They die with the lab."""
        for item in self._running:
            _keep(item)


def _round(command: Command) -> int:
    return command.round


def _start(command: Command, bed: Bed, site: Site, *, held: bool = False) -> Started:
    host = bed.hosts[command.host]
    argv = [placed(argument, host, bed.addresses) for argument in command.argv]
    env = {name: placed(value, host, bed.addresses) for name, value in command.env.items()}
    if command.root is not None:
        argv, env = [_CHROOT, command.root, *argv], {**site.image.environment, **env}
    program = host.start(argv, env=env, held=held)
    name = command.stdout or f"{Path(command.argv[0]).name}.out"
    return Started(command, program, site.place(command.host) / name)


def _until_ready(item: Started, bed: Bed) -> None:
    ready = item.command.ready
    if ready is None:
        raise AssertionError(f"{item.command.argv}: the command of a program that stays must have `ready`")
    if ready.says is not None:
        item.program.says(ready.says, item.command.limit_s)
    elif ready.listening is not None:
        _until_listening(item, bed.hosts[item.command.host], ready.listening, ready.protocol)
    elif ready.after_s is not None:
        item.program.started(item.command.limit_s)
        with item.program.changed:
            item.program.changed.wait_for(lambda: item.program.ended, ready.after_s)
        if item.program.ended:
            _raise_ended(item)


def _raise_ended(item: Started) -> Never:
    done = item.program.wait(1.0)
    why = f"{done.why} before it was ready"
    raise ProgramFailed(item.command.host, item.program.argv, why, done.stderr) from None


def _until_listening(item: Started, host: Host, port: int, protocol: Literal["tcp", "udp"]) -> None:
    """Wait for the port, and check now and then whether the program has ended instead."""
    deadline = time.monotonic() + item.command.limit_s
    while True:
        try:
            host.listening(port, _LISTEN_STEP_S, protocol)
            return
        except HostLost:
            raise
        except HostError:
            item.program.started()  # raises if it could not start
            if item.program.ended:
                _raise_ended(item)
            if time.monotonic() > deadline:
                which = f"{item.command.host}: {item.command.argv[0]}"
                limit_s = item.command.limit_s
                raise LimitExceeded(
                    f"{which}: it did not listen on {protocol.upper()} port {port} within {limit_s:g} s"
                ) from None


def _drain(item: Started) -> None:
    """Send SIGUSR1 until the program answers that its buffers are empty. A changed answer counts as progress: on a busy machine
    a full buffer takes long."""
    assert item.command.drained is not None
    begun = moved = time.monotonic()
    last = b""
    while True:
        before_bytes = len(item.program.stderr)
        item.program.signal(_SIGUSR1)
        item.program.says(_longer_than(before_bytes), _DRAIN_LIMIT_S)
        if item.command.drained(bytes(item.program.stderr)):
            return
        now, answer = time.monotonic(), bytes(item.program.stderr[before_bytes:])
        if answer != last:
            moved, last = now, answer
        if now - moved > _DRAIN_LIMIT_S or now - begun > _DRAIN_MOST_S:
            raise LimitExceeded(f"{item.command.host}: {item.command.argv[0]} still holds data after {now - begun:.0f} s")
        with item.program.changed:
            item.program.changed.wait(_DRAIN_STEP_S)


def _longer_than(length: int) -> Callable[[bytes], bool]:
    """Return a test for complete lines after ``length`` bytes."""
    return lambda stderr: len(stderr) > length and stderr.endswith(b"\n")


def to_its_end(command: Command, bed: Bed, site: Site) -> None:
    item = _start(command, bed, site)
    try:
        done = item.program.wait(command.limit_s)
    finally:
        _keep(item)
    if done.code not in command.exits:
        raise ProgramFailed(command.host, item.program.argv, done.why, done.stderr or done.stdout)


@dataclass(frozen=True, slots=True)
class Clients:
    """Clients that have all ended."""

    started: Sequence[Started]
    times: Sequence[ClientTimes]
    first_monotonic_s: float
    """When the first started, on this machine's clock."""

    @property
    def skew_s(self) -> float:
        """Return how far apart they started."""
        return skew_s(self.times)


def all_at_once(
    commands: Sequence[Command],
    bed: Bed,
    site: Site,
    staying: Sequence[Started] = (),
    begun: Callable[[Sequence[Started], float], object] = lambda clients, moment: None,
) -> Clients:
    """Start all clients at once and wait for each, even when another fails. The run fails with all errors, and with programs
    of ``staying`` that have ended. ``begun`` is called with the clients and the moment of their start.

    Several clients are first started and held, and then released at the same moment; none if one cannot start. Their times come
    from their hosts' clocks, compared with this machine's.
    """
    started = [_start(command, bed, site, held=len(commands) > 1) for command in commands]
    _raise(_not_brought_up(started))
    before = time.monotonic()
    ahead = {command.host: bed.hosts[command.host].monotonic_ahead_s() for command in commands}
    moment = now = time.monotonic()
    if len(started) > 1:
        moment = now + 2 * (now - before) + _ON_THE_WAY_S
        for item in started:
            item.program.release(moment + ahead[item.command.host])
    begun(started, moment)
    failures: list[HostError] = []
    lives: list[tuple[str, float, float]] = []
    for item in started:
        try:
            done = item.program.wait(item.command.limit_s)
            if done.code not in item.command.exits and not item.killed:
                raise ProgramFailed(item.command.host, item.program.argv, done.why, done.stderr or done.stdout)
            item.exit = done
            host = item.command.host
            lives.append((host, done.started_monotonic_s - ahead[host], done.ended_monotonic_s - ahead[host]))
        except HostError as error:
            failures.append(error)
        finally:
            _keep(item)
    _raise(failures + _gone(staying))
    first = min((start for _, start, _ in lives), default=0.0)
    return Clients(started, [ClientTimes(host, start - first, end - first) for host, start, end in lives], first)


def _not_brought_up(clients: Sequence[Started]) -> list[HostError]:
    """Return the errors of clients that could not start. The others are then killed, and their output is kept."""
    failures: list[HostError] = []
    for item in clients:
        try:
            item.program.started(item.command.limit_s)
        except HostError as error:
            failures.append(error)
    if failures:
        for item in clients:
            with contextlib.suppress(HostError):
                item.program.signal(_SIGKILL)
                item.program.wait(_STOP_LIMIT_S)
            _keep(item)
    return failures


def still_there(programs: Sequence[Started]) -> None:
    _raise(_gone(programs))


def _gone(programs: Sequence[Started]) -> list[HostError]:
    ended = [(item, item.program.wait(1.0)) for item in programs if item.program.ended and not item.killed]
    return [
        ProgramFailed(item.command.host, item.program.argv, f"{done.why} while the workload ran", done.stderr)
        for item, done in ended
    ]


def _raise(failures: Sequence[HostError]) -> None:
    """Raise all failures as one error, since each may come from another host."""
    if len(failures) > 1:
        raise HostError("; ".join(str(failure) for failure in failures))
    if failures:
        raise failures[0]


def _keep(item: Started) -> None:
    """Write standard output and, if there is any, error output as artifacts."""
    if item.program.stdout or item.command.stdout:
        _write(item.output, bytes(item.program.stdout))
    if errors := _bad_end(item) + bytes(item.program.stderr):
        _write(item.output.with_name(f"{item.output.name}.err"), errors)


def _bad_end(item: Started) -> bytes:
    """Return a line on how a program ended that stayed, unless in order: it explains a file that cannot be read. A program with
    a stop signal of its own catches that signal; others may die of SIGTERM."""
    done = item.exit
    if done is None or done.code == 0 or done.signal == item.command.stop == _SIGTERM:
        return b""
    return f"twinbed: {item.command.argv[0]}: {done.why}\n".encode()


def _write(path: Path, content: bytes) -> None:
    """Write a file in a folder that the program's host may share."""
    with files.create(path) as sink:
        sink.write(content)


_ADDRESS = re.compile(r"\{address:([A-Za-z0-9]+)\}")


def placed(text: str, host: Host, addresses: Mapping[str, str] | None = None) -> str:
    text = text.replace("{artifacts}", host.artifacts).replace("{bin}", host.bin)
    return text if addresses is None else _ADDRESS.sub(lambda match: addresses.get(match[1], match[0]), text)
