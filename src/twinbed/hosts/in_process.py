"""Hosts inside this process: their programs are functions, so that a testbed needs nothing from the machine.

A subclass defines its programs in ``answer``. A few harmless programs (echo, cat, true, false, sleep) are here, so that such
hosts pass the contract of every driver.
"""

from __future__ import annotations

import shutil
import signal as signals
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.contracts.host import Exit
from twinbed.hosts.error import HostError, LimitExceeded, ProgramFailed


@dataclass(frozen=True, slots=True)
class Answer:
    """Output of a program, and its end after ``seconds`` of this machine's time; infinite for a program that stays."""

    stdout: bytes = b""
    code: int = 0
    stderr: bytes = b""
    seconds: float = 0.0


class InProcessProgram:
    """A program that has already ended, unless its answer takes time."""

    def __init__(self, host: str, argv: Sequence[str], answer: Answer) -> None:
        self.host, self.argv = host, tuple(argv)
        self.stdout, self.stderr = bytearray(answer.stdout), bytearray(answer.stderr)
        self.changed = threading.Condition()
        self._code = answer.code
        self._seconds = answer.seconds
        self._begins = time.monotonic()
        self._killed = threading.Event()
        self._by = 0

    @property
    def _ends(self) -> float:
        return self._begins + self._seconds

    @property
    def ended(self) -> bool:
        return self._killed.is_set() or time.monotonic() >= self._ends

    def started(self, limit_s: float = 10.0) -> int:
        return 1

    def release(self, at_s: float) -> None:
        self._begins = at_s

    def says(self, text: bytes | Callable[[bytes], bool], limit_s: float) -> None:
        output = bytes(self.stdout + self.stderr)
        if not (text(output) if callable(text) else text in output):
            raise ProgramFailed(self.host, self.argv, "ended before it was ready", bytes(self.stderr))

    def usage(self) -> None:
        """Return None: a function of this process uses nothing of a host."""

    def signal(self, number: int, *, group: bool = True) -> None:
        if not self.ended:
            self._by = int(number)
            self._killed.set()

    def wait(self, limit_s: float) -> Exit:
        left = self._ends - time.monotonic()
        if left > 0 and not self._killed.wait(min(left, limit_s)) and left > limit_s:
            self.signal(signals.SIGKILL)
            raise LimitExceeded(f"{self.host}: {' '.join(self.argv)}: not done after {limit_s:g} s")
        ended = time.monotonic() if self._by else self._ends
        code, by = (None, self._by) if self._by else (self._code, None)
        return Exit(code, by, bytes(self.stdout), bytes(self.stderr), None, 0, self._begins, ended)


class InProcessHost:
    """A host inside this process. Its only files are in its folder of artifacts."""

    kind = "in-process"
    """Its name in error messages."""
    bin = "/nowhere"

    def __init__(self, name: str, artifacts: str) -> None:
        self.name, self.artifacts = name, artifacts

    @property
    def lost(self) -> bool:
        return False

    def answer(self, argv: Sequence[str]) -> Answer | None:
        """Return the answer of one of its programs; None if it has no such program."""
        return None

    def start(self, argv: Sequence[str], *, stdin: bytes = b"", **_: object) -> InProcessProgram:
        answer = self.answer(argv) or self._harmless(argv, stdin)
        if answer is None:
            raise HostError(f"{self.name}: {argv[0]}: a {self.kind} host has no such program")
        return InProcessProgram(self.name, argv, answer)

    def _harmless(self, argv: Sequence[str], stdin: bytes) -> Answer | None:
        program, arguments = argv[0], argv[1:]
        if program in ("true", "false"):
            return Answer(code=int(program == "false"))
        if program == "echo":
            return Answer((" ".join(arguments) + "\n").encode())
        if program == "cat":
            return Answer(b"".join(self.read(path) for path in arguments) or stdin)
        if program == "sleep":
            return Answer(seconds=float(arguments[0]))
        return None

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
            raise HostError(f"{self.name}: writing {path}: a {self.kind} host has only {self.artifacts}")
        Path(path).write_bytes(content)

    def fetch(self, path: str, to: Path, *, limit_s: float = 120.0) -> int:
        shutil.copyfile(path, to)
        return to.stat().st_size

    def ping(self, limit_s: float = 5.0) -> Mapping[str, float]:
        """Return this machine's clocks: the host has none of its own."""
        now_s = time.time()
        return {"monotonic_s": time.monotonic(), "sent_s": now_s, "received_s": now_s}

    def monotonic_ahead_s(self) -> float:
        """Return 0: the host has no clock of its own."""
        return 0.0

    def listening(self, port: int, limit_s: float, protocol: str = "tcp") -> float:
        raise HostError(f"{self.name}: a {self.kind} host has no ports")

    def reaches(self, address: str, limit_s: float) -> bool:
        """Return True: no link to other hosts could be down."""
        return True

    def collect(self, to: Path, *, limit_s: float = 120.0) -> None:
        """Do nothing: the folder of artifacts is on this machine."""

    def close(self) -> None:
        """Do nothing: there is no connection."""
