"""A train of packets that a link carries easily (irtt): delay, jitter and loss.

Whether a link has the delay, jitter and loss that were asked of it, judged from a train of packets that it carries easily.
Pure; docs/link-check.md has the rules and their reasons.  A figure is out of tolerance only where no slowness of hosts explains
it.
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
_JITTER_LEAST, _JITTER_MOST = 0.75, 1.5
_NEAR = 10
"""Round trips that are nearly as short as the shortest where a delay is too long throughout."""


@dataclass(frozen=True, slots=True)
class Train:
    """What irtt says of a train: round trips, and one-way delays each against a clock of its own, of packets that came back."""

    round_trips_s: Sequence[float]
    there_s: Sequence[float]
    back_s: Sequence[float]
    there: tuple[int, int]
    """(arrived, sent) of the client's packets, up to the last that was answered."""
    back: tuple[int, int]
    interval_s: float
    """From one packet's start to the next one's."""


def judge_delay(path: str, train: Train, link: Link) -> Figure:
    """Of a round trip, which passes the delay twice. Hosts only ever add to it, so the shortest is held to."""
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
        note = f"shorter than the link alone; {note}: look at `tc -s qdisc`"
        return Figure(path, "delay", "s", asked, measured, least, most, Verdict.OUT, note)
    if _longer(train, link):
        note = f"longer than slow hosts explain; {note}: look at `tc -s qdisc`"
        return Figure(path, "delay", "s", asked, measured, least, most, Verdict.OUT, note)
    if measured > asked * (1 + DELAY_TOLERANCE) + _HOSTS_S:
        note = f"the link may be longer, or the hosts slow; {note}"
        return Figure(path, "delay", "s", asked, measured, least, most, Verdict.INCONCLUSIVE, note)
    return Figure(path, "delay", "s", asked, measured, least, most, Verdict.WITHIN, note)


def _longer(train: Train, link: Link) -> bool:
    """Whether even the shortest is too long for hosts that are slow, and more are as long than come at once, each later by what
    it was sent earlier, behind a host that stood still."""
    assert link.delay is not None
    jitter, shortest, packets = link.jitter or 0.0, min(train.round_trips_s), len(train.round_trips_s)
    # Both ways being short at once is rare: of n round trips all are longer by this as rarely as LOSS_LEVEL.
    rare = min(2.0, math.sqrt(-8 * math.log(LOSS_LEVEL) / packets)) * jitter
    most = 2 * (link.delay - jitter) + rare + DELAY_TOLERANCE * 2 * link.delay + DELAY_ALLOWANCE_S
    window = 4 * jitter + DELAY_ALLOWANCE_S
    near = sum(trip <= shortest + window for trip in train.round_trips_s)
    return shortest > most and near >= _NEAR + window / train.interval_s


def judge_jitter(path: str, delays_s: Sequence[float], link: Link, shortest_s: float | None) -> Figure:
    """Half of what an evenly spread delay varies by is the distance between its quartiles. Pauses of hosts only widen it, so a
    wider one is the link's only where the shortest round trip is shorter than the link allows as well."""
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
        note += ", and a round trip was shorter than the link allows" if short else "; pauses of hosts widen it as well"
    return Figure(path, "jitter", "s", link.jitter, measured, least, most, verdict, note)


def judge_loss(path: str, train: tuple[int, int], emulator: tuple[int, int] | None, link: Link) -> Figure:
    """By the binomial's exact tails; the interval in the note is Clopper and Pearson's (Biometrika 26, 1934). ``train`` and
    ``emulator`` are packets (arrived, sent): what the train lost, and what the emulator says it dropped; None where it cannot
    be asked. Hosts that pause lose packets as well, so more loss than was asked is the link's only where the emulator owns to
    it, or cannot be asked."""
    from scipy import special

    assert link.loss is not None
    arrived, sent = train
    if sent == 0:
        return Figure(path, "loss", "1", link.loss, None, None, None, Verdict.INCONCLUSIVE, "no packet arrived to count by")
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
        note += "; so few packets would not show that none is lost"
    return Figure(path, "loss", "1", link.loss, lost / sent, least / sent, most / sent, verdict, note)


def _losses(sent: int, share: float) -> tuple[float, float]:
    """The fewest and the most losses that a link which loses as asked has, but for ``LOSS_LEVEL`` either way."""
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
"""How long to wait for the last answers, in addition to the link's delay: a guest on a busy machine may stand still for most
of a second."""
_TERMINATE = 15


def train_figures(ends: Ends, topology: Topology, bed: Bed, stage: Stage) -> list[Figure]:
    """Measures delay, jitter and loss of a pair."""
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
    there, back = f"{ends.client} to {ends.server}", f"{ends.server} to {ends.client}"
    figures = []
    if link.delay is not None:
        figures.append(judge_delay(f"{ends.client} and {ends.server}", train, link))
    if link.jitter is not None:
        shortest_s = min(train.round_trips_s, default=None)
        for path, delays_s in ((there, train.there_s), (back, train.back_s)):
            figures.append(judge_jitter(path, delays_s, link, shortest_s))
    if link.loss is not None:
        for path, counts, one, two in zip((there, back), (train.there, train.back), before, after, strict=True):
            dropped = None if one is None or two is None else (two[0] - one[0], sum(two) - sum(one))
            figures.append(judge_loss(path, counts, dropped, link))
    return figures


def pace(topology: Topology) -> tuple[int, float]:
    """How many packets to send, and the seconds between them, so that the slowest link on their way carries them easily."""
    link, packets = topology.link, 150
    if link.jitter is not None:
        packets = 400
    if link.loss is not None:
        packets = max(packets, min(2000, round(20 / link.loss)))
    interval_s = 0.002 if link.loss is None else 0.001
    slowest = min((rate for rate in (link.rate, topology.uplink) if rate is not None), default=math.inf)
    return packets, max(interval_s, _FRAME_BYTES * 8 / (_SHARE * slowest))


def read_train(report: bytes, interval_s: float) -> Train:
    """Reads irtt's JSON. The train is empty where no packet came back. Raises ValueError, KeyError or TypeError for other
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
