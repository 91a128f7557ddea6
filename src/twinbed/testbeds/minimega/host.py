"""From a guest with minimega's client in it to a host like all others: twinbed's program is sent there and started as an agent.

The agent's control stream is a virtio-serial port of its own, where the guest has one and its node is within reach, else a
mailbox that ``cc exec`` carries.  What is done with the host afterwards is the same, byte for byte.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from twinbed.hosts.agent import PROBE, AgentHost
from twinbed.hosts.connection import Connection
from twinbed.hosts.error import HostError
from twinbed.testbeds.minimega.control import Control, Guest
from twinbed.testbeds.minimega.head import Head
from twinbed.testbeds.minimega.machine import Machine
from twinbed.testbeds.minimega.mailbox import Mailbox
from twinbed.testbeds.minimega.space import Space

PORT = "twinbed.minimega"
ARTIFACTS = "/run/twinbed"
PROGRAMS = "/run/twinbed-programs"
_COMMAND_LIMIT_S = 60.0
_GREETING_LIMIT_S = 20.0


@dataclass(frozen=True)
class Entered:
    host: AgentHost
    control: str
    """``virtio-serial`` or ``cc``."""
    why: str
    """What said so: for cc, why it is not the other."""


@dataclass(frozen=True)
class MailboxHost(AgentHost):
    """Reached through ``cc exec``; files come by ``cc recv`` where minimega's folder of responses is on this machine."""

    control: Control | None = None
    guest: Guest | None = None
    responses: Path = field(default_factory=Path)

    def fetch(self, path: str, to: Path, *, limit_s: float = 120.0) -> int:
        if self.control is None or self.guest is None or not self.responses.is_dir():
            return super().fetch(path, to, limit_s=limit_s)
        folder, uuid = self.responses, self.guest.uuid

        def received(number: int) -> Path:
            return folder / str(number) / uuid / path.lstrip("/")

        size = int(self.run(["wc", "-c", path]).text.split()[0])
        with self.control.received(self.guest, path, lambda number: _size(received(number)) == size, limit_s) as number:
            if _size(received(number)) == size:
                shutil.copyfile(received(number), to)
                return size
        return super().fetch(path, to, limit_s=limit_s)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


@contextlib.contextmanager
def entered(space: Space, control: Control, machine: Machine, how: str, guest_files: str) -> Iterator[Entered]:
    """The guest as a host, while the block runs. ``how``: auto, virtio-serial or cc."""
    guest = Guest(machine.name, machine.uuid, machine.node)
    program = f"{guest_files}/{space.probe}"
    _brought(control, guest, space.probe, program)
    with contextlib.ExitStack() as stack:
        way, why, connection = "cc", "as asked", None
        if how != "cc":
            try:
                connection = stack.enter_context(_over_port(space.head, control, guest, machine, program))
                way, why = "virtio-serial", "the agent's greeting"
            except HostError as error:
                if how == "virtio-serial":
                    raise
                why = f"no virtio-serial: {error}"
        if connection is not None:
            host = AgentHost(guest.name, connection, ARTIFACTS, bin=PROGRAMS)
        else:
            connection = stack.enter_context(_over_mailbox(control, guest, program))
            responses = Path(space.head.file(space.name)) / "miniccc_responses"
            near = space.head.destination is None
            host = MailboxHost(
                guest.name,
                connection,
                ARTIFACTS,
                bin=PROGRAMS,
                control=control,
                guest=guest,
                responses=responses if near else Path(),
            )
        _furnish(host, program)
        yield Entered(host, way, why)


def _brought(control: Control, guest: Guest, file: str, program: str) -> None:
    """twinbed's program is in the guest, and runs there."""
    version = (program, "version")
    output = control.send(guest, file, version, _COMMAND_LIMIT_S)
    if not output.get("stdout", "").strip():
        changed = control.run(guest, "chmod", "755", program, limit_s=_COMMAND_LIMIT_S)
        output = {**control.run(guest, *version, limit_s=_COMMAND_LIMIT_S), "chmod": changed.get("stderr", "")}
    if not output.get("stdout", "").strip():
        why = " ".join(output.values()).strip() or "it says nothing"
        raise HostError(
            f"{guest.name}: {program} does not run there: {why}; is guest_files where its client puts what it is sent?"
        )


def _furnish(host: AgentHost, program: str) -> None:
    """The folders that programs of a run are promised."""
    host.run(["mkdir", "-p", ARTIFACTS, PROGRAMS])
    host.run(["ln", "-sf", program, f"{PROGRAMS}/{PROBE}"])


@contextlib.contextmanager
def _over_port(head: Head, control: Control, guest: Guest, machine: Machine, program: str) -> Iterator[Connection]:
    """minimega gives each port of a guest a Unix socket in the guest's folder on its node."""
    if PORT not in str(machine.data.get("VirtioPorts")):
        raise HostError(f"{guest.name}: it has no port {PORT}")
    folder = f"{head.base}/{machine.data['ID']}"
    with contextlib.ExitStack() as stack:
        near = stack.enter_context(head.near(f"{folder}/{_socket_name(head, folder)}"))
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.connect(str(near))
        except OSError as error:
            stream.close()
            raise HostError(f"{guest.name}: {folder}: the socket of port {PORT}: {error.strerror}") from None
        connection = Connection(guest.name, stream)
        stack.callback(connection.close)
        control.background(guest, program, "agent", "--port", PORT, limit_s=_COMMAND_LIMIT_S)
        connection.hello(_GREETING_LIMIT_S)
        yield connection


def _socket_name(head: Head, folder: str) -> str:
    """The first port that was asked for; minimega's own, for its client, is not numbered among them."""
    if head.destination is None:
        with contextlib.suppress(OSError):
            sockets = sorted(path.name for path in Path(folder).glob("virtio-serial*") if stat.S_ISSOCK(path.stat().st_mode))
            if len(sockets) == 1:
                return sockets[0]
    return "virtio-serial0"


@contextlib.contextmanager
def _over_mailbox(control: Control, guest: Guest, program: str) -> Iterator[Connection]:
    path = f"{program}.socket"
    control.background(guest, program, "mailbox", "serve", path, limit_s=_COMMAND_LIMIT_S)
    mailbox = Mailbox(control, guest, program, path)
    connection = Connection(guest.name, mailbox.stream)
    try:
        connection.hello(_COMMAND_LIMIT_S)
        yield connection
    except HostError as error:
        if mailbox.failure is not None and mailbox.failure is not error:
            raise HostError(f"{error}: {mailbox.failure}") from None
        raise
    finally:
        connection.close()
        mailbox.close()
