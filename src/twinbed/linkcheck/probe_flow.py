"""The plan of flows that show a link's rate and burst, and the packets of a flow's capture.  Pure; docs/link-check.md has the
reasons.

A token bucket lets its burst pass at once, and only what comes after the burst shows the rate.  So a flow consists of the
burst, what else may pass at once, and a stretch at the rate.  The stretch is several times as long as the error from the size
of packets.

A shaper counts an IP packet and the 14 bytes of its Ethernet header, for every segment of a super-packet
(``statistics.physics``, SHAPER). A capture has a super-packet once, so the headers of its other segments are added here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twinbed import _core
from twinbed.model.topology import Link

RATE_TOLERANCE = 0.02
"""Relative excess over the rate that is tolerated. HTB and TBF keep their rates within 0.1 %; the rest is for different
clocks."""
MOST_S = 20.0
"""The longest time for the flows of both ways, with the time to refill the bucket."""
SUPER_PACKET_BYTES = 65536
_SHORTEST_S = 0.35
_STRETCH = 4
"""Bytes at the rate, in multiples of the bytes besides the burst that may pass at once: 1.3 times the rate exceeds these."""
_OVER = 1.3
"""The sent rate, in multiples of the link's, where TCP would not fill the link."""
_BURST_SHARE = 8
"""The share of a flow's time in which the burst is sent is one in this many."""
_SLOW = 10**7
"""Below this rate a few joined packets would be the whole flow."""
_PACKET_S = 0.02
_SMALLEST_FRAME, _FRAME_HEADERS = 128, 42
_FRAME_SLACK = 2
_LARGEST_BLOCK = 128 * 1024


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow one way. ``seconds``: the time of a correct link for it, after the burst. ``frame_bytes`` and
    ``speed`` (bit/s) are of UDP, None for TCP."""

    total_bytes: int
    seconds: float
    frame_bytes: int | None = None
    speed: int | None = None

    def arguments(self) -> list[str]:
        """Return the arguments for iperf3."""
        if self.frame_bytes is None or self.speed is None:
            # The last write would exceed the total by up to a block, and wait for minutes at a slow link.
            block = math.ceil(self.total_bytes / math.ceil(self.total_bytes / _LARGEST_BLOCK))
            return ["-n", str(self.total_bytes), "-l", str(block)]
        payload = self.frame_bytes - _FRAME_HEADERS
        sent = math.ceil(self.total_bytes / self.frame_bytes) * payload
        return ["-u", "-b", str(self.speed), "-l", str(payload), "-n", str(sent)]


def burst_allowed(link: Link, largest: float) -> float:
    """Return the bytes beyond the rate that a shaper with the requested burst may let pass at once. HTB sends while it has
    tokens, so the last packet may exceed them; the delay of its time stamp is worth another packet."""
    assert link.burst_bytes is not None
    frame = min(largest, link.mtu + 14)
    return link.burst_bytes * (1 + RATE_TOLERANCE) + 2 * min(largest, link.burst_bytes) + _FRAME_SLACK * frame


def single_packets(link: Link) -> bool:
    """Return whether UDP is sent, which nothing joins: where delay or loss would slow TCP, and at slow links."""
    assert link.rate is not None
    return link.emulates or (link.rate < _SLOW and (_holds_joined(link) or _needed_s(link, _tcp(link)) > MOST_S))


def burst_unseen(link: Link) -> bool:
    """Return whether a packet joined by segmentation offload might exceed the burst, and none is sent."""
    return single_packets(link) and not _holds_joined(link)


def flow(link: Link) -> Flow:
    """Plan the flow of a link that can be measured."""
    return _udp(link) if single_packets(link) else _tcp(link)


def why_not(link: Link, uplink: int | None) -> str | None:
    """Say why rate and burst cannot be measured; None where they can. ``uplink``: the rate of a star's uplink, bit/s."""
    assert link.rate is not None
    if uplink is not None and uplink < link.rate:
        return f"the uplink carries {uplink} bit/s, so nothing fills this link"
    needed_s = _needed_s(link, flow(link))
    if needed_s <= MOST_S:
        return None
    return (
        f"measuring a burst of {link.burst_bytes} bytes and the rate would take {needed_s:.0f} s;"
        f" the link check takes {MOST_S:g} s at most: set a smaller burst to have it measured"
    )


def refill_s(link: Link) -> float:
    """Return the seconds in which an empty bucket fills."""
    assert link.rate is not None and link.burst_bytes is not None
    return link.burst_bytes * 8 / link.rate


def _needed_s(link: Link, planned: Flow) -> float:
    """Return the seconds for both ways, with the time to refill the bucket."""
    return 2 * planned.seconds + refill_s(link)


def _holds_joined(link: Link) -> bool:
    assert link.burst_bytes is not None
    return link.burst_bytes >= SUPER_PACKET_BYTES


def _tcp(link: Link) -> Flow:
    total, seconds = _total(link, SUPER_PACKET_BYTES)
    return Flow(math.ceil(total), seconds)


def _udp(link: Link) -> Flow:
    assert link.rate is not None and link.burst_bytes is not None
    largest = link.mtu + 14
    frame = min(largest, max(_SMALLEST_FRAME, round(link.rate * _PACKET_S / 8)))
    total, seconds = _total(link, frame)
    more = (_OVER - 1) * link.rate * seconds / 8
    speed = _OVER * link.rate + _BURST_SHARE * link.burst_bytes * 8 / seconds
    arrives = 1 - (link.loss or 0.0)
    return Flow(math.ceil((total + more) / arrives), seconds, frame, round(speed / arrives))


def _total(link: Link, largest: float) -> tuple[float, float]:
    """Return the bytes of a flow, and its seconds at the rate after the burst."""
    assert link.rate is not None and link.burst_bytes is not None
    allowed = burst_allowed(link, largest)
    total = 2 * allowed - link.burst_bytes + max(_SHORTEST_S * link.rate / 8, _STRETCH * (allowed - link.burst_bytes))
    return total, (total - link.burst_bytes) * 8 / link.rate


_HEADERS = ("link_header_bytes", "ip_header_bytes", "transport_header_bytes")


@dataclass(frozen=True, slots=True)
class Packets:
    """The packets of a capture, in its order: ``times_s`` from the first packet, ``sizes`` in bytes as the shaper counts
    them."""

    times_s: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.float64]

    @property
    def seconds(self) -> float:
        return float(self.times_s[-1] - self.times_s[0]) if len(self.times_s) else 0.0

    @property
    def largest(self) -> float:
        return float(self.sizes.max()) if len(self.sizes) else 0.0


def read(capture: bytes, mtu: int) -> Packets:
    """Read the bytes of a capture file. Raises ValueError for other bytes."""
    frames = _core.frames(capture)
    times_ns = frames["time_ns"].to_numpy()
    sizes = frames["bytes"].to_numpy().astype(float)
    link, ip, transport = (frames[name].fill_null(0).to_numpy() for name in _HEADERS)
    headers = link + ip + transport
    joined = (transport > 0) & (sizes > mtu + link)
    segments = np.ceil((sizes - headers)[joined] / (mtu - ip - transport)[joined])
    sizes[joined] += (segments - 1) * headers[joined]
    return Packets((times_ns - times_ns[:1].sum()).astype(float) / 1e9, sizes)
