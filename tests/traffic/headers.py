"""Kinds that differ by what is around TCP: IPv6, VLAN tags, data with the SYN."""

from __future__ import annotations

import socket

from tests.traffic.catalogue import kind
from tests.traffic.relay import DROP, PASS, Delivery, data
from tests.traffic.wire import Wire, close, download, receive, transfer

_FAST_OPEN_CONNECT, _FAST_OPEN = 30, 23  # TCP_FASTOPEN_CONNECT, TCP_FASTOPEN


@kind(ipv6=True, snaplen=128)
def ipv6(wire: Wire) -> None:
    """Over IPv6, with two segments lost and one late."""
    lost, late = data(5, 30), data(17)
    wire.relay.rule = lambda frame: DROP if lost(frame) else (Delivery(0.004 if late(frame) else 0.0),)
    download(wire, 80_000)


@kind(ipv6=True, offload=True, snaplen=128)
def ipv6_offload(wire: Wire) -> None:
    """Over IPv6 with segmentation offload, and a super-packet lost."""
    lost = data(4)
    wire.relay.rule = lambda frame: DROP if lost(frame) else PASS
    download(wire, 300_000)


@kind(tags=((0x8100, 42),), snaplen=0)
def vlan(wire: Wire) -> None:
    """Seen at a trunk with an 802.1Q tag, one segment lost."""
    lost = data(5)
    wire.relay.rule = lambda frame: DROP if lost(frame) else PASS
    download(wire, 10_000)


@kind(tags=((0x88A8, 7), (0x8100, 42)), snaplen=104)
def stacked_vlan(wire: Wire) -> None:
    """Seen at a trunk with an 802.1ad and an 802.1Q tag."""
    download(wire, 20_000)


@kind(tcp={"tcp_fastopen": 3})
def data_with_syn(wire: Wire) -> None:
    """Fast Open (RFC 7413): a first connection fetches the cookie, the next two send data with their SYN."""
    listener = wire.listener()
    listener.setsockopt(socket.IPPROTO_TCP, _FAST_OPEN, 8)
    for _ in range(3):
        client = wire.socket(wire.a)
        client.setsockopt(socket.IPPROTO_TCP, _FAST_OPEN_CONNECT, 1)
        client.connect(listener.getsockname()[:2])
        client.sendall(bytes(300))
        server, _ = listener.accept()
        server.settimeout(30)
        receive(server, 300)
        transfer(server, client, 3_000)
        close(client, server)


@kind(mtu=9_000)
def jumbo(wire: Wire) -> None:
    """An MTU of 9,000 bytes, one segment lost."""
    lost = data(6)
    wire.relay.rule = lambda frame: DROP if lost(frame) else PASS
    download(wire, 200_000)
