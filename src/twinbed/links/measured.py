"""Whether a link does what was asked of it, judged from what was sent over it and what arrived.  Pure; docs/link-check.md has
the rules and their reasons.

Two sources: the ``Arrivals`` of a flow that tries to be faster than the link, and the round trips of a train of packets that
the link carries easily.  A figure is out of tolerance only where no slowness of hosts explains it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twinbed.links.arrivals import Arrivals
from twinbed.model.linkcheck import Figure, Verdict
from twinbed.model.topology import Link

RATE_TOLERANCE = 0.02
"""Above the rate. HTB and TBF hold their rates to 0.1 %; the rest is for clocks that differ."""
FILLED = 0.95
"""Of the rate: below, hosts were too slow to fill the link, or the link is."""
TOO_SLOW = 0.75
"""Of the rate: below, a shaper that always had packets waiting is at fault."""
LOSS_LEVEL = 1e-5
"""A link that loses as asked is found out of tolerance as rarely as this, each way."""
DELAY_ALLOWANCE_S = 0.005
DELAY_TOLERANCE = 0.10
"""Of the delay: with the allowance, what hosts may add to the shortest round trip."""
_HOSTS_S = 0.001
"""What hosts that are not slow add to a round trip."""
_SHORT_BY = 1e-4
"""Of the delay, that a round trip may be shorter: clocks of hosts differ in rate."""
_TICK_S = 4e-6
"""The kernel's tick and tc's microsecond, both ways."""
_FRAME_SLACK = 2
_BURSTS = 4
"""Bursts that would pass at the rate in the stretch that shows whether a shaper reaches it."""
_WINDOW_S = 0.05
_JITTER_LEAST, _JITTER_MOST = 0.75, 1.5
_FEWEST_LOOKS = 4


@dataclass(frozen=True, slots=True)
class Look:
    """At a shaper's counters: when, how many bytes wait in it, how many have left it."""

    at_s: float
    waiting_bytes: float
    sent_bytes: float


@dataclass(frozen=True, slots=True)
class Behind:
    """Where a flow was captured. ``at_the_shaper``: on the same device, so that times are those of leaving it; else on the
    receiving host, whose pauses make packets arrive together."""

    at_the_shaper: bool
    looks: Sequence[Look] = ()
    """At the shaper, now and then while the flow ran."""

    @property
    def pause_s(self) -> float:
        """What times of arrival may be wrong by."""
        return 20e-6 if self.at_the_shaper else 0.02


_SUPER_PACKET_BYTES = 65536


def burst_allowed(link: Link, largest: float) -> float:
    """Bytes beyond the rate that a shaper with the asked burst may let pass at once: HTB sends as long as it has tokens, so
    the last packet may exceed them; and the time between a packet's leave and its time stamp is worth another."""
    assert link.burst_bytes is not None
    return link.burst_bytes * (1 + RATE_TOLERANCE) + 2 * min(largest, link.burst_bytes) + _FRAME_SLACK * (link.mtu + 14)


def flow_seconds(link: Link) -> float:
    """How long a flow must last so that its bytes are several times what passes at once."""
    assert link.rate is not None
    return min(max(0.35, 4 * burst_allowed(link, 65536) * 8 / link.rate), 2.0)


def above_rate(arrivals: Arrivals, rate: float) -> float:
    """The most bytes by which any stretch of the arrivals exceeds ``rate`` (bit/s): what a token bucket of that rate must hold.

    >>> above_rate(Arrivals(np.array([0.0, 0.0, 1.0]), np.array([1000.0, 1000.0, 1000.0])), 8000)
    2000.0
    """
    credit = np.cumsum(arrivals.sizes) - arrivals.times_s * rate / 8
    return float((credit - np.minimum.accumulate(credit - arrivals.sizes)).max()) if len(arrivals.sizes) else 0.0


def sustained(arrivals: Arrivals, at_once: float = 0.0, stretch_s: float | None = None) -> float | None:
    """bit/s of the fastest half of the flow, at least 50 ms long, or of its fastest ``stretch_s``, once ``at_once`` bytes have
    passed; of the whole where there is not twice as much; None where fewer than two packets, or all at once, arrived.

    >>> sustained(Arrivals(np.array([0.0, 0.1, 0.2]), np.array([1000.0, 1000.0, 1000.0])))
    80000.0
    """
    times, total = arrivals.times_s, np.cumsum(arrivals.sizes)
    begin = int(np.searchsorted(total, at_once))
    if begin >= len(times) or times[-1] - times[begin] < _WINDOW_S or total[-1] < 2 * at_once:
        begin = 0
    times, total = times[begin:], total[begin:]
    if len(times) < 2 or times[-1] <= times[0]:
        return None
    whole = times[-1] - times[0]
    window = min(max(_WINDOW_S, whole / 2) if stretch_s is None else stretch_s, whole)
    last = np.searchsorted(times, times + window * (1 - 1e-9))
    first = np.flatnonzero(last < len(times))
    last = last[first]
    return float(((total[last] - total[first]) * 8 / (times[last] - times[first])).max())


def _goes_on(arrivals: Arrivals, rate: float) -> bool:
    """Whether the flow still exceeds the rate in its second half, when what may pass at once has passed."""
    late = arrivals.times_s > arrivals.seconds / 2
    times, sizes = arrivals.times_s[late], arrivals.sizes[late]
    return len(times) > 1 and float(sizes[1:].sum() - arrivals.largest) * 8 > rate * (times[-1] - times[0])


def judge_flow(path: str, arrivals: Arrivals, link: Link, behind: Behind) -> list[Figure]:
    """Rate and burst."""
    assert link.rate is not None and link.burst_bytes is not None
    rate, most = float(link.rate), link.rate * (1 + RATE_TOLERANCE)

    allowed = burst_allowed(link, arrivals.largest) + behind.pause_s * rate / 8
    found = sustained(arrivals, allowed)
    if found is None:
        note = (
            "nothing arrived that a rate could be taken from; the hosts or the first packets' loss kept the flow from starting"
        )
        return [Figure(path, "rate", "bit/s", rate, None, None, most, Verdict.UNTOLD, note)]
    leaks = above_rate(arrivals, most) > allowed
    by_rate = leaks and _goes_on(arrivals, most)
    fastest, most = found, most + allowed * 8 / arrivals.seconds
    figures = [Figure(path, "rate", "bit/s", rate, fastest, None, most, *_of_rate(fastest, arrivals, link, behind, by_rate))]
    return [*figures, _burst(path, arrivals, link, behind, allowed, leaks and not by_rate)]


def _of_rate(fastest: float, arrivals: Arrivals, link: Link, behind: Behind, leaks: bool) -> tuple[Verdict, str]:
    assert link.rate is not None and link.burst_bytes is not None
    if leaks:
        return (
            Verdict.OUT,
            "the shaper lets more through than its rate: look at `tc -s qdisc` and at what else joins these hosts",
        )
    if fastest >= FILLED * link.rate:
        return Verdict.WITHIN, ""
    held = _held(behind.looks, fastest / 8 * ((link.delay or 0.0) + (link.jitter or 0.0)) * 1.5)
    # A shaper that a busy machine calls late is slow on the whole, but goes at its rate now and then.
    quickest = sustained(arrivals, burst_allowed(link, arrivals.largest), _BURSTS * link.burst_bytes * 8 / link.rate)
    if held is not None and max(held, quickest or 0.0) < TOO_SLOW * link.rate:
        return Verdict.OUT, f"packets were always waiting at the shaper, and left it at {held:.6g} bit/s"
    return Verdict.UNTOLD, "the hosts did not fill the link"


def _held(looks: Sequence[Look], delayed_bytes: float) -> float | None:
    """The rate at which packets left a shaper that always had more than ``delayed_bytes`` waiting, bit/s."""
    if len(looks) < _FEWEST_LOOKS or any(look.waiting_bytes <= delayed_bytes for look in looks):
        return None
    seconds = looks[-1].at_s - looks[0].at_s
    return (looks[-1].sent_bytes - looks[0].sent_bytes) * 8 / seconds if seconds >= _WINDOW_S else None


def _burst(path: str, arrivals: Arrivals, link: Link, behind: Behind, allowed: float, leaks: bool) -> Figure:
    assert link.rate is not None and link.burst_bytes is not None
    beyond = above_rate(arrivals, link.rate)
    if not leaks:
        verdict, note = Verdict.WITHIN, ""
    elif not behind.at_the_shaper:
        verdict, note = Verdict.UNTOLD, "a pause of the receiving host makes packets arrive together as well"
    elif arrivals.largest <= link.mtu + 18 and beyond <= allowed + _SUPER_PACKET_BYTES:
        verdict, note = Verdict.UNTOLD, "by no more than one packet of 64 KiB, which is cut up behind the shaper for some cards"
    else:
        verdict, note = Verdict.OUT, f"the largest packet is {arrivals.largest:,.0f} bytes"
        if arrivals.largest > link.mtu + 18:
            note += ", joined by segmentation offload: switch tso and gso off, or ask for a burst that holds it"
    return Figure(path, "burst", "B", link.burst_bytes, beyond, None, allowed, verdict, note)


@dataclass(frozen=True, slots=True)
class Train:
    """What irtt says of a train: round trips, and one-way delays each against a clock of its own, of packets that came back."""

    round_trips_s: Sequence[float]
    there_s: Sequence[float]
    back_s: Sequence[float]
    there: tuple[int, int]
    """(arrived, sent) of the client's packets, up to the last that was answered."""
    back: tuple[int, int]


def judge_delay(path: str, train: Train, link: Link) -> Figure:
    """Of a round trip, which passes the delay twice. Hosts only ever add to it, so the shortest is held to."""
    assert link.delay is not None
    asked, jitter = 2 * link.delay, 2 * (link.jitter or 0.0)
    least = max(0.0, (asked - jitter) * (1 - _SHORT_BY) - _TICK_S)
    most = asked + jitter + DELAY_TOLERANCE * asked + DELAY_ALLOWANCE_S
    if not train.round_trips_s:
        return Figure(path, "delay", "s", asked, None, least, most, Verdict.UNTOLD, "no packet came back")
    shortest = min(train.round_trips_s)
    if link.jitter is None:
        measured = shortest
    else:
        measured = float(np.median(train.round_trips_s))
        # The median of n round trips varies by some 1.25 standard deviations / sqrt(n): six of them.
        spread = 6 * 1.25 * link.jitter * math.sqrt(2 / 3) / math.sqrt(len(train.round_trips_s))
        least, most = asked * (1 - _SHORT_BY) - _TICK_S - spread, most - jitter + spread
    note = f"the shortest of {len(train.round_trips_s)} round trips took {shortest * 1e3:.3f} ms"
    if measured < least or measured > most:
        way = "shorter than the link alone" if measured < least else "longer than slow hosts explain"
        return Figure(path, "delay", "s", asked, measured, least, most, Verdict.OUT, f"{way}; {note}: look at `tc -s qdisc`")
    if measured > asked * (1 + DELAY_TOLERANCE) + _HOSTS_S:
        note = f"the link may be longer, or the hosts slow; {note}"
        return Figure(path, "delay", "s", asked, measured, least, most, Verdict.UNTOLD, note)
    return Figure(path, "delay", "s", asked, measured, least, most, Verdict.WITHIN, note)


def judge_jitter(path: str, delays_s: Sequence[float], link: Link) -> Figure:
    """Half of what an evenly spread delay varies by is the distance between its quartiles; pauses of hosts only widen it."""
    assert link.jitter is not None
    least, most = _JITTER_LEAST * link.jitter, _JITTER_MOST * link.jitter + DELAY_ALLOWANCE_S
    if len(delays_s) < 100:
        note = f"only {len(delays_s)} packets came back"
        return Figure(path, "jitter", "s", link.jitter, None, least, most, Verdict.UNTOLD, note)
    low, high = np.quantile(delays_s, (0.25, 0.75))
    measured = float(high - low)
    verdict = Verdict.WITHIN if least <= measured <= most else Verdict.OUT
    return Figure(path, "jitter", "s", link.jitter, measured, least, most, verdict, f"of {len(delays_s)} packets")


def judge_loss(path: str, train: tuple[int, int], emulator: tuple[int, int] | None, link: Link) -> Figure:
    """By the binomial's exact tails; the interval in the note is Clopper and Pearson's (Biometrika 26, 1934). ``train`` and
    ``emulator`` are packets (arrived, sent): what the train lost, and what the emulator says it dropped; None where it cannot
    be asked. Hosts that pause lose packets as well, so more loss than was asked is the link's only where the emulator owns to
    it, or cannot be asked."""
    from scipy import special

    assert link.loss is not None
    arrived, sent = train
    if sent == 0:
        return Figure(path, "loss", "1", link.loss, None, None, None, Verdict.UNTOLD, "no packet arrived to count by")
    least, most = _losses(sent, link.loss)
    lost = sent - arrived
    low = special.betaincinv(lost, arrived + 1, 0.025) if lost else 0.0
    high = special.betaincinv(lost + 1, arrived, 0.975) if arrived else 1.0
    note = f"{lost} of {sent} packets lost, 95 % interval {low:.3%} to {high:.3%}"
    verdict = Verdict.WITHIN
    if lost < least:
        verdict = Verdict.OUT
    elif lost > most:
        verdict = Verdict.OUT
        if emulator is not None:
            passed, seen = emulator
            note += f"; the emulator dropped {seen - passed} of {seen}"
            if seen - passed <= _losses(seen, link.loss)[1]:
                verdict = Verdict.UNTOLD
                note += ", so the hosts lost the rest"
    elif least == 0:
        note += "; so few packets would not show that none is lost"
    return Figure(path, "loss", "1", link.loss, lost / sent, least / sent, most / sent, verdict, note)


def _losses(sent: int, share: float) -> tuple[float, float]:
    """The fewest and the most losses that a link which loses as asked has, but for ``LOSS_LEVEL`` either way."""
    from scipy import special

    at_most = special.bdtr(np.arange(sent + 1, dtype=float), sent, share)
    return float(np.searchsorted(at_most, LOSS_LEVEL)), float(np.searchsorted(at_most, 1 - LOSS_LEVEL))
