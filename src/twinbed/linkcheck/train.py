"""A train of packets that a link carries easily (irtt): delay, jitter and loss."""

from __future__ import annotations

import json
import math

from twinbed.contracts.plugin import Bed, Command, Ready
from twinbed.hosts.stage import Stage
from twinbed.linkcheck import judge_delay
from twinbed.linkcheck.ends import Ends, qdiscs
from twinbed.linkcheck.judge_delay import Train
from twinbed.links.network import understood
from twinbed.model.linkcheck import Figure
from twinbed.model.topology import Topology

_PORT = 2113
_LIMIT_S = 30.0
_MOST_S = 3.0
_FRAME_BYTES = 106
_SHARE = 0.1
"""Of the rate: what the train takes at most."""
_WAIT_S = 1.0
"""For the last answers, beside what the link delays them: a guest on a busy machine may stand still for most of a second."""
_TERMINATE = 15


def train_figures(ends: Ends, topology: Topology, bed: Bed, stage: Stage) -> list[Figure]:
    """Delay, jitter and loss."""
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
    before = [_emulator(*at, bed) for at in ends.emulators]
    said = bed.hosts[ends.client].run(ask, limit_s=_LIMIT_S).stdout
    after = [_emulator(*at, bed) for at in ends.emulators]
    stage.stop(server)
    with understood(bed.hosts[ends.client]):
        found = read_train(said, interval_s)
    there, back = f"{ends.client} to {ends.server}", f"{ends.server} to {ends.client}"
    figures = []
    if link.delay is not None:
        figures.append(judge_delay.judge_delay(f"{ends.client} and {ends.server}", found, link))
    if link.jitter is not None:
        shortest_s = min(found.round_trips_s, default=None)
        for path, delays_s in ((there, found.there_s), (back, found.back_s)):
            figures.append(judge_delay.judge_jitter(path, delays_s, link, shortest_s))
    if link.loss is not None:
        for path, counts, one, two in zip((there, back), (found.there, found.back), before, after, strict=True):
            dropped = None if one is None or two is None else (two[0] - one[0], sum(two) - sum(one))
            figures.append(judge_delay.judge_loss(path, counts, dropped, link))
    return figures


def pace(topology: Topology) -> tuple[int, float]:
    """How many packets, and seconds from one to the next: what the slowest on their way carries easily."""
    link, packets = topology.link, 150
    if link.jitter is not None:
        packets = 400
    if link.loss is not None:
        packets = max(packets, min(2000, round(20 / link.loss)))
    interval_s = 0.002 if link.loss is None else 0.001
    slowest = min((rate for rate in (link.rate, topology.uplink) if rate is not None), default=math.inf)
    return packets, max(interval_s, _FRAME_BYTES * 8 / (_SHARE * slowest))


def _emulator(place: str, device: str, bed: Bed) -> tuple[int, int] | None:
    """Packets that netem on a device let pass, and dropped, so far; None where there is none."""
    found = [entry for entry in qdiscs(bed.hosts[place], device) if entry["kind"] == "netem"]
    return (int(found[0]["packets"]), int(found[0]["drops"])) if found else None


def read_train(said: bytes, interval_s: float) -> Train:
    """From irtt's JSON; empty where no packet came back. Raises ValueError, KeyError or TypeError where it is none."""
    data = json.loads(said)
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
