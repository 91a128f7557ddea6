"""A lab: PID, network and mount namespaces held by one process. Everything of a run lives in a lab and ends with it.

The process that holds it (``twinbed-probe lab``) ends when its control stream ends, whatever signal killed its controller. The
kernel then ends everything in its PID namespace. Things that namespaces cannot hold carry the lab's id: a scratch folder and
control groups. The lab's keeper removes them; ``sweep`` removes those of labs whose keeper died too. Each host of a lab gets
user and group ids of this machine that nobody else has.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from twinbed.contracts.place import MACHINE
from twinbed.hosts import cgroups, process, scratch
from twinbed.hosts.agent import PROBE, AgentHost, accept, listen, new_key
from twinbed.hosts.cgroups import LabGroups
from twinbed.hosts.connection import Connection
from twinbed.hosts.error import HostError, LimitExceeded
from twinbed.hosts.scratch import PREFIX

IDS = 65_536
_MAP = Path("/proc/self/uid_map")
"""Only the first user namespace maps each id to itself (user_namespaces(7))."""
_FIRST, _RANGES = 524_288, 28_656
"""Ranges for containers by systemd's convention (https://systemd.io/UIDS-GIDS)."""


def first_id(lab: str, host: str) -> int | None:
    """Return the first of the ``IDS`` ids of a host; None if this user is not root of all ids, and can give none.

    Two hosts may draw the same range, which still belongs to no user of the machine."""
    if os.geteuid() != 0 or _MAP.read_text().split() != ["0", "0", "4294967295"]:
        return None
    number = int.from_bytes(hashlib.sha256(f"{lab} {host}".encode()).digest()[:4], "big")
    return _FIRST + IDS * (number % _RANGES)


def more_ids() -> tuple[str, ...]:
    """Return arguments for the keeper of a lab without root: the ids that this user may map in a user namespace (subuid(5));
    none without such ids or the programs to map them."""
    user = os.geteuid()
    if user == 0 or not (shutil.which("newuidmap") and shutil.which("newgidmap")):
        return ()
    names = {str(user)}
    with contextlib.suppress(KeyError):
        names.add(pwd.getpwuid(user).pw_name)
    uids, gids = (_subordinate(file, names) for file in (Path("/etc/subuid"), Path("/etc/subgid")))
    return ("--uids", uids, "--gids", gids) if uids and gids else ()


def _subordinate(file: Path, names: set[str]) -> str | None:
    """Return ``first:count`` of the user's first range."""
    with contextlib.suppress(OSError):
        for line in file.read_text(errors="replace").splitlines():
            name, _, ids = line.partition(":")
            first, _, count = ids.partition(":")
            if name in names and first.isdigit() and count.isdigit() and int(count) > 0:
                return f"{first}:{min(int(count), IDS - 1)}"
    return None


_LOG = logging.getLogger(__name__)
_START_LIMIT_S = 30.0
_END_LIMIT_S = 30.0
"""The limit for a lab to end by itself. Its keeper gives control groups 5 s."""
_RECLAIM_LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Lab:
    """``machine`` runs programs inside the lab, next to its switches. ``scratch``: its private folder. ``keeper``: the process
    outside that holds it."""

    id: str
    machine: AgentHost
    scratch: Path
    cgroups: LabGroups
    keeper: int

    def first_process(self) -> int:
        """Return the lab's PID 1, as this machine sees it."""
        return int(Path(f"/proc/{self.keeper}/task/{self.keeper}/children").read_text().split()[0])


@contextlib.contextmanager
def open_lab(probe: Path, artifacts: Path) -> Iterator[Lab]:
    """Hold a lab while the block runs. ``artifacts``: folder for files of programs on the machine that are kept."""
    with scratch.folder() as folder, contextlib.ExitStack() as stack:
        identity, groups = folder.name.removeprefix(PREFIX), LabGroups.of(folder.name)
        stack.callback(remove, folder, groups.folders)
        if groups.unified:
            groups.unified.mkdir()
        log = folder / scratch.KEPT
        ours, theirs = socket.socketpair()
        with theirs:
            keeper = process.start(
                [
                    *(str(probe), "lab", "--fd", str(theirs.fileno()), "--id", identity, "--scratch", str(folder)),
                    *(word for group in groups.folders for word in ("--cgroup", str(group))),
                    *more_ids(),
                ],
                keep_open=[theirs.fileno()],
                log=log,
            )
        stack.push(functools.partial(_end, ours, keeper))
        connection = Connection(MACHINE, ours)
        stack.callback(connection.close)
        try:
            connection.hello(_START_LIMIT_S)
        except HostError as error:
            log_text = process.last_bytes(log).decode(errors="replace").strip()
            raise HostError(f"the lab did not start: {error}{': ' if log_text else ''}{log_text}") from None
        machine = AgentHost(MACHINE, connection, str(artifacts), artifacts, str(probe.parent))
        yield Lab(identity, machine, folder, groups, keeper.pid)


@contextlib.contextmanager
def another_machine(lab: Lab, name: str, artifacts: Path) -> Iterator[AgentHost]:
    """Yield another machine of the lab: a network namespace with an agent, which ends with the lab at the latest."""
    path, key = lab.scratch / f"{name}.sock", new_key()
    with listen(path) as server:
        command = ["unshare", "--net", f"{lab.machine.bin}/{PROBE}", "agent", "--connect", str(path), "--key", key]
        running = lab.machine.start(command)
        connection = accept(server, name, running, _START_LIMIT_S, key)
    try:
        connection.hello(_START_LIMIT_S)
        machine = AgentHost(name, connection, str(artifacts), artifacts, lab.machine.bin)
        machine.run(["ip", "link", "set", "lo", "up"])
        yield machine
    finally:
        connection.close()


def reclaim(probe: Path, folder: Path) -> None:
    """Make this user the owner of everything below a folder: programs of a lab without root may have been other users.

    Call it when the lab has ended. Raises HostError."""
    if more_ids():
        with open_lab(probe, folder) as lab:
            lab.machine.run(["chown", "-R", "-h", "0:0", str(folder)], limit_s=_RECLAIM_LIMIT_S)


def _end(
    control: socket.socket,
    keeper: subprocess.Popen[bytes],
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
) -> None:
    """End the control stream, and with it the lab. An interrupt may have come before there was a connection to close.

    Raises LimitExceeded if the keeper had to be killed because it, or the lab's first process, was stopped. An error that is
    already being raised has precedence."""
    with contextlib.suppress(OSError):
        control.shutdown(socket.SHUT_RDWR)
    try:
        keeper.wait(_END_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill(keeper)
        why = f"the lab did not end within {_END_LIMIT_S:g} s: its keeper (process {keeper.pid}) was killed"
        _LOG.info("%s", why)
        if error is None:
            advice = "run the same command again (SIGSTOP or a debugger may have stopped the lab)"
            raise LimitExceeded(why, advice=advice) from None
    except BaseException:  # Ctrl-C while it is waited for
        process.kill(keeper)
        raise


def remove(folder: Path, groups: Sequence[Path], *, limit_s: float = 5.0) -> None:
    """Remove a dead lab's scratch folder, and its control groups as far as it made them."""
    shutil.rmtree(folder, ignore_errors=True)
    for group in groups:
        cgroups.remove(group, limit_s=limit_s)


def leftovers() -> Sequence[tuple[Path, tuple[Path, ...]]]:
    """Return (scratch folder, control groups) of labs, and scratch folders of commands, that no living process holds."""
    left_behind: dict[Path, tuple[Path, ...]] = dict.fromkeys(scratch.left_behind(), ())
    for root in cgroups.roots():
        for group in root.glob(f"{PREFIX}*"):
            folder = scratch.root() / group.name.removesuffix(cgroups.AWAKE)
            if folder in left_behind or not folder.exists():
                left_behind[folder] = (*left_behind.get(folder, ()), group)
    return list(left_behind.items())
