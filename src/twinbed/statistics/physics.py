"""The most that a link can carry: goodput and transactions a second that rate, frames and headers allow.

Rates are bit/s, sizes bytes.  Two ways of counting a frame:

* WIRE, Ethernet itself (IEEE 802.3): header 14, checksum 4, preamble and start delimiter 8, gap between frames 12; a VLAN tag
  (802.1Q) 4 more; frames of less than 64 bytes are padded.
* SHAPER, Linux's HTB and TBF: `qdisc_pkt_len`, which is the IP packet and the 14 bytes of the header, for every segment of a
  super-packet.  No checksum, preamble, gap or padding, nor a tag, which is put in after the queue.

1 Gbit/s with an MTU of 1500 and TCP timestamps carries 941.5 Mbit/s of TCP payload on the wire, 956.4 through a shaper.
Headers: IPv4 20 (RFC 791), IPv6 40 (RFC 8200), TCP 20 (RFC 9293), timestamps 12 with their padding (RFC 7323).

These are limits, not predictions: no loss, slow start, collisions or time of any host is in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

ETHERNET_HEADER = 14
CHECKSUM = 4
PREAMBLE = 8
GAP = 12
TAG = 4
SMALLEST_FRAME = 64
"""From the header to the checksum; a tag is part of it."""
IP_HEADER = {4: 20, 6: 40}
TCP_HEADER = 20
TIMESTAMPS = 12


class Accounting(StrEnum):
    """The bytes that a rate counts."""

    WIRE = "wire"
    SHAPER = "shaper"


@dataclass(frozen=True, slots=True)
class Path:
    """The make-up of a link's packets."""

    mtu: int = 1500
    ip_version: int = 4
    timestamps: bool = True
    vlan_tags: int = 0
    accounting: Accounting = Accounting.WIRE

    @property
    def segment(self) -> int:
        """Return the TCP payload of a full packet: 1448 for 1500."""
        return self.mtu - self.tcp_headers

    @property
    def tcp_headers(self) -> int:
        return IP_HEADER[self.ip_version] + TCP_HEADER + (TIMESTAMPS if self.timestamps else 0)

    def frame(self, packet: int) -> int:
        """Return the bytes of the rate that an IP packet of so many bytes takes.

        >>> Path().frame(1500), Path(vlan_tags=1).frame(1500), Path(accounting=Accounting.SHAPER).frame(1500)
        (1538, 1542, 1514)
        """
        if self.accounting is Accounting.SHAPER:
            return packet + ETHERNET_HEADER
        framed = packet + ETHERNET_HEADER + TAG * self.vlan_tags + CHECKSUM
        return max(framed, SMALLEST_FRAME) + PREAMBLE + GAP

    def tcp_frames(self, payload: int) -> int:
        """Return the bytes of the rate that a message in segments of its own takes."""
        full, rest = divmod(payload, self.segment)
        return full * self.frame(self.mtu) + (self.frame(rest + self.tcp_headers) if rest else 0)

    @property
    def acknowledgement(self) -> int:
        """Return the bytes of the rate that a segment without payload takes."""
        return self.frame(self.tcp_headers)


def tcp_goodput(rate: float, path: Path | None = None, *, segments_per_acknowledgement: int | None = None) -> float:
    """Return the largest TCP payload, bit/s.  If both directions share the rate (half duplex, one shaper for both), give the
    number of segments an acknowledgement: 2 for a receiver that delays them (RFC 9293, 3.8.6.3).  On full duplex they cost
    nothing.

    >>> [round(tcp_goodput(1e9, Path(accounting=each)) / 1e6, 1) for each in Accounting]
    [941.5, 956.4]
    >>> round(tcp_goodput(1e9, segments_per_acknowledgement=2) / 1e6, 1)
    914.7
    """
    path = path or Path()
    taken = float(path.frame(path.mtu))
    if segments_per_acknowledgement is not None:
        taken += path.acknowledgement / segments_per_acknowledgement
    return rate * path.segment / taken


def transactions(
    rate: float,
    payload: int,
    path: Path | None = None,
    *,
    request: int = 0,
    response_headers: int = 0,
    new_connection: bool = False,
    segments_per_acknowledgement: int | None = None,
) -> float:
    """Return the largest number of request-response exchanges a second: ``request`` bytes one way, ``response_headers +
    payload`` the other, each in segments of its own.  ``new_connection`` adds the fewest segments of an opening and a close:
    SYN and FIN one way, SYN-ACK and the last acknowledgement the other, all without options.  The fuller direction limits; both
    together if they share the rate (``segments_per_acknowledgement``, as for ``tcp_goodput``).

    >>> round(transactions(1e9, 2**20), 2), round(transactions(1e9, 2**20, response_headers=200), 2)
    (112.23, 112.21)
    """
    path = path or Path()
    outward, back = path.tcp_frames(request), path.tcp_frames(response_headers + payload)
    if new_connection:
        bare = path.frame(IP_HEADER[path.ip_version] + TCP_HEADER)
        outward, back = outward + 2 * bare, back + 2 * bare
    if segments_per_acknowledgement is None:
        return rate / 8 / max(outward, back)
    segments = -(-(response_headers + payload) // path.segment)
    return rate / 8 / (outward + back + segments / segments_per_acknowledgement * path.acknowledgement)
