"""Turns a guest with minimega's client into a host like all others: twinbed's program is sent there and started as an agent.

The agent's control stream is a virtio-serial port, if the guest has one and its node can be reached. Otherwise it is a TCP
stream that ``cc tunnel`` carries to the guest's loopback: the guest's node listens on a TCP port on all addresses, and the
client in the guest connects to 127.0.0.1. The agent therefore asks for a key first. minimega ends the tunnel with the guest.

Source: minimega's manual, "Command and Control API"; ``cc tunnel`` in the recordings (an echo takes 4 to 11 ms, a response to
``cc exec`` 5 s).
"""

from __future__ import annotations

import contextlib
import secrets
import shlex
import socket
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from twinbed.contracts.command import PRELOAD
from twinbed.hosts import ssh_forward
from twinbed.hosts.agent import PROBE, AgentHost, new_key
from twinbed.hosts.connection import Connection
from twinbed.hosts.error import HostError, HostLost, LimitExceeded
from twinbed.testbeds.minimega.control import Control, Guest
from twinbed.testbeds.minimega.head import Head
from twinbed.testbeds.minimega.machine import Machine
from twinbed.testbeds.minimega.socket import CommandSocket, MinimegaError
from twinbed.testbeds.minimega.space import Space

GUEST_PORT = 7917
"""The agent's port on the guest's loopback."""
_NODE_PORTS = range(20000, 32768)
"""Below the ports that Linux gives to its own connections (net.ipv4.ip_local_port_range)."""
_TRIES = 8
_CONNECT_LIMIT_S = 10.0


def open_tunnel(commands: CommandSocket, guest: Guest) -> int:
    """Make a tunnel and return its port, a free one, on the guest's node. Raises MinimegaError if minimega refuses."""
    for last in (*(False,) * (_TRIES - 1), True):
        port = _NODE_PORTS.start + secrets.randbelow(len(_NODE_PORTS))
        words = ("cc", "tunnel", guest.uuid, str(port), "127.0.0.1", str(GUEST_PORT))
        try:
            commands.ask(*words, node=guest.node)
        except MinimegaError as error:
            if last or "address already in use" not in str(error):
                raise
        else:
            return port
    raise AssertionError("the last try returns or raises")


@contextlib.contextmanager
def tunnel_end(head: Head, guest: Guest, port: int) -> Iterator[tuple[socket.AddressFamily, str | tuple[str, int]]]:
    """Yield the address of the tunnel's end: the node's port, or a socket that ssh forwards from the head node."""
    node = "127.0.0.1" if head.node == guest.node else guest.node
    if head.destination is None:
        yield socket.AF_INET, (node, port)
        return
    with ssh_forward.forwarded(head.destination, f"{node}:{port}") as local:
        yield socket.AF_UNIX, str(local)


def connect(family: socket.AddressFamily, address: str | tuple[str, int], key: str) -> socket.socket:
    """Open a stream and send the key. Raises HostError if nothing listens."""
    stream = socket.socket(family)
    try:
        stream.settimeout(_CONNECT_LIMIT_S)
        stream.connect(address)
        if family == socket.AF_INET:
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.sendall(key.encode())
        stream.settimeout(None)
    except OSError as error:
        stream.close()
        raise HostError(f"the end of the tunnel at {address}: {error.strerror or error}") from None
    return stream


PORT = "twinbed.minimega"
ARTIFACTS = "/run/twinbed"
PROGRAMS = "/run/twinbed-programs"
_PORT_LIMIT_S = 30.0
"""A probe waits 10 s for its port, and its response comes with the client's next heartbeat."""
_TUNNEL_LIMIT_S = 60.0
_STEP_S = 0.1


@dataclass(frozen=True)
class Entered:
    host: AgentHost
    control: str
    """``virtio-serial`` or ``cc``."""
    why: str
    """Why this control was chosen; for cc, why not the port."""


@contextlib.contextmanager
def entered(space: Space, control: Control, machine: Machine, how: str, guest_files: str, probe: Path) -> Iterator[Entered]:
    """Yield the guest as a host while the block runs. ``how``: auto, virtio-serial or cc.

    ``probe``: path of the program on this machine; the library to preload is in the same folder."""
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
    """twinbed's program in a guest, sent and started with one command since a response takes up to 5 s."""

    space: Space
    control: Control
    guest: Guest
    program: str

    @contextlib.contextmanager
    def over_port(self, machine: Machine) -> Iterator[Connection]:
        """Connect over the guest's port, which minimega gives a Unix socket in the guest's folder on its node."""
        head, name = self.space.head, self.guest.name
        if PORT not in str(machine.data.get("VirtioPorts")):
            raise HostError(f"{name}: it has no virtio-serial port {PORT}", advice="set control: cc")
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
        port = open_tunnel(self.space.socket, self.guest)
        with tunnel_end(self.space.head, self.guest, port) as (family, address):
            deadline = time.monotonic() + _TUNNEL_LIMIT_S
            with self._started("--loopback", str(GUEST_PORT), "--key", key) as failure:
                while True:
                    connection = Connection(self.guest.name, connect(family, address, key))
                    try:
                        self._greeted(connection, failure, deadline)
                        break
                    except HostError as error:
                        connection.close()
                        # The client closes a stream that it cannot connect: the agent does not listen yet, or never will.
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
        """Start the agent and yield a function that returns why there is none; None as long as there may be one."""
        words = shlex.join((self.program, "agent", *way, "--detached"))
        start = f"chmod 755 {shlex.quote(self.program)}; exec {words}"
        with self.control.sent_and_run(self.guest, self.space.probe, "sh", "-c", start) as output:

            def failure() -> HostError | None:
                printed = output()
                if printed is None or printed.get("stdout", "").strip():
                    return None
                why = printed.get("stderr", "").strip() or "it prints nothing"
                return HostError(
                    f"{self.guest.name}: {self.program} does not run there: {why}",
                    advice="set guest_files to the folder in which the guests' client puts files that it gets",
                )

            yield failure

    def _greeted(self, connection: Connection, failure: Callable[[], HostError | None], deadline: float) -> None:
        """Wait for the agent's greeting. Raises HostLost if the stream ends, HostError if the agent failed, LimitExceeded."""
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
    """Return the name of the first port that was asked for; minimega does not number its own port for its client."""
    if head.destination is None:
        with contextlib.suppress(OSError):
            sockets = sorted(path.name for path in Path(folder).glob("virtio-serial*") if stat.S_ISSOCK(path.stat().st_mode))
            if len(sockets) == 1:
                return sockets[0]
    return "virtio-serial0"
