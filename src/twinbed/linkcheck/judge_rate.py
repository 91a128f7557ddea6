"""Judgement of a link's rate and burst, from the packets of a flow that tries to be faster than the link. Pure.

docs/link-check.md has the rules and their reasons.  A figure is out of tolerance only if no slowness of hosts explains it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twinbed.linkcheck import probe_flow
from twinbed.linkcheck.probe_flow import RATE_TOLERANCE, SUPER_PACKET_BYTES, Packets, burst_allowed
from twinbed.model.linkcheck import Figure, Verdict
from twinbed.model.topology import Link

FILLED = 0.95
"""Share of the rate below which the hosts or the link were too slow."""
_FAST = 1.1
"""Multiple of the rate above which a burst after a pause no longer explains the speed."""
TOO_SLOW = 0.75
"""Share of the rate below which a shaper that always had packets waiting is at fault."""
_BURSTS = 4
"""Length of the stretch that shows whether a shaper reaches its rate, in bursts at the rate."""
_WINDOW_S = 0.05
_FEWEST_SAMPLES = 4
_FEWEST_PACKETS = 4
"""The fewest packets of the largest size after the burst that show a rate."""


_LEAKS = "the shaper lets more through than its rate: check `tc -s qdisc`, and other links between these hosts"


@dataclass(frozen=True, slots=True)
class QueueSample:
    """A shaper's counters at one moment: bytes that wait in it, and bytes that have left it."""

    at_s: float
    waiting_bytes: float
    sent_bytes: float


@dataclass(frozen=True, slots=True)
class CapturePoint:
    """The place where a flow was captured. ``at_the_shaper``: on the same device, which packets leave at the captured times;
    otherwise on the receiving host, whose pauses make packets arrive together."""

    at_the_shaper: bool
    samples: Sequence[QueueSample] = ()
    """Samples of the shaper's queue during the flow."""

    @property
    def pause_s(self) -> float:
        """Return the error of a packet's time."""
        return 20e-6 if self.at_the_shaper else 0.02

    @property
    def stamp_error_s(self) -> float:
        """Return the error of a packet's time on a busy machine. The machine may stall after a packet has left and before it is
        stamped, and later packets then seem to come together."""
        return 0.005 if self.at_the_shaper else 0.05


def above_rate(packets: Packets, rate: float) -> float:
    """Return the most bytes by which any stretch of the packets exceeds ``rate`` (bit/s): the size of that rate's token bucket.

    >>> above_rate(Packets(np.array([0.0, 0.0, 1.0]), np.array([1000.0, 1000.0, 1000.0])), 8000)
    2000.0
    """
    credit = np.cumsum(packets.sizes) - packets.times_s * rate / 8
    return float((credit - np.minimum.accumulate(credit - packets.sizes)).max()) if len(packets.sizes) else 0.0


def sustained(packets: Packets, at_once: float = 0.0, stretch_s: float | None = None) -> float | None:
    """Return the bit/s of the flow's fastest half, at least 50 ms long, or of its fastest ``stretch_s``.

    The first ``at_once`` bytes do not count, unless hardly more arrived. None where fewer than two packets, or all at once,
    arrived.

    >>> sustained(Packets(np.array([0.0, 0.1, 0.2]), np.array([1000.0, 1000.0, 1000.0])))
    80000.0
    """
    begin = _steady(packets, at_once) or 0
    times, total = packets.times_s[begin:], np.cumsum(packets.sizes)[begin:]
    if len(times) < 2 or times[-1] <= times[0]:
        return None
    whole = times[-1] - times[0]
    window = min(max(_WINDOW_S, whole / 2) if stretch_s is None else stretch_s, whole)
    last = np.searchsorted(times, times + window * (1 - 1e-9))
    first = np.flatnonzero(last < len(times))
    last = last[first]
    # HTB waits after a packet for what it took, TBF before it: by the fewer bytes neither is too fast.
    sizes = packets.sizes[begin:]
    passed = total[last] - total[first] - np.maximum(0.0, sizes[last] - sizes[first])
    return float((passed * 8 / (times[last] - times[first])).max())


def _steady(packets: Packets, at_once: float) -> int | None:
    """Return the packet with which ``at_once`` bytes have passed; None where too little comes after it to show a rate."""
    times, total = packets.times_s, np.cumsum(packets.sizes)
    begin = int(np.searchsorted(total, at_once))
    if begin >= len(times) or times[-1] - times[begin] < _WINDOW_S:
        return None
    return begin if total[-1] - total[begin] >= _FEWEST_PACKETS * packets.largest else None


def _goes_on(packets: Packets, rate: float, stamp_error_s: float, allowed: float) -> bool:
    """Return whether the flow still exceeds the rate in its second half, after the burst: on average, or, where hosts paused,
    in a stretch."""
    half = packets.times_s > packets.seconds / 2
    late = Packets(packets.times_s[half], packets.sizes[half])
    if len(late.sizes) < 2:
        return False
    passed = float(late.sizes[1:].sum() - packets.largest)
    on_the_whole = passed * 8 > rate * (late.times_s[-1] - late.times_s[0] + stamp_error_s)
    return on_the_whole or above_rate(late, rate) > allowed + stamp_error_s * rate / 8


def judge_flow(path: str, packets: Packets, link: Link, captured: CapturePoint) -> list[Figure]:
    """Judge rate and burst."""
    assert link.rate is not None and link.burst_bytes is not None
    rate, most = float(link.rate), link.rate * (1 + RATE_TOLERANCE)

    allowed = burst_allowed(link, packets.largest) + captured.pause_s * rate / 8
    sustained_bit_s = sustained(packets, emptied := 2 * allowed - link.burst_bytes)
    if sustained_bit_s is None:
        note = "too little arrived to show a rate; the hosts, or loss of the first packets, kept the flow from starting"
        return [Figure(path, "rate", "bit/s", rate, None, None, most, Verdict.INCONCLUSIVE, note)]
    beyond = above_rate(packets, most) - allowed
    certain = beyond > captured.stamp_error_s * rate / 8
    by_rate = certain and _goes_on(packets, most, captured.stamp_error_s, allowed)
    most = _most(link, allowed, packets.seconds / 2)
    if by_rate:
        verdict, note = Verdict.OUT, _LEAKS
    elif sustained_bit_s < FILLED * rate:
        verdict, note = _too_low(sustained_bit_s, packets, link, captured)
    elif _steady(packets, emptied) is None:
        verdict, note = Verdict.INCONCLUSIVE, "hardly more arrived than the burst"
    elif sustained_bit_s > most:
        verdict, note = Verdict.INCONCLUSIVE, "faster for a while, by no more than a burst after a pause of the hosts"
    else:
        verdict, note = Verdict.WITHIN, ""
    figures = [Figure(path, "rate", "bit/s", rate, sustained_bit_s, None, most, verdict, note)]
    return [*figures, _burst(path, packets, link, captured, allowed, beyond > 0 and not by_rate, certain)]


def _most(link: Link, allowed: float, seconds: float) -> float:
    """Return the most bit/s that a correct link may seem to have in a stretch of ``seconds``. The burst has passed before, but
    passes again after a pause of the hosts, which allows up to a tenth more."""
    assert link.rate is not None and link.burst_bytes is not None
    most = link.rate * (1 + RATE_TOLERANCE)
    usual, paused = (most + bytes_ * 8 / seconds for bytes_ in (allowed - link.burst_bytes, allowed))
    return min(paused, max(usual, _FAST * link.rate))


def no_figures(path: str, link: Link, note: str) -> list[Figure]:
    """Return the figures of a link whose rate and burst cannot be measured."""
    assert link.rate is not None and link.burst_bytes is not None
    return [
        Figure(path, quantity, unit, asked, None, None, None, Verdict.INCONCLUSIVE, note)
        for quantity, unit, asked in (("rate", "bit/s", float(link.rate)), ("burst", "B", float(link.burst_bytes)))
    ]


def _too_low(fastest: float, packets: Packets, link: Link, captured: CapturePoint) -> tuple[Verdict, str]:
    assert link.rate is not None and link.burst_bytes is not None
    held = _held(captured.samples, fastest / 8 * ((link.delay or 0.0) + (link.jitter or 0.0)) * 1.5)
    # A shaper that a busy machine calls late is slow on the whole, but goes at its rate now and then.
    quickest = sustained(packets, burst_allowed(link, packets.largest), _BURSTS * link.burst_bytes * 8 / link.rate)
    if held is not None and max(held, quickest or 0.0) < TOO_SLOW * link.rate:
        return Verdict.OUT, f"packets always waited at the shaper, and left it at {held:.6g} bit/s"
    return Verdict.INCONCLUSIVE, "the hosts, or devices between them, did not fill the link"


def _held(samples: Sequence[QueueSample], delayed_bytes: float) -> float | None:
    """Return the rate at which packets left a shaper that always had more than ``delayed_bytes`` waiting, bit/s."""
    if len(samples) < _FEWEST_SAMPLES or any(sample.waiting_bytes <= delayed_bytes for sample in samples):
        return None
    seconds = samples[-1].at_s - samples[0].at_s
    return (samples[-1].sent_bytes - samples[0].sent_bytes) * 8 / seconds if seconds >= _WINDOW_S else None


def _burst(
    path: str, packets: Packets, link: Link, captured: CapturePoint, allowed: float, leaks: bool, certain: bool
) -> Figure:
    """Judge the burst. ``leaks``: more came at once than allowed; ``certain``: more than a pause of the machine explains."""
    assert link.rate is not None and link.burst_bytes is not None
    beyond = above_rate(packets, link.rate)
    if not leaks and probe_flow.burst_unseen(link):
        verdict, note = (
            Verdict.INCONCLUSIVE,
            "only single packets were sent; packets joined by segmentation offload might exceed the burst",
        )
    elif not leaks:
        verdict, note = Verdict.WITHIN, ""
    elif not captured.at_the_shaper:
        verdict, note = Verdict.INCONCLUSIVE, "a pause of the receiving host makes packets arrive together as well"
    elif packets.largest <= link.mtu + 18 and beyond <= allowed + SUPER_PACKET_BYTES:
        verdict, note = Verdict.INCONCLUSIVE, "exceeded by at most one 64 KiB packet, which some NICs cut up behind the shaper"
    elif not certain and packets.largest <= allowed:
        pause = f"{captured.stamp_error_s * 1e3:.0f} ms"
        verdict, note = Verdict.INCONCLUSIVE, f"a pause of up to {pause} of a busy machine explains the time stamps"
    else:
        verdict, note = Verdict.OUT, f"the largest packet is {packets.largest:,.0f} bytes"
        if packets.largest > link.mtu + 18:
            note += ", joined by segmentation offload: switch tso and gso off, or set a burst that holds it"
    return Figure(path, "burst", "B", link.burst_bytes, beyond, None, allowed, verdict, note)
