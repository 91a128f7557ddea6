"""What is sent over a link so that its rate and burst show, and how long that takes.  Pure; docs/link-check.md has the reasons.

A token bucket lets its burst pass at once, and only what comes after the burst shows the rate.  So a flow consists of the
burst, what else may pass at once, and a stretch at the rate.  The stretch is several times as long as the error that the
size of packets leaves.

When packets left a shaper, and how many bytes of its rate each took; from a capture behind it.  Pure.

A shaper counts an IP packet and the 14 bytes of its Ethernet header, for every segment of a super-packet
(``statistics.physics``, SHAPER); a capture shows a super-packet once, so the headers of its other segments are added here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twinbed import _core
from twinbed.model.topology import Link

RATE_TOLERANCE = 0.02
"""Above the rate. HTB and TBF hold their rates to 0.1 %; the rest is for clocks that differ."""
MOST_S = 20.0
"""The longest that the flows of both ways may take, with what the bucket takes to be full again."""
SUPER_PACKET_BYTES = 65536
_SHORTEST_S = 0.35
_STRETCH = 4
"""What flows at the rate, in multiples of what else than the burst may pass at once: 1.3 times the rate exceeds that."""
_OVER = 1.3
"""Of the rate: what is sent where TCP would not fill the link."""
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
    """One way. ``seconds``: what a link that does as asked takes for it, when its burst has passed. ``frame_bytes`` and
    ``speed`` (bit/s) are those of UDP, None for TCP."""

    total_bytes: int
    seconds: float
    frame_bytes: int | None = None
    speed: int | None = None

    def arguments(self) -> list[str]:
        """Arguments for iperf3."""
        if self.frame_bytes is None or self.speed is None:
            # What is written last would exceed the total by up to a block, and wait for minutes at a slow link.
            block = math.ceil(self.total_bytes / math.ceil(self.total_bytes / _LARGEST_BLOCK))
            return ["-n", str(self.total_bytes), "-l", str(block)]
        payload = self.frame_bytes - _FRAME_HEADERS
        sent = math.ceil(self.total_bytes / self.frame_bytes) * payload
        return ["-u", "-b", str(self.speed), "-l", str(payload), "-n", str(sent)]


def burst_allowed(link: Link, largest: float) -> float:
    """Bytes beyond the rate that a shaper with the asked burst may let pass at once: HTB sends as long as it has tokens, so
    the last packet may exceed them; and the time between a packet's leave and its time stamp is worth another."""
    assert link.burst_bytes is not None
    frame = min(largest, link.mtu + 14)
    return link.burst_bytes * (1 + RATE_TOLERANCE) + 2 * min(largest, link.burst_bytes) + _FRAME_SLACK * frame


def single_packets(link: Link) -> bool:
    """Whether UDP is sent, which nothing joins: where delay or loss would hold TCP back, and at slow links."""
    assert link.rate is not None
    return link.emulates or (link.rate < _SLOW and (_holds_joined(link) or _needed_s(link, _tcp(link)) > MOST_S))


def burst_unseen(link: Link) -> bool:
    """Whether a packet that is joined by segmentation offload might pass the burst whole, and none is sent."""
    return single_packets(link) and not _holds_joined(link)


def flow(link: Link) -> Flow:
    """Of a link that can be measured."""
    return _udp(link) if single_packets(link) else _tcp(link)


def why_not(link: Link, uplink: int | None) -> str | None:
    """Why rate and burst cannot be measured; None where they can. ``uplink``: of a star, bit/s."""
    assert link.rate is not None
    if uplink is not None and uplink < link.rate:
        return f"the uplink carries {uplink} bit/s, so nothing fills this link"
    needed_s = _needed_s(link, flow(link))
    if needed_s <= MOST_S:
        return None
    return (
        f"a burst of {link.burst_bytes} bytes and what shows the rate behind it would take {needed_s:.0f} s;"
        f" the link check takes {MOST_S:g} s at most, in which a smaller burst may be measured"
    )


def refill_s(link: Link) -> float:
    """How long an empty bucket takes to be full."""
    assert link.rate is not None and link.burst_bytes is not None
    return link.burst_bytes * 8 / link.rate


def _needed_s(link: Link, planned: Flow) -> float:
    """Both ways, with what the bucket takes to be full again."""
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
    """Bytes, and seconds at the rate after the burst."""
    assert link.rate is not None and link.burst_bytes is not None
    allowed = burst_allowed(link, largest)
    total = 2 * allowed - link.burst_bytes + max(_SHORTEST_S * link.rate / 8, _STRETCH * (allowed - link.burst_bytes))
    return total, (total - link.burst_bytes) * 8 / link.rate


_HEADERS = ("link_header_bytes", "ip_header_bytes", "transport_header_bytes")


@dataclass(frozen=True, slots=True)
class Packets:
    """In the order of the capture: ``times_s`` from the first packet, ``sizes`` in bytes as the shaper counts them."""

    times_s: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.float64]

    @property
    def seconds(self) -> float:
        return float(self.times_s[-1] - self.times_s[0]) if len(self.times_s) else 0.0

    @property
    def largest(self) -> float:
        return float(self.sizes.max()) if len(self.sizes) else 0.0


def read(capture: bytes, mtu: int) -> Packets:
    """From the bytes of a capture file. Raises ValueError where it is none."""
    frames = _core.frames(capture)
    times_ns = frames["time_ns"].to_numpy()
    sizes = frames["bytes"].to_numpy().astype(float)
    link, ip, transport = (frames[name].fill_null(0).to_numpy() for name in _HEADERS)
    headers = link + ip + transport
    joined = (transport > 0) & (sizes > mtu + link)
    segments = np.ceil((sizes - headers)[joined] / (mtu - ip - transport)[joined])
    sizes[joined] += (segments - 1) * headers[joined]
    return Packets((times_ns - times_ns[:1].sum()).astype(float) / 1e9, sizes)
