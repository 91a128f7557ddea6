"""A train of packets that a link carries easily (irtt), and the judgement of the link's delay, jitter and loss from it.

docs/link-check.md has the rules and their reasons.  A figure is out of tolerance only if no slowness of hosts explains it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twinbed.contracts.bed import Bed
from twinbed.contracts.command import Command, Ready
from twinbed.hosts.stage import Stage
from twinbed.linkcheck.ends import Ends, passed_and_dropped
from twinbed.links.network import understood
from twinbed.model.json import loads
from twinbed.model.linkcheck import Figure, Verdict
from twinbed.model.topology import Link, Topology

LOSS_LEVEL = 1e-5
"""The chance that a correct link is found out of tolerance for its loss, each way."""
DELAY_ALLOWANCE_S = 0.005
DELAY_TOLERANCE = 0.10
"""Share of the delay that hosts may add to the shortest round trip, besides the allowance."""
_HOSTS_S = 0.001
"""Time that fast hosts add to a round trip."""
_SHORT_BY = 1e-4
"""Share of the delay by which a round trip may be shorter, as hosts' clocks differ in rate."""
_TICK_S = 4e-6
"""The kernel's tick and tc's microsecond, both ways."""
_JITTER_LEAST, _JITTER_MOST = 0.75, 1.5
_NEAR = 10
"""The fewest round trips nearly as short as the shortest where a delay is too long throughout."""


@dataclass(frozen=True, slots=True)
class Train:
    """A train as irtt measured it: round trips and one-way delays of packets that came back, each way by its own clock."""

    round_trips_s: Sequence[float]
    there_s: Sequence[float]
    back_s: Sequence[float]
    there: tuple[int, int]
    """(arrived, sent) of the client's packets, up to the last that was answered."""
    back: tuple[int, int]
    interval_s: float
    """The time from one packet's start to the next one's."""


def judge_delay(path: str, train: Train, link: Link) -> Figure:
    """Judge the delay by the shortest round trip, which passes the delay twice and which hosts can only lengthen."""
    assert link.delay is not None
    asked, jitter = 2 * link.delay, 2 * (link.jitter or 0.0)
    least = max(0.0, (asked - jitter) * (1 - _SHORT_BY) - _TICK_S)
    most = asked + jitter + DELAY_TOLERANCE * asked + DELAY_ALLOWANCE_S
    if not train.round_trips_s:
        return Figure(path, "delay", "s", asked, None, least, most, Verdict.INCONCLUSIVE, "no packet came back")
    shortest = min(train.round_trips_s)
    if link.jitter is None:
        measured = shortest
    else:
        measured = float(np.median(train.round_trips_s))
        # The median of n round trips varies by some 1.25 standard deviations / sqrt(n): six of them.
        spread = 6 * 1.25 * link.jitter * math.sqrt(2 / 3) / math.sqrt(len(train.round_trips_s))
        least, most = asked * (1 - _SHORT_BY) - _TICK_S - spread, most - jitter + spread
    note = f"the shortest of {len(train.round_trips_s)} round trips took {shortest * 1e3:.3f} ms"
    if measured < least:
        note = f"shorter than the link alone; {note}: check `tc -s qdisc`"
        return Figure(path, "delay", "s", asked, measured, least, most, Verdict.OUT, note)
    if _longer(train, link):
        note = f"longer than slow hosts explain; {note}: check `tc -s qdisc`"
        return Figure(path, "delay", "s", asked, measured, least, most, Verdict.OUT, note)
    if measured > asked * (1 + DELAY_TOLERANCE) + _HOSTS_S:
        note = f"the link may be too long, or the hosts slow; {note}"
        return Figure(path, "delay", "s", asked, measured, least, most, Verdict.INCONCLUSIVE, note)
    return Figure(path, "delay", "s", asked, measured, least, most, Verdict.WITHIN, note)


def _longer(train: Train, link: Link) -> bool:
    """Return whether even the shortest round trip is too long for slow hosts, and a stall does not explain the others.

    After a stall of a host packets come at once: the earlier one was sent, the longer it took."""
    assert link.delay is not None
    jitter, shortest, packets = link.jitter or 0.0, min(train.round_trips_s), len(train.round_trips_s)
    # Both ways being short at once is rare: of n round trips all are longer by this as rarely as LOSS_LEVEL.
    rare = min(2.0, math.sqrt(-8 * math.log(LOSS_LEVEL) / packets)) * jitter
    most = 2 * (link.delay - jitter) + rare + DELAY_TOLERANCE * 2 * link.delay + DELAY_ALLOWANCE_S
    window = 4 * jitter + DELAY_ALLOWANCE_S
    near = sum(trip <= shortest + window for trip in train.round_trips_s)
    return shortest > most and near >= _NEAR + window / train.interval_s


def judge_jitter(path: str, delays_s: Sequence[float], link: Link, shortest_s: float | None) -> Figure:
    """Judge the jitter: the distance between the quartiles is half the range of an evenly spread delay. Pauses of hosts only
    widen it, so a wider one is the link's fault only if the shortest round trip is also shorter than the link allows."""
    assert link.delay is not None and link.jitter is not None
    least, most = _JITTER_LEAST * link.jitter, _JITTER_MOST * link.jitter + DELAY_ALLOWANCE_S
    if len(delays_s) < 100:
        note = f"only {len(delays_s)} packets came back"
        return Figure(path, "jitter", "s", link.jitter, None, least, most, Verdict.INCONCLUSIVE, note)
    low, high = np.quantile(delays_s, (0.25, 0.75))
    measured = float(high - low)
    verdict, note = Verdict.WITHIN, f"of {len(delays_s)} packets"
    if measured < least:
        verdict = Verdict.OUT
    elif measured > most:
        short = shortest_s is not None and shortest_s < 2 * (link.delay - link.jitter) * (1 - _SHORT_BY) - _TICK_S
        verdict = Verdict.OUT if short else Verdict.INCONCLUSIVE
        note += ", and a round trip was shorter than the link allows" if short else "; pauses of hosts widen it too"
    return Figure(path, "jitter", "s", link.jitter, measured, least, most, verdict, note)


def judge_loss(path: str, train: tuple[int, int], emulator: tuple[int, int] | None, link: Link) -> Figure:
    """Judge the loss by the binomial's exact tails; the interval in the note is Clopper and Pearson's (Biometrika 26, 1934).

    ``train`` and ``emulator`` are packets (arrived, sent): losses of the train, and drops that the emulator reports, None where
    it reports none. Pausing hosts lose packets too, so excess loss is the link's only if the emulator reports it or cannot be
    asked.
    """
    from scipy import special

    assert link.loss is not None
    arrived, sent = train
    if sent == 0:
        return Figure(path, "loss", "1", link.loss, None, None, None, Verdict.INCONCLUSIVE, "no packet arrived")
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
                verdict = Verdict.INCONCLUSIVE
                note += ", so the hosts lost the rest"
    elif least == 0:
        note += "; so few packets cannot show that the link loses none"
    return Figure(path, "loss", "1", link.loss, lost / sent, least / sent, most / sent, verdict, note)


def _losses(sent: int, share: float) -> tuple[float, float]:
    """Return the fewest and the most losses of a link that loses ``share``, but for ``LOSS_LEVEL`` either way."""
    from scipy import special

    at_most = special.bdtr(np.arange(sent + 1, dtype=float), sent, share)
    return float(np.searchsorted(at_most, LOSS_LEVEL)), float(np.searchsorted(at_most, 1 - LOSS_LEVEL))


_PORT = 2113
_LIMIT_S = 30.0
_MOST_S = 3.0
_FRAME_BYTES = 106
_SHARE = 0.1
"""The largest share of the rate that the train takes."""
_WAIT_S = 1.0
"""The time to wait for the last answers, besides the link's delay: a guest on a busy machine may stall for most of a second."""
_TERMINATE = 15


def train_figures(ends: Ends, topology: Topology, bed: Bed, stage: Stage) -> list[Figure]:
    """Measure delay, jitter and loss of a pair."""
    link = topology.link
    serve = ("irtt", "server", "-b", f"0.0.0.0:{_PORT}", "-i", "100us")
    server = stage.start(
        [Command(ends.server, serve, "link-check.irtt-server", Ready(says=b"[ListenerStart]"), stop=_TERMINATE)]
    )
    packets, interval_s = pace(topology)
    wait_s = _WAIT_S + 3 * ((link.delay or 0.0) + (link.jitter or 0.0))
    lasts_s = min(packets * interval_s, _MOST_S)
    ask = [
        *("irtt", "client", "-Q", "-i", f"{round(interval_s * 1e6)}us", "-d", f"{round(lasts_s * 1e6)}us", "-l", "64"),
        *("--timeouts=500ms,1s,2s,4s,4s,4s", f"--wait={round(wait_s * 1e6)}us", "-o", "-", f"{ends.address}:{_PORT}"),
    ]
    before = [passed_and_dropped(bed.hosts[place], device) for place, device in ends.emulators]
    report = bed.hosts[ends.client].run(ask, limit_s=_LIMIT_S).stdout
    after = [passed_and_dropped(bed.hosts[place], device) for place, device in ends.emulators]
    stage.stop(server)
    with understood(bed.hosts[ends.client]):
        train = read_train(report, interval_s)
    forth, back = f"{ends.client} to {ends.server}", f"{ends.server} to {ends.client}"
    figures = []
    if link.delay is not None:
        figures.append(judge_delay(f"{ends.client} and {ends.server}", train, link))
    if link.jitter is not None:
        shortest_s = min(train.round_trips_s, default=None)
        for path, delays_s in ((forth, train.there_s), (back, train.back_s)):
            figures.append(judge_jitter(path, delays_s, link, shortest_s))
    if link.loss is not None:
        for path, counts, first, last in zip((forth, back), (train.there, train.back), before, after, strict=True):
            dropped = None if first is None or last is None else (last[0] - first[0], sum(last) - sum(first))
            figures.append(judge_loss(path, counts, dropped, link))
    return figures


def pace(topology: Topology) -> tuple[int, float]:
    """Return how many packets to send, and the seconds between them, so that the slowest link on the way carries them
    easily."""
    link, packets = topology.link, 150
    if link.jitter is not None:
        packets = 400
    if link.loss is not None:
        packets = max(packets, min(2000, round(20 / link.loss)))
    interval_s = 0.002 if link.loss is None else 0.001
    slowest = min((rate for rate in (link.rate, topology.uplink) if rate is not None), default=math.inf)
    return packets, max(interval_s, _FRAME_BYTES * 8 / (_SHARE * slowest))


def read_train(report: bytes, interval_s: float) -> Train:
    """Read irtt's JSON. The train is empty where no packet came back. Raises ValueError, KeyError or TypeError for other
    text."""
    data = loads(report)
    trips = data["round_trips"]
    answered = [trip for trip in trips if trip["lost"] == "false"]
    sent = answered[-1]["seqno"] + 1 if answered else 0
    arrived = min(int(data["stats"]["server_packets_received"]), sent)
    return Train(
        [trip["delay"]["rtt"] / 1e9 for trip in answered],
        [trip["delay"]["send"] / 1e9 for trip in answered],
        [trip["delay"]["receive"] / 1e9 for trip in answered],
        (arrived, sent),
        (min(len(answered), arrived), arrived),
        interval_s,
    )
