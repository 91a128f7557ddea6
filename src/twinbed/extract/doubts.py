"""Cautions that need both what was set and what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twinbed.model.caution import Caution, Kind
from twinbed.model.metric import Value
from twinbed.model.record import Record
from twinbed.model.topology import Topology

HEADERS_BYTES = 20 + 20 + 12
"""Of a TCP segment over IPv4 with timestamps."""
FRAMING_BYTES = 14 + 4 + 8 + 12
"""What Ethernet adds to an IP packet: header, checksum, preamble, gap (IEEE 802.3)."""


def greatest_goodput(rate: float, mtu: int) -> float:
    """TCP payload bits a second that Ethernet of this rate (bit/s) can carry.

    >>> round(greatest_goodput(1e9, 1500) / 1e6, 1)
    941.5
    """
    return rate * (mtu - HEADERS_BYTES) / (mtu + FRAMING_BYTES)


def above_link_rate(record: Record, values: Iterable[Value]) -> Iterator[Caution]:
    """Goodput that no wire of the link's rate would carry: what limits it is not what limits a real one."""
    topology = Topology.model_validate(record.settings["topology"])
    if topology.link.rate is None:
        return
    most = greatest_goodput(topology.link.rate, topology.link.mtu)
    for value in values:
        links = 1 if value.host else topology.pairs
        if value.metric == "goodput" and value.value is not None and value.value > most * links:
            detail = f"{value.value / 1e6:.1f} Mbit/s over links that carry {most * links / 1e6:.1f}"
            yield Caution(Kind.ABOVE_LINK_RATE, detail, record.id)
