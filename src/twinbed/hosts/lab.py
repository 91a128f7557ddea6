"""A lab: PID, network and mount namespaces held by one process, in which everything of a run lives and with which it dies.

The process that holds it (``twinbed-probe lab``) ends when its control stream ends, by whatever signal its controller
died; the kernel then ends everything in its PID namespace.  What namespaces cannot hold carries the lab's id: a scratch
folder and control groups.  The lab's keeper removes them; ``sweep`` removes those of labs whose keeper died too.
"""

from __future__ import annotations

import contextlib
import functools
import logging
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
from twinbed.hosts.own_ids import more_ids
from twinbed.hosts.scratch import PREFIX

_LOG = logging.getLogger(__name__)
_START_LIMIT_S = 30.0
_END_LIMIT_S = 30.0
"""For a lab to end by itself. Its keeper gives control groups 5 s."""
_RECLAIM_LIMIT_S = 300.0


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


@contextlib.contextmanager
def open_lab(probe: Path, artifacts: Path) -> Iterator[Lab]:
    """Hold a lab while the block runs. ``artifacts`` is where programs on the machine leave what is to be kept."""
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
    """A machine beside the lab's own: a network namespace with an agent, which ends with the lab at the latest."""
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
    """Make this user the owner of all below a folder, where programs of a lab without root may have been other users. Call it
    when the lab has ended. Raises HostError."""
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
    """A lab ends when its control stream does. An interrupt may have come before there was a connection to close it.

    Raises LimitExceeded where the keeper, or the lab's first process, was stopped and had to be killed. An error that is on its
    way comes first."""
    with contextlib.suppress(OSError):
        control.shutdown(socket.SHUT_RDWR)
    try:
        keeper.wait(_END_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill(keeper)
        why = f"the lab did not end within {_END_LIMIT_S:g} s: its keeper (process {keeper.pid}) was killed"
        _LOG.info("%s", why)
        if error is None:
            advice = "was it stopped, by SIGSTOP or a debugger? run the same command again"
            raise LimitExceeded(why, advice=advice) from None
    except BaseException:  # Ctrl-C while it is waited for
        process.kill(keeper)
        raise


def remove(folder: Path, groups: Sequence[Path], *, limit_s: float = 5.0) -> None:
    """Remove what a dead lab left. Control groups that it never made are no matter."""
    shutil.rmtree(folder, ignore_errors=True)
    for group in groups:
        cgroups.remove(group, limit_s=limit_s)


def leftovers() -> Sequence[tuple[Path, tuple[Path, ...]]]:
    """(scratch folder, control groups) of labs, and scratch folders of commands, that no living process holds."""
    left_behind: dict[Path, tuple[Path, ...]] = dict.fromkeys(scratch.left_behind(), ())
    for root in cgroups.roots():
        for group in root.glob(f"{PREFIX}*"):
            folder = scratch.root() / group.name.removesuffix(cgroups.AWAKE)
            if folder in left_behind or not folder.exists():
                left_behind[folder] = (*left_behind.get(folder, ()), group)
    return list(left_behind.items())
