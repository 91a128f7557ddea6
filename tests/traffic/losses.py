"""Kinds in which the network loses, repeats, reorders or damages packets."""

from __future__ import annotations

import socket
from collections import Counter

from tests.traffic.catalogue import kind
from tests.traffic.packet import SYN, Frame, congestion_marked, damaged, fragments
from tests.traffic.relay import DROP, PASS, TWICE, Delivery, data
from tests.traffic.wire import Wire, close, download, receive, transfer


@kind()
def plain(wire: Wire) -> None:
    """Nothing goes wrong: 3 connections one after another, each of a request and an answer of 1, 20 and 60 kB."""
    for port, count in ((80, 1_000), (81, 20_000), (82, 60_000)):
        download(wire, count, port)


@kind()
def loss(wire: Wire) -> None:
    """Of the answer the data segments 5, 20, 21 and 80 are lost once; then the last, of which no later one tells."""
    rule, last = data(5, 20, 21, 80), 145_000 % 1_448
    lost: list[int] = []

    def tail(frame: Frame) -> bool:
        if frame.sender == "a" or frame.payload_bytes != last or lost:
            return False
        lost.append(frame.sequence)
        return True

    wire.relay.rule = lambda frame: DROP if rule(frame) or tail(frame) else PASS
    download(wire, 145_000)


@kind(tcp={"tcp_sack": 0})
def loss_without_sack(wire: Wire) -> None:
    """Single segments lost between kernels that do not use SACK: duplicate acks alone tell of them."""
    wire.relay.rule = lambda frame: DROP if data(8, 40, 70)(frame) else PASS
    download(wire, 140_000)


@kind()
def loss_of_retransmission(wire: Wire) -> None:
    """One segment is lost three times over, so that the timer has to send it."""
    lost: list[int] = []

    def rule(frame: Frame) -> tuple[Delivery, ...]:
        if frame.sender != "b" or not frame.is_data or len(lost) == 3:
            return PASS
        if frame.data_number == 6 or frame.sequence in lost:
            lost.append(frame.sequence)
            return DROP
        return PASS

    wire.relay.rule = rule
    download(wire, 30_000)


@kind()
def loss_of_handshakes(wire: Wire) -> None:
    """Of three connections at a time one's SYN is lost, one's SYN-ACKs until the SYN was sent again, and one's third packet."""
    seen: Counter[tuple[int, str]] = Counter()

    def rule(frame: Frame) -> tuple[Delivery, ...]:
        port = frame.destination_port if frame.sender == "a" else frame.source_port
        seen[port, f"{frame.sender} {'SYN' if frame.flags & SYN else 'later'}"] += 1
        lost = {
            80: frame.sender == "a" and seen[80, "a SYN"] == 1,
            # Both ends' timers run out at the same moment: whose packet is first is not ours to say.
            81: frame.sender == "b" and seen[81, "a SYN"] == 1,
            82: frame.sender == "a" and not frame.flags & SYN and seen[82, "a later"] == 1,
        }
        return DROP if lost[port] else PASS

    wire.relay.rule = rule
    listeners = [wire.listener(port) for port in (80, 81, 82)]
    clients = [wire.socket(wire.a) for _ in listeners]
    for client, listener in zip(clients, listeners, strict=True):
        client.setblocking(False)
        client.connect_ex(listener.getsockname()[:2])
    for client, listener in zip(clients, listeners, strict=True):
        listener.settimeout(30)
        server, _ = listener.accept()
        wire.relay.until(lambda client=client: client.getpeername() is not None, "a connection")
        client.settimeout(30)
        server.settimeout(30)
        transfer(client, server, 500)
        transfer(server, client, 5_000)
        close(client, server)


@kind()
def loss_of_acks(wire: Wire) -> None:
    """The acks of the client's are lost until the server has sent two segments again that had arrived: DSACK (RFC 2883)."""
    sent: list[int] = []

    def rule(frame: Frame) -> tuple[Delivery, ...]:
        if frame.sender == "b" and frame.is_data:
            sent.append(frame.sequence)
        lost = frame.sender == "a" and frame.is_pure_ack and sent and len(sent) < len(set(sent)) + 2
        return DROP if lost else PASS

    wire.relay.rule = rule
    download(wire, 40_000)


@kind()
def loss_both_ways(wire: Wire) -> None:
    """Both ends send at once, and of each every 13th data segment is lost the first time."""
    wire.relay.rule = lambda frame: DROP if frame.data_number % 13 == 7 and frame.data_number < 60 else PASS
    with wire.listener() as listener:
        client, server = wire.pair(listener)
    client.sendall(bytes(60_000))
    transfer(server, client, 60_000)
    receive(server, 60_000)
    close(client, server)


@kind()
def loss_of_the_end(wire: Wire) -> None:
    """The server's FIN is lost, then the client's, then the ack of it."""
    lost: set[str] = set()

    def rule(frame: Frame) -> tuple[Delivery, ...]:
        last = {"b": frame.flags & 1, "a": frame.flags & 1, "ack": "a" in lost and frame.sender == "b" and frame.is_pure_ack}
        name = "ack" if last["ack"] else frame.sender
        if last[name] and name not in lost:
            lost.add(name)
            return DROP
        return PASS

    wire.relay.rule = rule
    download(wire, 3_000)


@kind()
def reordering(wire: Wire) -> None:
    """Data segments of the answer arrive late: after the next 1 to 6."""
    late = {6: 1, 12: 2, 13: 1, 30: 6, 31: 3, 50: 4, 75: 2}
    wire.relay.rule = lambda frame: (Delivery(behind=late.get(frame.data_number, 0)),) if frame.sender == "b" else PASS
    download(wire, 140_000)


@kind()
def reordering_of_acks(wire: Wire) -> None:
    """Every third ack of the client's arrives late: after the next one."""
    wire.relay.rule = lambda frame: (
        (Delivery(behind=1),) if frame.sender == "a" and frame.is_pure_ack and frame.number % 3 == 0 else PASS
    )
    download(wire, 100_000)


@kind()
def duplication(wire: Wire) -> None:
    """Every 9th data segment and every 5th packet of the client's arrives twice, the SYN and the FINs too."""

    def rule(frame: Frame) -> tuple[Delivery, ...]:
        twice = frame.data_number % 9 == 3 if frame.sender == "b" else frame.number % 5 == 1
        return TWICE if twice or frame.flags & 3 else PASS

    wire.relay.rule = rule
    download(wire, 100_000)


@kind()
def duplication_late(wire: Wire) -> None:
    """Copies of segments arrive 10 ms after the first, when they have been acknowledged."""
    rule = data(3, 17, 18, 40)
    wire.relay.rule = lambda frame: (Delivery(), Delivery(0.01)) if rule(frame) else PASS
    download(wire, 100_000)


@kind(snaplen=0)
def damage(wire: Wire) -> None:
    """Two data segments arrive with a TCP checksum that does not hold; the receiver's kernel drops them."""
    rule = data(2, 5)
    wire.relay.rule = lambda frame: (Delivery(frames=(damaged(frame.frame),)),) if rule(frame) else PASS
    download(wire, 15_000)


@kind(snaplen=0)
def fragmentation(wire: Wire) -> None:
    """Segments that may be fragmented cross a router whose next link carries 576 bytes; once the pieces come in reverse."""

    def rule(frame: Frame) -> tuple[Delivery, ...]:
        pieces = fragments(frame.frame, 556)
        return (Delivery(frames=tuple(reversed(pieces) if frame.data_number == 3 else pieces)),)

    wire.relay.rule = rule
    with wire.listener() as listener:
        listener.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER, IP_PMTUDISC_DONT
        client, server = wire.pair(listener)
    transfer(client, server, 100)
    transfer(server, client, 12_000)
    close(server, client)


@kind(tcp={"tcp_ecn": 1})
def congestion_marks(wire: Wire) -> None:
    """ECN is agreed; two data segments are marked instead of lost: ECE and CWR flags."""
    rule = data(12, 40)
    wire.relay.rule = lambda frame: (Delivery(frames=(congestion_marked(frame.frame),)),) if rule(frame) else PASS
    download(wire, 90_000)


@kind(offload=True)
def offload(wire: Wire) -> None:
    """Segmentation offload: packets far above the MTU and partial checksums, with nothing lost."""
    download(wire, 300_000)


@kind(offload=True)
def offload_loss(wire: Wire) -> None:
    """Segmentation offload, and super-packets lost, late and twice."""
    fates = {4: DROP, 7: (Delivery(0.006),), 10: TWICE, 14: DROP}
    wire.relay.rule = lambda frame: fates.get(frame.data_number, PASS) if frame.sender == "b" else PASS
    download(wire, 600_000)
