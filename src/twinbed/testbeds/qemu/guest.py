"""One guest: its QEMU process inside the lab, and its agent."""

from __future__ import annotations

import contextlib
import functools
import re
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed import _core
from twinbed.contracts.command import PRELOAD
from twinbed.hosts import process as programs
from twinbed.hosts.agent import AgentHost, Running, accept, listen, new_key
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import Lab, first_id
from twinbed.image import Image
from twinbed.links.layout import Nic
from twinbed.testbeds.qemu import monitor
from twinbed.testbeds.qemu.command_line import Sockets, command_line
from twinbed.testbeds.qemu.settings import QemuSettings
from twinbed.testbeds.qemu.snapshot import Snapshot

ARTIFACTS = "/run/twinbed"
"""The guest's init makes this folder (crates/probe/src/init.rs)."""
CONSOLE = "console.txt"
MOST_CONSOLE_BYTES = 64 * 2**20
"""The kernel lets QEMU write no more; the rest of a guest's output is lost."""
_END_LIMIT_S = 5.0
_DRAWN: set[str] = set()
"""First random numbers of each guest that this process has resumed."""
_DRAWING = threading.Lock()
_LAST_WORDS = re.compile(r"Kernel panic|BUG:|Oops:|Out of memory:")
_STAMP = re.compile(r"^\[\s*\d+\.\d+\]\s*")
_LINES = 3
_LONGEST_TAIL = 2000


class GuestLost(HostError):
    """A guest whose agent never greeted; ``output``: QEMU's output, at least one line."""

    def __init__(self, error: HostError, output: str, console: str) -> None:
        super().__init__(f"{error}; QEMU printed: {output}; console: {console}")
        self.output = output


@dataclass(frozen=True, slots=True)
class Guest:
    host: AgentHost
    process: Running
    pid: int
    """QEMU's process id on its machine."""
    user: int | None
    """The user id that QEMU took; None if it kept that of whoever started it."""
    monitor: Path
    console: Path
    seconds: float
    """From the start of QEMU to the agent's greeting."""


def boot(
    stack: contextlib.ExitStack,
    lab: Lab,
    machine: AgentHost,
    name: str,
    settings: QemuSettings,
    accelerator: str,
    image: Image,
    *,
    evidence: Path,
    nics: Sequence[Nic],
    cpus: Sequence[int] | None,
    limit_s: float,
    vhost: bool = False,
    snapshot: Snapshot | None = None,
) -> Guest:
    """Boot a guest on a machine of the lab, or resume it from a snapshot, and wait for its agent.

    ``evidence``: folder for its console and QEMU's output. Raises HostError with both."""
    started = time.monotonic()
    user = first_id(lab.id, name)
    sockets = Sockets(lab.scratch / f"{name}.sock", lab.scratch / f"{name}.qmp", evidence / CONSOLE)
    key = new_key()
    kept = None if snapshot is None else snapshot.kept()
    sockets.agent.unlink(missing_ok=True)
    with listen(sockets.agent) as server:
        line = command_line(
            *(name, settings, accelerator, image, sockets, nics, vhost), tsc_khz=tsc_khz(), key=key, user=user, kept=kept
        )
        # QEMU writes only the console's file, and the guest decides how much.
        limited = ["prlimit", f"--fsize={MOST_CONSOLE_BYTES}", *line]
        process = machine.start(limited, cpus=cpus, env=None if kept is None else _only_read(machine, kept.memory))
        stack.callback(_end, process)
        pid = process.started()
        connection = accept(server, name, process, limit_s, key)
    stack.callback(connection.close)
    try:
        if snapshot is not None:
            monitor.resume(sockets.monitor, name, snapshot.state, snapshot.version, limit_s=limit_s)
        connection.hello(limit_s)
    except HostError as error:
        lost = GuestLost(error, _output(process), _tail(sockets.console))
        _end(process)  # Another guest may be started in its place, on the same taps.
        raise lost from None
    seconds = time.monotonic() - started
    host = AgentHost(name, connection, ARTIFACTS)
    if snapshot is not None:
        _tell_apart(host)
    return Guest(host, process, pid, user, sockets.monitor, sockets.console, seconds)


def _only_read(machine: AgentHost, memory: Path) -> Mapping[str, str]:
    """Return the environment in which QEMU opens the guests' shared memory only to read it: whoever breaks out of a guest
    cannot change it."""
    return {"LD_PRELOAD": f"{machine.bin}/{PRELOAD}", "TWINBED_ONLY_READ": str(memory)}


def _tell_apart(host: AgentHost) -> None:
    """Give a resumed guest a clock and random numbers of its own. Raises HostError if it draws another's numbers."""
    drawn = host.resumed()
    with _DRAWING:
        if drawn in _DRAWN:
            raise HostError(
                f"{host.name}: it drew the same random numbers as another guest of its snapshot", advice="set boot: fresh"
            )
        _DRAWN.add(drawn)


@functools.cache
def tsc_khz() -> int:
    """Measure the frequency of this machine's time stamp counter, once."""
    return round(_core.time_stamp_counter_hz() / 1000)


def trouble(guest: Guest) -> str | None:
    """Return what ended a guest, with its kernel's last messages; None while QEMU runs.

    A guest whose kernel panics ends its QEMU a little after its agent is lost."""
    with contextlib.suppress(HostError):
        guest.process.until(lambda: guest.process.ended, _END_LIMIT_S if guest.host.lost else 0.0)
    if not guest.process.ended:
        return None
    panic = _panic(guest.console)
    return f"{guest.host.name}: QEMU ended ({guest.process.wait(1.0).why})" + (f"; its console: {panic}" if panic else "")


def _panic(console: Path) -> str | None:
    """Return the lines in which a kernel reports why it stops."""
    text = programs.last_bytes(console).decode(errors="replace")
    last_words = [line for line in text.splitlines() if _LAST_WORDS.search(line)]
    return " | ".join(_STAMP.sub("", line) for line in last_words[:_LINES])[:_LONGEST_TAIL] or None


def _end(process: Running) -> None:
    """Kill QEMU. A guest has nothing to lose: its disk is read-only."""
    with contextlib.suppress(HostError):
        process.signal(signal.SIGKILL)
        process.wait(5.0)


def _output(process: Running) -> str:
    return bytes(process.stderr).decode(errors="replace").strip() or "no output"


def _tail(console: Path, lines: int = 5) -> str:
    text = programs.last_bytes(console).decode(errors="replace")
    return " | ".join(text.strip().splitlines()[-lines:])[-_LONGEST_TAIL:] or ("empty" if console.exists() else "none")
