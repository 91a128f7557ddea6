"""A lab: PID, network and mount namespaces held by one process, in which everything of a run lives and with which it dies.

The process that holds it (``twinbed-probe lab``) ends when its control stream ends, by whatever signal its controller
died; the kernel then ends everything in its PID namespace.  What namespaces cannot hold carries the lab's id: a scratch
folder and control groups.  The lab's keeper removes them; ``sweep`` removes those of labs whose keeper died too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.contracts.place import MACHINE
from twinbed.hosts import cgroups, process
from twinbed.hosts.agent import PROBE, AgentHost, accept, listen
from twinbed.hosts.cgroups import LabGroups
from twinbed.hosts.connection import Connection
from twinbed.hosts.error import HostError

PREFIX = "twinbed-"
_START_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Lab:
    """``machine`` runs programs inside the lab, beside its switches; ``scratch`` is its private folder; ``cgroups`` its control
    groups; ``keeper`` the process outside that holds it."""

    id: str
    machine: AgentHost
    scratch: Path
    cgroups: LabGroups
    keeper: int

    def first_process(self) -> int:
        """The lab's PID 1, as this machine sees it."""
        return int(Path(f"/proc/{self.keeper}/task/{self.keeper}/children").read_text().split()[0])


def labs_folder() -> Path:
    """Where labs keep their scratch folders: short, because socket paths are at most 107 bytes."""
    base = Path("/run") if os.geteuid() == 0 else Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    return base / f"twinbed-{os.geteuid()}"


@contextlib.contextmanager
def open_lab(probe: Path, artifacts: Path) -> Iterator[Lab]:
    """Hold a lab while the block runs. ``artifacts`` is where programs on the machine leave what is to be kept."""
    identity = secrets.token_hex(5)
    scratch = labs_folder() / f"{PREFIX}{identity}"
    groups = LabGroups.of(scratch.name)
    with contextlib.ExitStack() as stack:
        labs_folder().mkdir(parents=True, exist_ok=True)
        with _folder_held(fcntl.LOCK_SH):
            scratch.mkdir(mode=0o700)
            stack.callback(remove, scratch, groups.folders)
            lock = os.open(scratch / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            stack.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if groups.unified:
            groups.unified.mkdir()
        log = scratch / "lab.log"
        ours, theirs = socket.socketpair()
        with theirs:
            keeper = process.start(
                [
                    *(str(probe), "lab", "--fd", str(theirs.fileno()), "--id", identity, "--scratch", str(scratch)),
                    *(word for folder in groups.folders for word in ("--cgroup", str(folder))),
                ],
                keep_open=[theirs.fileno()],
                log=log,
            )
        stack.callback(_end, ours, keeper.wait)
        connection = Connection(MACHINE, ours)
        stack.callback(connection.close)
        try:
            connection.hello(_START_LIMIT_S)
        except HostError as error:
            said = log.read_text(errors="replace").strip() if log.exists() else ""
            raise HostError(f"the lab did not start: {error}{': ' if said else ''}{said}") from None
        machine = AgentHost(MACHINE, connection, str(artifacts), artifacts, str(probe.parent))
        yield Lab(identity, machine, scratch, groups, keeper.pid)


@contextlib.contextmanager
def another_machine(lab: Lab, name: str, artifacts: Path) -> Iterator[AgentHost]:
    """A machine beside the lab's own: a network namespace with an agent, which ends with the lab at the latest."""
    path = lab.scratch / f"{name}.sock"
    with listen(path) as server:
        command = ["unshare", "--net", f"{lab.machine.bin}/{PROBE}", "agent", "--connect", str(path)]
        running = lab.machine.start(command)
        connection = accept(server, name, running, _START_LIMIT_S)
    try:
        connection.hello(_START_LIMIT_S)
        machine = AgentHost(name, connection, str(artifacts), artifacts, lab.machine.bin)
        machine.run(["ip", "link", "set", "lo", "up"])
        yield machine
    finally:
        connection.close()


def _end(control: socket.socket, wait: Callable[[], object]) -> None:
    """A lab ends when its control stream does. An interrupt may have come before there was a connection to close it."""
    with contextlib.suppress(OSError):
        control.shutdown(socket.SHUT_RDWR)
    wait()


def remove(scratch: Path, groups: Sequence[Path], *, limit_s: float = 5.0) -> None:
    """Remove what a dead lab left. Control groups that it never made are no matter."""
    shutil.rmtree(scratch, ignore_errors=True)
    for folder in groups:
        cgroups.remove(folder, limit_s=limit_s)


def leftovers() -> Sequence[tuple[Path, tuple[Path, ...]]]:
    """(scratch folder, control groups) of labs that no living process holds."""
    found: dict[str, tuple[Path, ...]] = {}
    with _folder_held(fcntl.LOCK_EX):
        for scratch in labs_folder().glob(f"{PREFIX}*"):
            if not _held(scratch / "lock"):
                found[scratch.name] = ()
        for root in cgroups.roots():
            for group in root.glob(f"{PREFIX}*"):
                if group.name in found or not (labs_folder() / group.name).exists():
                    found[group.name] = (*found.get(group.name, ()), group)
    return [(labs_folder() / name, groups) for name, groups in found.items()]


@contextlib.contextmanager
def _folder_held(how: int) -> Iterator[None]:
    """Keeps those who look for dead labs from those whose lab has a folder but not yet its lock."""
    try:
        folder = os.open(labs_folder(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        fcntl.flock(folder, how)
        yield
    finally:
        os.close(folder)


def _held(lock: Path) -> bool:
    try:
        file = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
