"""Driver ``fake``: no hosts at all, but a planted response, so that analyses can be held against what was planted.

Its hosts answer ``planted-response`` with ``ratio`` times the rate that the workload asks for and lognormal noise, and a few
harmless programs (echo, cat, true, false, sleep) so that it passes the contract of every driver.  The noise follows from
``seed`` and the run, or is fresh every time where seed is null.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import shutil
import signal as signals
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from twinbed.contracts.bed import Applied, Bed
from twinbed.contracts.check import Check
from twinbed.contracts.driver import Driver
from twinbed.contracts.host import Exit
from twinbed.contracts.params import DriverParams
from twinbed.contracts.place import MACHINE
from twinbed.contracts.site import Site
from twinbed.hosts.error import HostError, LimitExceeded, ProgramFailed
from twinbed.model.topology import Topology


class FakeSettings(DriverParams):
    ratio: float = Field(1.0, gt=0, description="what the planted response is multiplied by on this testbed")
    spread: float | None = Field(None, ge=0, description="standard deviation of the log of the response; null: the workload's")
    seed: int | None = Field(None, description="makes the noise repeatable; null: fresh noise every time")

    def estimate_seconds(self) -> float:
        """What a run takes beside its workload."""
        return 0.01


class FakeProgram:
    """A program that has already ended, except ``sleep``, which can be waited for and ended."""

    def __init__(
        self, host: str, argv: Sequence[str], code: int, stdout: bytes, stderr: bytes = b"", seconds: float = 0.0
    ) -> None:
        self.host, self.argv = host, tuple(argv)
        self.stdout, self.stderr = bytearray(stdout), bytearray(stderr)
        self.changed = threading.Condition()
        self._code = code
        self._ends = time.monotonic() + seconds
        self._killed = threading.Event()
        self._by = 0

    @property
    def ended(self) -> bool:
        return self._killed.is_set() or time.monotonic() >= self._ends

    def started(self, limit_s: float = 10.0) -> int:
        return 1

    def says(self, text: bytes | Callable[[bytes], bool], limit_s: float) -> None:
        output = bytes(self.stdout + self.stderr)
        if not (text(output) if callable(text) else text in output):
            raise ProgramFailed(self.host, self.argv, "ended before it was ready", bytes(self.stderr))

    def signal(self, number: int, *, group: bool = True) -> None:
        if not self.ended:
            self._by = int(number)
            self._killed.set()

    def wait(self, limit_s: float) -> Exit:
        left = self._ends - time.monotonic()
        if left > 0 and not self._killed.wait(min(left, limit_s)) and left > limit_s:
            self.signal(signals.SIGKILL)
            raise LimitExceeded(f"{self.host}: {' '.join(self.argv)}: not done after {limit_s:g} s")
        now = time.monotonic()
        code, by = (None, self._by) if self._by else (self._code, None)
        return Exit(code, by, bytes(self.stdout), bytes(self.stderr), 0.0, 0.0, 0, now, now)


@dataclass(frozen=True)
class FakeHost:
    name: str
    artifacts: str
    bin: str
    settings: FakeSettings
    noise: random.Random

    @property
    def lost(self) -> bool:
        return False

    def start(self, argv: Sequence[str], *, stdin: bytes = b"", **_: object) -> FakeProgram:
        program, arguments = argv[0], list(argv[1:])
        if program == "planted-response":
            return FakeProgram(
                self.name, argv, 0, self._respond(arguments), seconds=float(_option(arguments, "--seconds", "0"))
            )
        if program in ("true", "false"):
            return FakeProgram(self.name, argv, int(program == "false"), b"")
        if program == "echo":
            return FakeProgram(self.name, argv, 0, (" ".join(arguments) + "\n").encode())
        if program == "cat":
            return FakeProgram(self.name, argv, 0, b"".join(self.read(path) for path in arguments) or stdin)
        if program == "sleep":
            return FakeProgram(self.name, argv, 0, b"", seconds=float(arguments[0]))
        raise HostError(f"{self.name}: {program}: a fake host has no such program")

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", limit_s: float = 30.0, check: bool = True, **rest: object
    ) -> Exit:
        done = self.start(argv, stdin=stdin).wait(limit_s)
        if check and done.code != 0:
            raise ProgramFailed(self.name, argv, done.why, done.stderr)
        return done

    def read(self, path: str, *, limit_s: float = 30.0) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise HostError(f"{self.name}: reading {path}: {error.strerror}") from None

    def write(self, path: str, content: bytes, *, mode: int | None = None, limit_s: float = 30.0) -> None:
        if not Path(path).is_relative_to(self.artifacts):
            raise HostError(f"{self.name}: writing {path}: a fake host has only {self.artifacts}")
        Path(path).write_bytes(content)

    def fetch(self, path: str, to: Path, *, limit_s: float = 120.0) -> int:
        shutil.copyfile(path, to)
        return to.stat().st_size

    def ping(self, limit_s: float = 5.0) -> Mapping[str, float]:
        """It has no clock of its own."""
        now_s = time.time()
        return {"monotonic_s": time.monotonic(), "sent_s": now_s, "received_s": now_s}

    def monotonic_ahead_s(self) -> float:
        """It has no clock of its own."""
        return 0.0

    def listening(self, port: int, limit_s: float) -> float:
        raise HostError(f"{self.name}: nothing ever listens on a fake host")

    def collect(self, to: Path, *, limit_s: float = 120.0) -> None:
        """The folder of artifacts is this machine's own."""

    def close(self) -> None:
        """There is nothing to close."""

    def _respond(self, arguments: list[str]) -> bytes:
        spread = self.settings.spread if self.settings.spread is not None else float(_option(arguments, "--spread", "0.02"))
        rate = float(_option(arguments, "--rate", "1000")) * self.settings.ratio * math.exp(self.noise.gauss(0.0, spread))
        requests = round(rate * 10)
        packets = round(requests * 10 * math.exp(self.noise.gauss(0.0, spread / 10)))
        answer = {"requests": requests, "requests_per_second": rate, "packets": packets, "bytes": packets * 120}
        return json.dumps(answer).encode()


def _option(arguments: list[str], name: str, default: str) -> str:
    return arguments[arguments.index(name) + 1] if name in arguments else default


class Fake(Driver[FakeSettings]):
    name = "fake"
    params = FakeSettings
    summary = "no hosts, a planted response: for tests and demonstrations, with the workload `planted`"

    def check(self, params: FakeSettings) -> Sequence[Check]:
        return []

    @contextlib.contextmanager
    def up(self, params: FakeSettings, topology: Topology, site: Site) -> Iterator[Bed]:
        names = [name for pair in (*topology.names(), *topology.bystander_names()) for name in pair]
        noise = random.Random(None if params.seed is None else f"{params.seed}/{site.run}")
        hosts = {name: FakeHost(name, str(site.place(name)), "/nowhere", params, noise) for name in names}
        yield Bed(
            hosts=hosts,
            addresses={name: f"10.77.0.{number}" for number, name in enumerate(names, start=1)},
            targets=[],
            applied=[Applied(name, "ratio", params.ratio, hosts[name].settings.ratio, "the driver itself") for name in names],
            passport={MACHINE: {"kind": "fake: no machine"}, **{name: {"kind": "fake"} for name in names}},
        )


fake = Fake()
