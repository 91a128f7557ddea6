"""From a guest with minimega's client in it to a host like all others: twinbed's program is sent there and started as an agent.

The agent's control stream is a virtio-serial port of its own, where the guest has one and its node is within reach, else a
TCP stream that ``cc tunnel`` carries to the guest's loopback.  What is done with the host afterwards is the same, byte for
byte.
"""

from __future__ import annotations

import contextlib
import shlex
import socket
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from twinbed.contracts.command import PRELOAD
from twinbed.hosts.agent import PROBE, AgentHost, new_key
from twinbed.hosts.connection import Connection
from twinbed.hosts.error import HostError, HostLost, LimitExceeded
from twinbed.testbeds.minimega import tunnel
from twinbed.testbeds.minimega.control import Control, Guest
from twinbed.testbeds.minimega.head import Head
from twinbed.testbeds.minimega.machine import Machine
from twinbed.testbeds.minimega.space import Space

PORT = "twinbed.minimega"
ARTIFACTS = "/run/twinbed"
PROGRAMS = "/run/twinbed-programs"
_PORT_LIMIT_S = 30.0
"""A probe waits 10 s for a port to appear, and its response comes with the client's next heartbeat."""
_TUNNEL_LIMIT_S = 60.0
_STEP_S = 0.1


@dataclass(frozen=True)
class Entered:
    host: AgentHost
    control: str
    """``virtio-serial`` or ``cc``."""
    why: str
    """The reason for it: for cc, why it is not the port."""


@contextlib.contextmanager
def entered(space: Space, control: Control, machine: Machine, how: str, guest_files: str, probe: Path) -> Iterator[Entered]:
    """The guest as a host, while the block runs. ``how``: auto, virtio-serial or cc. ``probe``: the program, on this machine;
    what is preloaded into guests' programs is beside it."""
    guest = Guest(machine.name, machine.uuid, machine.node)
    agent = _Agent(space, control, guest, f"{guest_files}/{space.probe}")
    with contextlib.ExitStack() as stack:
        way, why, connection = "cc", "as asked", None
        if how != "cc":
            try:
                connection = stack.enter_context(agent.over_port(machine))
                way, why = "virtio-serial", "the agent's greeting"
            except HostError as error:
                if how == "virtio-serial":
                    raise
                why = f"no virtio-serial: {error}"
        if connection is None:
            connection = stack.enter_context(agent.over_tunnel())
        host = AgentHost(guest.name, connection, ARTIFACTS, bin=PROGRAMS)
        host.run(["mkdir", "-p", ARTIFACTS, PROGRAMS])
        host.run(["ln", "-sf", agent.program, f"{PROGRAMS}/{PROBE}"])
        for library in probe.parent.glob(PRELOAD):
            host.write(f"{PROGRAMS}/{library.name}", library.read_bytes(), mode=0o755)
        yield Entered(host, way, why)


@dataclass(frozen=True, slots=True)
class _Agent:
    """twinbed's program in a guest: sent and started with one command, as a response takes up to 5 s."""

    space: Space
    control: Control
    guest: Guest
    program: str

    @contextlib.contextmanager
    def over_port(self, machine: Machine) -> Iterator[Connection]:
        """minimega gives each port of a guest a Unix socket in the guest's folder on its node."""
        head, name = self.space.head, self.guest.name
        if PORT not in str(machine.data.get("VirtioPorts")):
            raise HostError(f"{name}: it has no port {PORT}")
        folder = f"{head.base}/{machine.data['ID']}"
        with contextlib.ExitStack() as stack:
            near = stack.enter_context(head.near(f"{folder}/{_socket_name(head, folder)}"))
            stream = socket.socket(socket.AF_UNIX)
            try:
                stream.connect(str(near))
            except OSError as error:
                stream.close()
                raise HostError(f"{name}: {folder}: the socket of port {PORT}: {error.strerror}") from None
            key = new_key()
            connection = Connection(name, stream, key=key)
            stack.callback(connection.close)
            with self._started("--port", PORT, "--key", key) as failure:
                self._greeted(connection, failure, time.monotonic() + _PORT_LIMIT_S)
            yield connection

    @contextlib.contextmanager
    def over_tunnel(self) -> Iterator[Connection]:
        key = new_key()
        port = tunnel.opened(self.space.socket, self.guest)
        with tunnel.reached(self.space.head, self.guest, port) as (family, address):
            deadline = time.monotonic() + _TUNNEL_LIMIT_S
            with self._started("--loopback", str(tunnel.GUEST_PORT), "--key", key) as failure:
                while True:
                    connection = Connection(self.guest.name, tunnel.connect(family, address, key))
                    try:
                        self._greeted(connection, failure, deadline)
                        break
                    except HostError as error:
                        connection.close()
                        # The client closes what it cannot connect: the agent does not listen yet, or never will.
                        if not isinstance(error, HostLost) or time.monotonic() > deadline:
                            raise
                        if (why := failure()) is not None:
                            raise why from None
                        time.sleep(_STEP_S)
            try:
                yield connection
            finally:
                connection.close()

    @contextlib.contextmanager
    def _started(self, *way: str) -> Iterator[Callable[[], HostError | None]]:
        """Gives what says why there is no agent; None as long as there may be one."""
        words = shlex.join((self.program, "agent", *way, "--detached"))
        start = f"chmod 755 {shlex.quote(self.program)}; exec {words}"
        with self.control.sent_and_run(self.guest, self.space.probe, "sh", "-c", start) as output:

            def failure() -> HostError | None:
                said = output()
                if said is None or said.get("stdout", "").strip():
                    return None
                why = said.get("stderr", "").strip() or "it says nothing"
                return HostError(
                    f"{self.guest.name}: {self.program} does not run there: {why}; is guest_files where its client puts what"
                    " it is sent?"
                )

            yield failure

    def _greeted(self, connection: Connection, failure: Callable[[], HostError | None], deadline: float) -> None:
        """Raises HostLost where the stream ends, HostError where the agent has said why it is not there, LimitExceeded."""
        while True:
            try:
                connection.hello(_STEP_S)
                return
            except LimitExceeded:
                if (why := failure()) is not None:
                    raise why from None
                if time.monotonic() > deadline:
                    raise


def _socket_name(head: Head, folder: str) -> str:
    """The first port that was asked for; minimega's own, for its client, is not numbered among them."""
    if head.destination is None:
        with contextlib.suppress(OSError):
            sockets = sorted(path.name for path in Path(folder).glob("virtio-serial*") if stat.S_ISSOCK(path.stat().st_mode))
            if len(sockets) == 1:
                return sockets[0]
    return "virtio-serial0"
