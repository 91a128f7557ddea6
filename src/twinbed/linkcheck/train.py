"""A train of packets that a link carries easily (irtt): delay, jitter and loss."""

from __future__ import annotations

import math

from twinbed.contracts.bed import Bed
from twinbed.contracts.command import Command, Ready
from twinbed.hosts.stage import Stage
from twinbed.linkcheck import judge_delay
from twinbed.linkcheck.ends import Ends, passed_and_dropped
from twinbed.linkcheck.judge_delay import Train
from twinbed.links.network import understood
from twinbed.model.json import loads
from twinbed.model.linkcheck import Figure
from twinbed.model.topology import Topology

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
        figures.append(judge_delay.judge_delay(f"{ends.client} and {ends.server}", train, link))
    if link.jitter is not None:
        shortest_s = min(train.round_trips_s, default=None)
        for path, delays_s in ((there, train.there_s), (back, train.back_s)):
            figures.append(judge_delay.judge_jitter(path, delays_s, link, shortest_s))
    if link.loss is not None:
        for path, counts, one, two in zip((there, back), (train.there, train.back), before, after, strict=True):
            dropped = None if one is None or two is None else (two[0] - one[0], sum(two) - sum(one))
            figures.append(judge_delay.judge_loss(path, counts, dropped, link))
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
