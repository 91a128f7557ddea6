"""A wire ready for traffic: namespaces a and b with addresses, the relay between them, captures at both ends."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.traffic.capture import Capture
from tests.traffic.namespace import Namespace
from tests.traffic.packet import tagged
from tests.traffic.relay import DEVICE, Relay, tap


@dataclass(frozen=True, slots=True)
class Settings:
    """``snaplen`` 0 keeps whole packets; ``delay_s`` is the relay's, each way; ``tcp`` are settings below net/ipv4 of both
    namespaces; ``tags`` are (protocol, VLAN) of a third capture, at a trunk."""

    snaplen: int = 96
    delay_s: float = 0.002
    offload: bool = False
    ipv6: bool = False
    mtu: int = 1500
    tcp: dict[str, object] = field(default_factory=dict)
    tags: tuple[tuple[int, int], ...] = ()


class Wire:
    """``a`` and ``b`` are the ends; sockets are made in them and used by any thread.

    ``kept`` are sockets that stay open beyond the captures.
    """

    def __init__(self, a: Namespace, b: Namespace, relay: Relay, ipv6: bool) -> None:
        self.a, self.b, self.relay, self.ipv6 = a, b, relay, ipv6
        self.kept: list[socket.socket] = []

    def address(self, end: Namespace) -> str:
        return end.ipv6 if self.ipv6 else end.ipv4

    def socket(self, end: Namespace, port: int = 0) -> socket.socket:
        made = end.socket(self.ipv6)
        if port:
            made.bind((self.address(end), port))
        return made

    def listener(self, port: int = 80, end: Namespace | None = None, receive_buffer: int = 0) -> socket.socket:
        end = end or self.b
        made = self.socket(end)
        if receive_buffer:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        made.bind((self.address(end), port))
        made.listen(128)
        return made

    def pair(self, listener: socket.socket, client: socket.socket | None = None) -> tuple[socket.socket, socket.socket]:
        """A connection from a to a listener at b: (client's socket, server's socket)."""
        client = client or self.socket(self.a)
        client.connect(listener.getsockname()[:2])
        server, _ = listener.accept()
        server.settimeout(30)
        return client, server

    def settle(self) -> None:
        """Wait until every connection is at rest and the relay has nothing left to deliver."""
        self.relay.until(lambda: self.a.unfinished() + self.b.unfinished() == 0 and self.relay.is_idle(), "the traffic's end")


def transfer(sender: socket.socket, receiver: socket.socket, count: int, piece: int = 1 << 20) -> None:
    """Send ``count`` bytes in writes of ``piece`` and read them all at the other end."""
    data = bytes(range(256)) * (count // 256 + 1)
    failed: list[BaseException] = []

    def send() -> None:
        try:
            for start in range(0, count, piece):
                sender.sendall(data[start : min(start + piece, count)])
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    receive(receiver, count)
    thread.join()
    if failed:
        raise failed[0]


def receive(receiver: socket.socket, count: int) -> None:
    while count:
        got = len(receiver.recv(min(count, 1 << 16)))
        if not got:
            raise EOFError(f"{count} bytes short")
        count -= got


def queued(made: socket.socket) -> int:
    """Bytes written and not yet acknowledged (SIOCOUTQ)."""
    return _bytes(made, 0x5411)


def unread(made: socket.socket) -> int:
    """Bytes that arrived in order and are not yet read (SIOCINQ)."""
    return _bytes(made, 0x541B)


def _bytes(made: socket.socket, request: int) -> int:
    return int.from_bytes(fcntl.ioctl(made.fileno(), request, bytes(4)), sys.byteorder)


def download(wire: Wire, count: int, port: int = 80) -> None:
    """A request of 100 bytes and an answer, on one connection that the server closes."""
    with wire.listener(port) as listener:
        client, server = wire.pair(listener)
    transfer(client, server, 100)
    transfer(server, client, count)
    close(server, client)


def close(first: socket.socket, second: socket.socket) -> None:
    """In order: the first says FIN, the second reads to the end and says FIN."""
    first.shutdown(socket.SHUT_WR)
    while second.recv(1 << 16):
        pass
    second.close()
    while first.recv(1 << 16):
        pass
    first.close()


@contextlib.contextmanager
def wire(settings: Settings, folder: Path) -> Iterator[Wire]:
    """Captures are written to ``folder`` as a.pcap, b.pcap and, with tags, trunk.pcap."""
    trunk = Namespace("", "") if settings.tags else None
    ends = {"a": Namespace("10.9.0.1", "fd09::1"), "b": Namespace("10.9.0.2", "fd09::2")}
    places = {**ends, **({"trunk": trunk} if trunk else {})}
    taps = {name: tap(place, settings.offload) for name, place in places.items()}
    for number, (name, place) in enumerate(places.items(), start=1):
        _configure(place, number, settings, name in ends)
    relay = Relay({name: taps[name] for name in ends}, taps.get("trunk"), lambda frame: tagged(frame, *settings.tags))
    relay.delay_s = settings.delay_s
    captures = {name: Capture(place, DEVICE, folder / f"{name}.pcap", settings.snaplen) for name, place in places.items()}
    relay.drain()
    with relay.running():
        made = Wire(ends["a"], ends["b"], relay, settings.ipv6)
        yield made
        made.settle()
        for name, capture in captures.items():
            capture.stop(relay.passed[name])


def _configure(place: Namespace, number: int, settings: Settings, is_end: bool) -> None:
    """Addresses, and the peer's as a permanent neighbour, so that only TCP is on the wire."""
    place.setting("ipv6/conf/all/disable_ipv6", int(not (is_end and settings.ipv6)))
    lines = [f"link set {DEVICE} address 02:00:00:00:00:0{number} addrgenmode none mtu {settings.mtu}", f"link set {DEVICE} up"]
    if is_end:
        for name, value in settings.tcp.items():
            place.setting(f"ipv4/{name}", value)
        here, peer = (place.ipv6, f"fd09::{3 - number}") if settings.ipv6 else (place.ipv4, f"10.9.0.{3 - number}")
        lines += [
            f"address add {here}/{64 if settings.ipv6 else 24} dev {DEVICE} {'nodad' if settings.ipv6 else ''}",
            f"neighbour add {peer} lladdr 02:00:00:00:00:0{3 - number} dev {DEVICE} nud permanent",
        ]
    place.run("ip", "-batch", "-", text="\n".join(lines) + "\n")
