"""A lab: PID, network and mount namespaces held by one process, in which everything of a run lives and with which it dies.

The process that holds it (``twinbed-probe lab``) ends when its control stream ends, by whatever signal its controller
died; the kernel then ends everything in its PID namespace.  What namespaces cannot hold carries the lab's id: a scratch
folder and a control group.  The lab's keeper removes both; ``sweep`` removes those of labs whose keeper died too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.hosts import process
from twinbed.hosts.agent import PROBE, AgentHost, accept, listen
from twinbed.hosts.connection import Connection
from twinbed.hosts.error import HostError
from twinbed.model.plugin import MACHINE

PREFIX = "twinbed-"
_START_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Lab:
    """``machine`` runs programs inside the lab, beside its switches; ``scratch`` is its private folder;
    ``cgroup`` its control group (v2), None where this machine lets us make none."""

    id: str
    machine: AgentHost
    scratch: Path
    cgroup: Path | None


def labs_folder() -> Path:
    """Where labs keep their scratch folders: short, because socket paths are at most 107 bytes."""
    base = Path("/run") if os.geteuid() == 0 else Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    return base / f"twinbed-{os.geteuid()}"


def cgroup_root() -> Path | None:
    """The mount point of the unified control-group hierarchy, where this user may make groups in it."""
    for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        if (root / "cgroup.procs").exists() and (root / "cgroup.controllers").exists():
            return root if os.access(root, os.W_OK) else None
    return None


@contextlib.contextmanager
def open_lab(probe: Path, artifacts: Path) -> Iterator[Lab]:
    """Hold a lab while the block runs. ``artifacts`` is where programs on the machine leave what is to be kept."""
    identity = secrets.token_hex(5)
    scratch = labs_folder() / f"{PREFIX}{identity}"
    root = cgroup_root()
    cgroup = root / f"{PREFIX}{identity}" if root else None
    with contextlib.ExitStack() as stack:
        labs_folder().mkdir(parents=True, exist_ok=True)
        with _folder_held(fcntl.LOCK_SH):
            scratch.mkdir(mode=0o700)
            stack.callback(remove, scratch, cgroup)
            lock = os.open(scratch / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            stack.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if cgroup:
            cgroup.mkdir()
        log = scratch / "lab.log"
        ours, theirs = socket.socketpair()
        with theirs:
            keeper = process.start(
                [
                    *(str(probe), "lab", "--fd", str(theirs.fileno()), "--id", identity, "--scratch", str(scratch)),
                    *(["--cgroup", str(cgroup)] if cgroup else []),
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
        yield Lab(identity, machine, scratch, cgroup)


@contextlib.contextmanager
def another_machine(lab: Lab, name: str, artifacts: Path) -> Iterator[AgentHost]:
    """A second machine beside the lab's own: a network namespace with an agent, which ends with the lab at the latest."""
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


def remove(scratch: Path, cgroup: Path | None, *, limit_s: float = 5.0) -> None:
    """Remove what a dead lab left. A control group can be removed once the kernel has reaped what was in it."""
    shutil.rmtree(scratch, ignore_errors=True)
    deadline = time.monotonic() + limit_s
    while cgroup is not None and cgroup.exists():
        for folder in sorted((path for path in cgroup.rglob("*") if path.is_dir()), reverse=True):
            with contextlib.suppress(OSError):
                folder.rmdir()
        try:
            cgroup.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise HostError(
                    f"{cgroup}: the control group of a dead lab cannot be removed; something still runs in it"
                ) from None


def leftovers() -> Sequence[tuple[Path, Path | None]]:
    """(scratch folder, control group) of labs that no living process holds."""
    root = cgroup_root()
    found: dict[str, tuple[Path, Path | None]] = {}
    with _folder_held(fcntl.LOCK_EX):
        for scratch in labs_folder().glob(f"{PREFIX}*"):
            if not _held(scratch / "lock"):
                found[scratch.name] = (scratch, None)
        for cgroup in root.glob(f"{PREFIX}*") if root else ():
            scratch = labs_folder() / cgroup.name
            if not scratch.exists() or cgroup.name in found:
                found[cgroup.name] = (scratch, cgroup)
    return list(found.values())


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
