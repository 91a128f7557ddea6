"""A control stream to an agent on a guest's loopback, through ``cc tunnel``: for guests without a port of ours.

The node that runs the guest listens on a TCP port, on all of its addresses, and minimega's client in the guest connects to
127.0.0.1 there.  The agent therefore wants a key first.  minimega ends the tunnel with the guest.

Source: minimega's manual, "Command and Control API"; ``cc tunnel`` in the recordings (an echo takes 4 to 11 ms, where a
response to ``cc exec`` takes 5 s).
"""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Iterator

from twinbed.hosts import ssh_forward
from twinbed.hosts.error import HostError
from twinbed.testbeds.minimega.control import Guest
from twinbed.testbeds.minimega.head import Head
from twinbed.testbeds.minimega.socket import CommandSocket, MinimegaError

GUEST_PORT = 7917
"""The agent's, on the guest's loopback."""
_NODE_PORTS = range(20000, 32768)
"""Below those that Linux gives to connections of its own (net.ipv4.ip_local_port_range)."""
_TRIES = 8
_CONNECT_LIMIT_S = 10.0


def opened(commands: CommandSocket, guest: Guest) -> int:
    """Makes the tunnel; gives the port of the guest's node, one that is free there. Raises MinimegaError where minimega
    refuses."""
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
def reached(head: Head, guest: Guest, port: int) -> Iterator[tuple[socket.AddressFamily, str | tuple[str, int]]]:
    """The tunnel's end as an address of this machine: of the node's, or of a socket that ssh forwards from the head node."""
    node = "127.0.0.1" if head.node == guest.node else guest.node
    if head.destination is None:
        yield socket.AF_INET, (node, port)
        return
    with ssh_forward.forwarded(head.destination, f"{node}:{port}") as local:
        yield socket.AF_UNIX, str(local)


def connect(family: socket.AddressFamily, address: str | tuple[str, int], key: str) -> socket.socket:
    """A stream whose first bytes are the key. Raises HostError where nothing listens."""
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
        raise HostError(f"the tunnel's end at {address}: {error.strerror or error}") from None
    return stream
