"""Kinds of beginnings and ends: resets, half-open, simultaneous, reused, and sequence numbers that wrap."""

from __future__ import annotations

import contextlib
import errno
import socket
import struct

from tests.traffic.catalogue import kind
from tests.traffic.packet import ACK, FIN, SYN, Frame
from tests.traffic.relay import DROP, PASS, TWICE, Delivery, data
from tests.traffic.repair import established, first_sequence, vanish
from tests.traffic.wire import Wire, close, receive, transfer, unread

_TOP = 1 << 32


def _abort(made: socket.socket) -> None:
    """Close with RST (SO_LINGER of no time)."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    made.close()


def _begin(wire: Wire, made: socket.socket, port: int) -> None:
    made.setblocking(False)
    assert made.connect_ex((wire.address(wire.b), port)) in (0, errno.EINPROGRESS)


@kind(snaplen=0)
def resets(wire: Wire) -> None:
    """Refused; aborted by the client; by the server, with data unread; after the client's FIN; and data after the abort."""
    with contextlib.suppress(ConnectionRefusedError):
        wire.socket(wire.a).connect((wire.address(wire.b), 79))
    listener = wire.listener()
    client, server = wire.pair(listener)
    transfer(client, server, 500)
    _abort(client)
    client, server = wire.pair(listener)
    client.sendall(bytes(3_000))
    wire.relay.until(lambda: unread(server) == 3_000, "the data")
    server.close()
    client.close()
    client, server = wire.pair(listener)
    transfer(client, server, 500)
    client.shutdown(socket.SHUT_WR)
    assert server.recv(1) == b""
    transfer(server, client, 700)
    _abort(server)
    client, server = wire.pair(listener)
    transfer(server, client, 5_000)
    wire.settle()
    seen = len(wire.relay.seen)
    with wire.relay.holding(lambda: len(wire.relay.seen) > seen + 1, "the abort and the data"):
        _abort(client)
        server.sendall(bytes(4_000))


@kind(snaplen=0)
def half_open(wire: Wire) -> None:
    """A SYN that nobody answers; a SYN-ACK that nobody acknowledges; a server that is gone and answers data with RST;
    one that is gone and does not answer; and a client that stays without a word."""
    silent: set[int] = {81, 82}

    def rule(frame: Frame) -> tuple[Delivery, ...]:
        port = frame.destination_port if frame.sender == "a" else frame.source_port
        if port == 82 and frame.sender == "a":
            return PASS
        return DROP if port in silent else PASS

    wire.relay.rule = rule
    wire.b.setting("ipv4/tcp_synack_retries", 1)
    unanswered = wire.socket(wire.a)
    unanswered.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, 1)
    _begin(wire, unanswered, 81)
    wire.kept.append(wire.listener(82))
    unacknowledged = wire.socket(wire.a)
    unacknowledged.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, 1)
    _begin(wire, unacknowledged, 82)
    listener = wire.listener(83)
    client, server = wire.pair(listener)
    transfer(client, server, 600)
    wire.relay.until(wire.relay.is_idle, "rest")
    vanish(server)
    client.sendall(bytes(700))
    with contextlib.suppress(ConnectionResetError):
        client.recv(1)
    second = wire.listener(84)
    client, server = wire.pair(second)
    transfer(server, client, 900)
    wire.relay.until(wire.relay.is_idle, "rest")
    vanish(server)
    silent.add(84)
    client.setsockopt(socket.IPPROTO_TCP, 18, 1_000)  # TCP_USER_TIMEOUT, milliseconds
    client.sendall(bytes(2_000))
    wire.kept += wire.pair(listener)
    with contextlib.suppress(OSError):
        client.recv(1)


@kind(snaplen=0)
def simultaneous_open(wire: Wire) -> None:
    """Both ends connect to each other and their SYNs cross (RFC 9293, figure 7); then data and an ordinary end."""
    first, second = wire.socket(wire.a, 5_001), wire.socket(wire.b, 5_002)
    _cross(wire, first, second)
    transfer(first, second, 3_000)
    transfer(second, first, 2_000)
    close(first, second)


def _cross(wire: Wire, first: socket.socket, second: socket.socket) -> None:
    names = [made.getsockname()[:2] for made in (first, second)]
    with wire.relay.holding(lambda: wire.relay.count(lambda frame: frame.flags & SYN) >= 2, "both SYNs"):
        for made, peer in ((first, names[1]), (second, names[0])):
            made.setblocking(False)
            made.connect_ex(peer)
    wire.relay.until(lambda: wire.relay.count(lambda frame: frame.flags & (SYN | ACK) == SYN | ACK) >= 2, "both SYN-ACKs")
    wire.settle()
    for made in (first, second):
        made.settimeout(30)


@kind(snaplen=0)
def simultaneous_close(wire: Wire) -> None:
    """Both ends say FIN before they hear the other's."""
    with wire.listener() as listener:
        client, server = wire.pair(listener)
    transfer(client, server, 3_000)
    wire.settle()
    with wire.relay.holding(lambda: wire.relay.count(lambda frame: frame.flags & FIN) >= 2, "both FINs"):
        client.close()
        server.close()


@kind()
def half_closed(wire: Wire) -> None:
    """The client says FIN after its request; the server goes on sending, loses a segment, and ends later."""
    rule = data(4)
    wire.relay.rule = lambda frame: DROP if rule(frame) else PASS
    with wire.listener() as listener:
        client, server = wire.pair(listener)
    transfer(client, server, 250)
    client.shutdown(socket.SHUT_WR)
    assert server.recv(1) == b""
    transfer(server, client, 20_000)
    close(server, client)


@kind()
def port_reuse(wire: Wire) -> None:
    """The same addresses and ports five times: after the server's FIN, after an abort by either end, and after the
    server forgot the connection (its RST to the old one, then a new one)."""
    listener = wire.listener()

    def again() -> tuple[socket.socket, socket.socket]:
        wire.settle()
        client, server = wire.pair(listener, wire.socket(wire.a, 40_000))
        transfer(client, server, 300)
        transfer(server, client, 4_000)
        wire.settle()
        return client, server

    close(*reversed(again()))
    client, server = again()
    _abort(client)
    client, server = again()
    _abort(server)
    with contextlib.suppress(ConnectionResetError):
        client.recv(1)
    client, server = again()
    vanish(client)
    vanish(server)
    client, server = again()
    close(server, client)


@kind()
def port_reuse_in_turn(wire: Wire) -> None:
    """Two clients' ports reused in turn, 6 connections each, closed by the server."""
    listener = wire.listener()
    for number in range(12):
        client, server = wire.pair(listener, wire.socket(wire.a, 40_000 + number % 2))
        transfer(client, server, 200)
        transfer(server, client, 500 + 1_000 * number)
        close(server, client)
        wire.settle()


@kind()
def many_at_once(wire: Wire) -> None:
    """30 connections open at the same time, answered in reverse order, half closed by the client, half by the server."""
    listener = wire.listener()
    pairs = [wire.pair(listener) for _ in range(30)]
    for number, (client, _) in enumerate(pairs):
        client.sendall(bytes(100 + number))
    for number, (client, server) in reversed(list(enumerate(pairs))):
        receive(server, 100 + number)
        transfer(server, client, 100 * number + 1)
        close(*((client, server) if number % 2 else (server, client)))


@kind()
def wrap_of_upload(wire: Wire) -> None:
    """The client's sequence number passes 2^32 within its data, with a segment lost and one late around it."""
    rule, late = data(6, 20, sender="a"), data(9, sender="a")
    wire.relay.rule = lambda frame: DROP if rule(frame) else (Delivery(0.003 if late(frame) else 0.0),)
    client = wire.socket(wire.a)
    first_sequence(client, _TOP - 10_000)
    with wire.listener() as listener:
        client, server = wire.pair(listener, client)
    transfer(client, server, 60_000)
    transfer(server, client, 1_000)
    close(client, server)


@kind()
def wrap_of_handshake(wire: Wire) -> None:
    """Initial sequence numbers 2^32 - 1, 2^32 - 2 and 0, so that the SYN, the first byte or nothing wraps; FIN at the wrap."""
    listener = wire.listener()
    for sequence, count in ((_TOP - 1, 500), (_TOP - 2, 500), (0, 500), (_TOP - 501, 500), (_TOP - 502, 500)):
        client = wire.socket(wire.a)
        if sequence:
            first_sequence(client, sequence)
        client, server = wire.pair(listener, client)
        transfer(client, server, count)
        transfer(server, client, count)
        close(client, server)


@kind(delay_s=0.003)
def wrap_of_both(wire: Wire) -> None:
    """Simultaneous open with both sequence numbers just below 2^32, then data both ways with loss."""
    rule = data(7), data(9, sender="a")
    wire.relay.rule = lambda frame: DROP if any(chosen(frame) for chosen in rule) else PASS
    first, second = wire.socket(wire.a, 5_001), wire.socket(wire.b, 5_002)
    first_sequence(first, _TOP - 8_000)
    first_sequence(second, _TOP - 4_000)
    _cross(wire, first, second)
    transfer(first, second, 40_000)
    transfer(second, first, 40_000)
    close(first, second)


@kind()
def wrap_without_beginning(wire: Wire) -> None:
    """Connections restored on both hosts, so that no handshake is seen: data, wrap, loss, a copy, and the end."""
    lost, twice = data(9), data(4, 5)
    wire.relay.rule = lambda frame: DROP if lost(frame) else TWICE if twice(frame) else PASS
    client, server = wire.socket(wire.a, 5_001), wire.socket(wire.b, 5_002)
    established(client, server.getsockname()[:2], _TOP - 3_000, _TOP - 20_000)
    established(server, client.getsockname()[:2], _TOP - 20_000, _TOP - 3_000)
    transfer(client, server, 9_000)
    transfer(server, client, 50_000)
    close(client, server)
