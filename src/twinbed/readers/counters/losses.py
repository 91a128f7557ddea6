"""Where datagrams were lost: for each client and its server, and each direction, the drops that every place on the way counted.

In IP packets, so that fragments count one by one.  Each stage is a counter of its own, not the rest of a sum.  The rest of sent
minus received is shown as unexplained.  UDP only: TCP sends lost data again.

    sender socket   Udp.SndbufErrors: no room in the sender's queue (its qdisc's refusals too, as the socket is told)
    sender link     the sender's NIC dropped on sending (tx_dropped), less what the switch's end counted as backlog
    switch backlog  rx_dropped of the switch's end: a CPU's backlog was full
    uplink          dropped at the link that all pairs of a star share: by its qdisc, or as its other end's backlog was full
    shaper          dropped by the qdisc at the port towards the receiver
    receiver link   tx_dropped of that port (a full tap, or veth), less the receiver's backlog
    backlog         rx_dropped of the receiver's NIC, and of a kernel of its own softnet's dropped
    NIC ring        rx_missed, rx_no_buffer and fifo errors of the receiver's NIC
    reassembly      fragments that arrived of datagrams that never were whole
    socket buffer   Udp.RcvbufErrors: the receiver's socket was full
    unread          handed to UDP, and never read: still in the socket when it was closed
    refused         no socket, or a bad checksum (Udp.NoPorts, InCsumErrors)

No counter has whose packets the uplink dropped.  They are divided among the pairs in proportion to the pairs' own unexplained
losses.  So there only the sum over pairs shows whether all is explained.  Where bystanders share the uplink, pairs get
at most their own unexplained losses.

Received are the datagrams that the program read (Udp.InDatagrams).  Sources: net/ipv4/udp.c, ip_output.c, ip_fragment.c,
drivers/net/veth.c, net/core/dev.c of Linux 6.1 to 6.18.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from twinbed.metrics.counters import LOST, UNEXPLAINED
from twinbed.metrics.metric import Value
from twinbed.model.topology import BYSTANDER
from twinbed.readers.counters.place import Place

if TYPE_CHECKING:
    import pyarrow as pa

_RING = ("rx_missed_errors", "rx_no_buffer_count", "rx_fifo_errors", "rx_over_errors")
DEVICE = "eth0"
UPLINKS = {"client_to_server": "uplink0", "server_to_client": "uplink1"}
"""Direction -> the end of a star's uplink that sends that way."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """One direction of one pair. A stage whose counters are not there is None."""

    pair: str
    direction: str
    sent: float
    received: float
    stages: Mapping[str, float | None]

    @property
    def lost(self) -> float:
        return self.sent - self.received

    @property
    def unexplained(self) -> float:
        return self.lost - sum(packets or 0.0 for packets in self.stages.values())


def ledgers(places: Sequence[Place], ports: Mapping[str, Place]) -> Iterator[Ledger]:
    """Yield a ledger for each direction with datagrams. ``ports``: a host -> the place with the switch's end of its link."""
    of_pairs = list(_of_pairs(places, ports))
    machine = next(iter(ports.values()), None)
    for direction, end in UPLINKS.items():
        same_way = [ledger for ledger in of_pairs if ledger.direction == direction]
        dropped = None if machine is None or not same_way else _uplink(machine, end)
        if dropped is not None and machine is not None and _has_bystanders(machine):
            dropped = min(dropped, sum(max(0.0, ledger.unexplained) for ledger in same_way))
        yield from same_way if dropped is None else _shared_out(same_way, dropped)


def _of_pairs(places: Sequence[Place], ports: Mapping[str, Place]) -> Iterator[Ledger]:
    """Yield ledgers from the counters of each pair."""
    by_name = {place.name: place for place in places}
    for client in sorted(name for name in by_name if name.startswith("client")):
        server = client.replace("client", "server")
        if server not in by_name or client not in ports or server not in ports:
            continue
        for direction, (here, far) in (("client_to_server", (client, server)), ("server_to_client", (server, client))):
            ledger = _ledger(client, direction, by_name[here], by_name[far], ports)
            if ledger is not None:
                yield ledger


def _ledger(pair: str, direction: str, sender: Place, receiver: Place, ports: Mapping[str, Place]) -> Ledger | None:
    out, refused = _snmp(sender, "Udp.OutDatagrams"), _snmp(sender, "Udp.SndbufErrors")
    read = _snmp(receiver, "Udp.InDatagrams")
    if out is None or refused is None or read is None or not out + refused:
        return None
    per_packet, fragments = _packets_each(sender)
    near, far = ports[sender.name], ports[receiver.name]
    near_end, far_end = f"p.{sender.name}", f"p.{receiver.name}"
    switch_backlog = _device(near, near_end, "rx_dropped")
    backlog = _device(receiver, DEVICE, "rx_dropped")
    own_backlog = receiver.total("/proc/net/softnet_stat", r"softnet:cpu\d+\.dropped") if receiver.has_kernel else 0.0
    arrived = _arrived(receiver)
    accounted = [_snmp(receiver, f"Udp.{name}") for name in ("InDatagrams", "InErrors", "NoPorts")]
    stages = {
        "sender socket": _times(per_packet, refused),
        "sender link": _less(_device(sender, DEVICE, "tx_dropped"), switch_backlog),
        "switch backlog": switch_backlog,
        "shaper": far.total("tc -s qdisc", rf"tc:{far_end}\.root\.dropped"),
        # A tap counts packets for which its guest has no room; a veth those for which its other end's backlog has none.
        "receiver link": _less(_device(far, far_end, "tx_dropped"), None if receiver.has_kernel else backlog),
        "backlog": _plus(None if receiver.has_kernel else backlog, own_backlog),
        "NIC ring": _ring(receiver),
        "reassembly": _incomplete(receiver, fragments),
        "socket buffer": _times(per_packet, _snmp(receiver, "Udp.RcvbufErrors")),
        "unread": _times(per_packet, None if arrived is None or None in accounted else max(0.0, arrived - _sum(accounted))),
        "refused": _times(per_packet, _plus(_snmp(receiver, "Udp.NoPorts"), _snmp(receiver, "Udp.InCsumErrors"))),
    }
    return Ledger(pair, direction, per_packet * (out + refused), per_packet * read, stages)


def _uplink(machine: Place, end: str) -> float | None:
    """Return the packets of all pairs that the uplink dropped; None without an uplink."""
    return _plus(machine.total("tc -s qdisc", rf"tc:{end}\.root\.dropped"), _device(machine, end, "tx_dropped"))


def _has_bystanders(machine: Place) -> bool:
    return any(key.startswith(f"net/dev:p.{BYSTANDER}") for key in machine.deltas.get("/proc/net/dev", {}))


def _shared_out(ledgers: Sequence[Ledger], dropped: float) -> Iterator[Ledger]:
    left = [max(0.0, ledger.unexplained) for ledger in ledgers]
    whole = sum(left)
    for ledger, own in zip(ledgers, left, strict=True):
        part = dropped * own / whole if whole else dropped / len(ledgers)
        stages = dict(ledger.stages)
        after = {stage: stages.pop(stage) for stage in list(stages)[list(stages).index("shaper") :]}
        yield replace(ledger, stages={**stages, "uplink": part, **after})


def _packets_each(sender: Place) -> tuple[float, float]:
    """Return the mean packets of a datagram, and the fragments of one that is fragmented."""
    out, whole, fragments = (_snmp(sender, name) for name in ("Udp.OutDatagrams", "Ip.FragOKs", "Ip.FragCreates"))
    if not whole or not fragments or not out:
        return 1.0, 1.0
    return (out - whole + fragments) / out, fragments / whole


def _incomplete(receiver: Place, fragments: float) -> float | None:
    """Return the fragments that came and made no whole datagram."""
    came, whole = _snmp(receiver, "Ip.ReasmReqds"), _snmp(receiver, "Ip.ReasmOKs")
    return None if came is None or whole is None else max(0.0, came - whole * fragments)


def _arrived(receiver: Place) -> float | None:
    """Return the datagrams that IP handed to UDP: all that it delivered, less TCP's and ICMP's."""
    delivered, tcp, icmp = (_snmp(receiver, name) for name in ("Ip.InDelivers", "Tcp.InSegs", "Icmp.InMsgs"))
    return None if delivered is None or tcp is None or icmp is None else delivered - tcp - icmp


def _ring(receiver: Place) -> float | None:
    nic = [receiver.total(f"ethtool -S {DEVICE}", rf"ethtool-S:{DEVICE}\.{name}") for name in _RING]
    return _plus(_device(receiver, DEVICE, "rx_fifo"), *(counter for counter in nic if counter is not None))


def _snmp(place: Place, key: str) -> float | None:
    return place.total("/proc/net/snmp", rf"snmp:{key}")


def _device(place: Place, device: str, what: str) -> float | None:
    return place.total("/proc/net/dev", rf"net/dev:{device}\.{what}")


def _times(per_packet: float, packets: float | None) -> float | None:
    return None if packets is None else per_packet * packets


def _less(packets: float | None, other: float | None) -> float | None:
    return None if packets is None else max(0.0, packets - (other or 0.0))


def _plus(*parts: float | None) -> float | None:
    present = [part for part in parts if part is not None]
    return sum(present) if present else None


def _sum(parts: Sequence[float | None]) -> float:
    return sum(part or 0.0 for part in parts)


def values(ledgers: Sequence[Ledger]) -> Iterator[Value]:
    for ledger in ledgers:
        host = ledger.pair if len({other.pair for other in ledgers}) > 1 else ""
        yield Value(LOST.name, ledger.lost, LOST.unit, host, ledger.direction)
        yield Value(UNEXPLAINED.name, _share(ledger), UNEXPLAINED.unit, host, ledger.direction)


def _share(ledger: Ledger) -> float | None:
    """Return the unexplained share of the lost packets; None where counters have drops though nothing was lost."""
    if ledger.lost > 0:
        return abs(ledger.unexplained) / ledger.lost
    return None if ledger.unexplained else 0.0


def table(ledgers: Sequence[Ledger]) -> pa.Table:
    """Return one row a stage: pair, direction, stage, packets (null if unknown), with sent, received and unexplained."""
    import pyarrow as pa

    rows = [
        {"pair": ledger.pair, "direction": ledger.direction, "stage": stage, "packets": packets}
        for ledger in ledgers
        for stage, packets in (
            ("sent", ledger.sent),
            *ledger.stages.items(),
            ("received", ledger.received),
            ("unexplained", ledger.unexplained),
        )
    ]
    text = ("pair", "direction", "stage")
    return pa.Table.from_pylist(rows, schema=pa.schema([*((name, pa.string()) for name in text), ("packets", pa.float64())]))
