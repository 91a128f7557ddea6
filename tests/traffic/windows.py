"""Kinds made by windows, timers and the application's way of writing."""

from __future__ import annotations

import socket

from tests.traffic.catalogue import kind
from tests.traffic.packet import Frame
from tests.traffic.relay import DROP, PASS, Delivery, data
from tests.traffic.wire import Wire, close, queued, receive, transfer, unread


@kind()
def tiny_windows(wire: Wire) -> None:
    """The receiver has the smallest buffer that Linux gives: a few hundred bytes of window at a time."""
    with wire.listener(receive_buffer=1) as listener:
        client, server = wire.pair(listener)
    transfer(client, server, 20_000)
    close(client, server)


@kind()
def zero_windows(wire: Wire) -> None:
    """The receiver does not read until the sender has probed its closed window twice; then it does so again."""
    with wire.listener(receive_buffer=4_000) as listener:
        client, server = wire.pair(listener)
    client.setblocking(False)
    for _ in range(2):
        while True:
            try:
                client.send(bytes(4_096))
            except BlockingIOError:
                break
            if client.send(bytes(1)) and queued(client) > 20_000:
                break
        seen = wire.relay.count(_probes)
        wire.relay.until(lambda seen=seen: wire.relay.count(_probes) >= seen + 2, "zero-window probes")
        count = unread(server) + queued(client)
        receive(server, count)
        wire.relay.until(lambda: queued(client) == 0, "the rest")
        server.setblocking(False)
        try:
            while server.recv(1 << 16):
                pass
        except BlockingIOError:
            server.settimeout(30)
    client.settimeout(30)
    close(client, server)


def _probes(frame: Frame) -> bool:
    """Linux probes with an ack of the byte before the next: it cannot be told from the header alone, but pure acks of
    the sender's, who receives nothing, are nothing else after the handshake."""
    return frame.sender == "a" and frame.is_pure_ack and frame.number > 2


def _sent_again(seen: list[Frame]) -> int:
    sequences = [frame.sequence for frame in seen if frame.sender == "a" and frame.is_data]
    return len(sequences) - len(set(sequences))


@kind(tcp={"tcp_shrink_window": 1}, delay_s=0.01)
def shrinking_windows(wire: Wire) -> None:
    """The receiver takes back window that it gave (discouraged by RFC 9293, 3.8.6): data meets a closed window."""
    with wire.listener() as listener:
        client, server = wire.pair(listener)
    transfer(client, server, 20_000)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_000)
    client.setblocking(False)
    while queued(client) < 60_000:
        client.send(bytes(10_000))
    wire.relay.until(lambda: _sent_again(wire.relay.seen) >= 2, "retransmissions to a closed window")
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 200_000)
    client.settimeout(30)
    receive(server, 60_000)
    close(client, server)


@kind()
def keep_alive(wire: Wire) -> None:
    """An idle connection whose client probes after 1 s and is answered; then the answer is lost, and it probes again."""
    with wire.listener() as listener:
        client = wire.socket(wire.a)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
        client, server = wire.pair(listener, client)
    transfer(client, server, 400)
    transfer(server, client, 2_000)
    wire.settle()
    seen = len(wire.relay.seen)
    wire.relay.rule = lambda frame: DROP if len(wire.relay.seen) == seen + 4 else PASS
    wire.relay.until(lambda: len(wire.relay.seen) >= seen + 6, "three probes, two of them answered")
    transfer(client, server, 400)
    close(client, server)


@kind(snaplen=0)
def urgent(wire: Wire) -> None:
    """Urgent data (RFC 6093) between ordinary data: three single bytes, and one sent again after loss."""
    rule = data(5, sender="a")
    wire.relay.rule = lambda frame: DROP if rule(frame) else PASS
    with wire.listener() as listener:
        client, server = wire.pair(listener)
    for number in range(3):
        client.sendall(bytes(200))
        client.send(b"ordinary!", socket.MSG_OOB)
        receive(server, 200 + 8)
        wire.relay.until(lambda: queued(client) == 0, "an ack")
        server.setblocking(False)
        assert server.recv(1, socket.MSG_OOB) == b"!", number
        server.settimeout(30)
    close(client, server)


@kind(snaplen=0)
def keystrokes(wire: Wire) -> None:
    """A terminal: 20 single bytes, each echoed, on a path of 10 ms."""
    wire.relay.delay_s = 0.005
    with wire.listener(22) as listener:
        client, server = wire.pair(listener)
    for made in (client, server):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for number in range(20):
        client.sendall(b"k")
        receive(server, 1)
        transfer(server, client, 1 + number % 3 * 40)
    close(client, server)


@kind()
def segment_sizes(wire: Wire) -> None:
    """The client offers an MSS of 536 bytes, the server of 1,200; writes of 1 to 3,000 bytes both ways."""
    wire.a.run("ip", "route", "replace", "10.9.0.0/24", "dev", "tap0", "advmss", "536")
    with wire.listener() as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1_200)
        client, server = wire.pair(listener)
    for made in (client, server):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for count in (1, 30, 535, 536, 537, 1_199, 1_201, 3_000):
        transfer(client, server, count)
        transfer(server, client, count)
    close(client, server)


@kind(tcp={"tcp_timestamps": 0, "tcp_window_scaling": 0})
def bare_options(wire: Wire) -> None:
    """Neither timestamps nor window scaling; one segment lost, one late."""
    first, late = data(9), data(30)
    wire.relay.rule = lambda frame: DROP if first(frame) else (Delivery(0.004 if late(frame) else 0.0),)
    with wire.listener() as listener:
        client, server = wire.pair(listener)
    transfer(client, server, 300)
    transfer(server, client, 80_000)
    close(client, server)


@kind()
def one_sided_timestamps(wire: Wire) -> None:
    """The client offers timestamps, scaling and SACK; the server takes none of them."""
    for name in ("tcp_timestamps", "tcp_window_scaling", "tcp_sack"):
        wire.b.setting(f"ipv4/{name}", 0)
    with wire.listener() as listener:
        client, server = wire.pair(listener)
    transfer(client, server, 5_000)
    transfer(server, client, 50_000)
    close(client, server)
