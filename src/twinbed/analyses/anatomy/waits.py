"""Timers that requests met: which timer ended a wait, on which host, and in which step.

In: the table ``step_waits``, a row for each wait and link (kind, from, end_ns, wait_ns; rules and sources: the core's
``readers/http/waits``).  A host's timers are read at its own link, where a repeated packet is visible.  If only the client's
link was captured, the server's timers are those visible there.

Steps include their waits.  A delayed acknowledgment alone delays nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from twinbed.analyses.anatomy.steps import HANDSHAKE, NAMES, STEPS, Requests, Seen, Stations, packet_times

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {
    "retransmission_timeout": "retransmission timeout",
    "tail_loss_probe": "tail loss probe",
    "fast_retransmission": "fast retransmission",
    "nagle": "Nagle with a delayed acknowledgment",
    "delayed_acknowledgment": "delayed acknowledgment",
}
AFTER = "after"
"""In no step: after the end of the request, such as a FIN that is sent again."""
_FOLLOWING: Mapping[Seen, Mapping[str, Sequence[tuple[str, str]]]] = {
    Seen.APART: {
        "client": (
            *(("syn_ns", "handshake"), ("syn_ack_ns", "ask"), ("request_ns", "path")),
            *(("response_ns", "transfer"), ("response_end_ns", "finish"), ("end_ns", AFTER)),
        ),
        "server": (
            *(("syn_ns", "accept"), ("syn_ack_ns", "handshake"), ("request_ns", "path"), ("request_end_ns", "server")),
            *(("response_ns", "transfer"), ("response_end_ns", "finish")),
        ),
    },
    Seen.CLIENT: {
        "client": (
            *(("syn_ns", "handshake"), ("syn_ack_ns", "ask"), ("request_ns", "answer")),
            *(("response_ns", "transfer"), ("response_end_ns", "finish"), ("end_ns", AFTER)),
        ),
    },
}
"""Without one clock for both links: station of a link -> the step that follows it."""

Place: TypeAlias = tuple[str, str, str]
"""(kind, client or server, step)"""


@dataclass(frozen=True, slots=True)
class Counts:
    """The waits of one run."""

    requests: int
    met: Mapping[Place, int]
    """Requests with such a wait."""
    seconds: Mapping[Place, tuple[float, ...]]
    """The length of each wait."""


@dataclass(frozen=True, slots=True)
class Timer:
    """Waits of one kind in one step, on one testbed and cell."""

    kind: str
    whose: str
    step: str
    share: float
    """The share of requests: the mean over runs of each run's share."""
    waits: int
    mean_s: float
    """The mean wait over all runs."""

    @property
    def place(self) -> Place:
        """Return the timer's kind, host and step."""
        return self.kind, self.whose, self.step


def counted(client: pa.Table, server: pa.Table | None, requests: Requests, waits: Mapping[str, pa.Table], seen: Seen) -> Counts:
    """Count the waits of the requests of one client's link. ``waits``: client or server -> its rows of ``step_waits``."""
    places = {name: at for at, name in enumerate(zip(*(client[name].to_pylist() for name in NAMES), strict=True))}
    kept = set(requests.rows.tolist())
    times = packet_times(client, None if seen is Seen.CLIENT else server)
    met: dict[Place, set[int]] = defaultdict(set)
    seconds: dict[Place, list[float]] = defaultdict(list)
    for link, table in waits.items():
        for row in table.to_pylist():
            at = places.get(tuple(row[name] for name in NAMES))
            if at is None or at not in kept or (seen is not Seen.CLIENT and row["from"] != link):
                continue
            place = row["kind"], row["from"], _step(times, at, link, row["end_ns"], seen)
            met[place].add(at)
            seconds[place].append(row["wait_ns"] * 1e-9)
    by_place = {place: tuple(waited_s) for place, waited_s in seconds.items()}
    return Counts(len(requests), {place: len(exchanges) for place, exchanges in met.items()}, by_place)


def _step(times: Stations, at: int, link: str, ns: int, seen: Seen) -> str:
    """Return the step of a wait that ended at ``ns`` by the link's clock."""
    name = AFTER
    if seen is not Seen.BOTH:
        for station, following in _FOLLOWING[seen][link]:
            station_times = times[link, station]
            if station_times.known[at] and station_times.ns[at] < ns:
                name = following
        return name
    opens = times["client", "syn_ns"].known[at]
    for step in STEPS[seen]:
        ((_, begin_link, begin, end_link, end),) = step.parts
        first, last = times[begin_link, begin].ns[at], times[end_link, end].ns[at]
        if first < ns <= last and (opens or step.name not in HANDSHAKE):
            name = step.name
    return name


def together(links: Sequence[Counts]) -> Counts:
    """Return the counts of several links of a run as one."""
    met, seconds = Counter[Place](), dict[Place, tuple[float, ...]]()
    for counts in links:
        met.update(counts.met)
        for place, waits in counts.seconds.items():
            seconds[place] = (*seconds.get(place, ()), *waits)
    return Counts(sum(counts.requests for counts in links), dict(met), seconds)


def timers(runs: Sequence[Counts]) -> tuple[Timer, ...]:
    """Return timers, those that most requests met first."""
    places = {place for counts in runs for place in counts.met}
    return tuple(sorted(_timers(places, runs), key=lambda counts: (-counts.share, counts.kind, counts.whose, counts.step)))


def _timers(places: set[Place], runs: Sequence[Counts]) -> Iterator[Timer]:
    for place in places:
        share = sum(counts.met.get(place, 0) / counts.requests for counts in runs) / len(runs)
        waits = [seconds for counts in runs for seconds in counts.seconds.get(place, ())]
        yield Timer(*place, share, len(waits), sum(waits) / len(waits))
