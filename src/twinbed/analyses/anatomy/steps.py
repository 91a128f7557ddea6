"""The steps of a request, from the stations that captures show.  Uses numpy alone.

A station is a packet seen at the client's link or at the server's.  Steps lie between consecutive stations, so they add up to
the time from a request's first packet to its end.  If both links were captured by one clock, each station has its place.  If
each host has its own clock, a step from one host to the other would contain the difference of the clocks.  Ways there and back
are then added, so that it cancels: no step depends on how well the clocks agree.  If only the client's link was captured,
everything behind it is one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Seconds: TypeAlias = npt.NDArray[np.float64]
"""A row an exchange; NaN where unknown."""
NAMES = ("client_address", "client_port", "server_address", "server_port", "request_sequence")
"""The columns that identify an exchange in both captures."""
ENDS = ("next_ns", "client_fin_ns", "server_fin_ns", "reset_ns")
"""The possible ends of a request; the first that is known counts."""


class Seen(StrEnum):
    """Which captures there are of a request, and by whose clocks."""

    BOTH = "both"
    """At both links, by one clock."""
    APART = "apart"
    """At both links, by two clocks."""
    CLIENT = "client"
    """At the client's link alone."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. The times of its parts are added, or subtracted where the sign is -1."""

    name: str
    title: str
    where: str
    """client, path or server: whose time it is."""
    parts: tuple[tuple[int, str, str, str, str], ...]
    """(sign, link, station, link, station)"""


def _between(name: str, title: str, where: str, link: str, station: str, to_link: str, to_station: str) -> Step:
    return Step(name, title, where, ((1, link, station, to_link, to_station),))


def _less(name: str, title: str, begins: str, ends: str, server_begins: str, server_ends: str) -> Step:
    """Return the step that the client's link sees, less its part behind the server's link."""
    parts = ((1, "client", begins, "client", ends), (-1, "server", server_begins, "server", server_ends))
    return Step(name, title, "path", parts)


_ACCEPT = _between("accept", "the server's kernel answers the SYN", "server", "server", "syn_ns", "server", "syn_ack_ns")
_ASK = _between("ask", "client: connected until the request is sent", "client", "client", "syn_ack_ns", "client", "request_ns")
_ANSWER = _between(
    "server", "server: request in, first byte out", "server", "server", "request_end_ns", "server", "response_ns"
)
_TRANSFER = _between("transfer", "first byte to last byte", "path", "client", "response_ns", "client", "response_end_ns")
_FINISH = _between(
    *("finish", "client: last byte until it closes or asks again", "client"),
    *("client", "response_end_ns", "client", "end_ns"),
)

STEPS: Mapping[Seen, Sequence[Step]] = {
    Seen.BOTH: (
        _between("syn", "SYN on its way", "path", "client", "syn_ns", "server", "syn_ns"),
        _ACCEPT,
        _between("syn_back", "SYN-ACK on its way", "path", "server", "syn_ack_ns", "client", "syn_ack_ns"),
        _ASK,
        _between("request", "request on its way", "path", "client", "request_ns", "server", "request_end_ns"),
        _ANSWER,
        _between("first_byte", "first byte on its way", "path", "server", "response_ns", "client", "response_ns"),
        _TRANSFER,
        _FINISH,
    ),
    Seen.APART: (
        _less("handshake", "SYN and SYN-ACK on their ways", "syn_ns", "syn_ack_ns", "syn_ns", "syn_ack_ns"),
        _ACCEPT,
        _ASK,
        _less("path", "request and first byte on their ways", "request_ns", "response_ns", "request_end_ns", "response_ns"),
        _ANSWER,
        _TRANSFER,
        _FINISH,
    ),
    Seen.CLIENT: (
        _between("handshake", "SYN to SYN-ACK", "path", "client", "syn_ns", "client", "syn_ack_ns"),
        _ASK,
        _between("answer", "request to first byte", "server", "client", "request_ns", "client", "response_ns"),
        _TRANSFER,
        _FINISH,
    ),
}
HANDSHAKE = ("syn", "accept", "syn_back", "handshake", "ask")
"""Steps that only a connection's first request has."""


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests of one run that have all their steps: arrays of one length."""

    durations: Mapping[str, Seconds]
    """Step -> seconds."""
    begins_ns: npt.NDArray[np.int64]
    """On the clock of the client's link."""
    ends_ns: npt.NDArray[np.int64]
    patterns: Sequence[str]
    incomplete: int
    """Requests that lack a step: no answer, or a packet that no capture has."""
    disordered: int
    """Requests with a step that ended before it began: an answer to half a request, or clocks that disagree."""
    rows: npt.NDArray[np.int64]
    """Their rows of the client's table."""

    @property
    def total(self) -> Seconds:
        """Return the times from the first packet to the end."""
        seconds: Seconds = np.sum(list(self.durations.values()), axis=0)
        return seconds

    def __len__(self) -> int:
        return len(self.patterns)


def requests(client: pa.Table, server: pa.Table | None, seen: Seen) -> Requests:
    """Return the steps of the requests on one link. ``client`` and ``server``: the tables ``steps`` of both ends."""
    times = packet_times(client, None if seen is Seen.CLIENT else server)
    opens = times["client", "syn_ns"].known
    whole = np.array(client["complete"].to_pylist(), dtype=object) == True  # noqa: E712 -- None is not
    known = whole & times["client", "request_ns"].known
    sound = np.ones(len(known), bool)
    durations: dict[str, Seconds] = {}
    for step in STEPS[seen]:
        seconds = np.zeros(len(known))
        has_step = np.ones(len(known), bool)
        for sign, link, station, to_link, to_station in step.parts:
            begin, to = times[link, station], times[to_link, to_station]
            seconds += sign * (to.ns - begin.ns) * 1e-9
            has_step &= begin.known & to.known
        if step.name in HANDSHAKE:
            # A request on an open connection has no handshake.
            seconds, has_step = np.where(opens, seconds, 0.0), has_step | ~opens
        known &= has_step
        sound &= ~has_step | (seconds >= 0)
        durations[step.name] = seconds
    kept = known & sound
    begins = np.where(opens, times["client", "syn_ns"].ns, times["client", "request_ns"].ns)
    patterns = client["pattern"].to_pylist()
    return Requests(
        {name: seconds[kept] for name, seconds in durations.items()},
        begins[kept],
        times["client", "end_ns"].ns[kept],
        [patterns[at] for at in np.flatnonzero(kept)],
        incomplete=int((~known).sum()),
        disordered=int((known & ~sound).sum()),
        rows=np.flatnonzero(kept),
    )


Stations: TypeAlias = dict[tuple[str, str], "Times"]
"""(link, station) -> its times, a row for each exchange of the client's table."""


def packet_times(client: pa.Table, server: pa.Table | None) -> Stations:
    """Return the time of each exchange of the client's table at each station of both links; ``end_ns``: the request's end."""
    times = {("client", name): column(client, name) for name in _COLUMNS}
    end = _first_of(*(times["client", name] for name in ENDS))
    # A pipelined request asks again or closes before the answer's end: it ends with the answer.
    times["client", "end_ns"] = Times(np.maximum(end.ns, times["client", "response_end_ns"].ns), end.known)
    if server is not None:
        at = _places(client, server)
        times |= {("server", name): _taken(column(server, name), at) for name in _COLUMNS}
    return times


_COLUMNS = (
    *("syn_ns", "syn_ack_ns", "request_ns", "request_end_ns", "response_ns", "response_end_ns"),
    *ENDS,
)


@dataclass(frozen=True, slots=True)
class Times:
    """Times since 1970 as whole nanoseconds: as floats they would be 256 ns apart."""

    ns: npt.NDArray[np.int64]
    known: npt.NDArray[np.bool_]

    def where(self, condition: npt.NDArray[np.bool_], other: Times) -> Times:
        """Return this where the condition holds, the other where not."""
        return Times(np.where(condition, self.ns, other.ns), np.where(condition, self.known, other.known))

    def only(self, condition: npt.NDArray[np.bool_]) -> Times:
        """Return these times, known only where the condition holds."""
        return Times(self.ns, self.known & condition)


def column(table: pa.Table, name: str) -> Times:
    """Return a column of whole numbers, some of them null."""
    values = table[name].combine_chunks()
    return Times(
        np.asarray(values.fill_null(0), dtype=np.int64), ~np.asarray(values.is_null().to_numpy(zero_copy_only=False), bool)
    )


def _first_of(*times: Times) -> Times:
    """Return the first known time, in the given order."""
    ns, known = times[0].ns, times[0].known
    for other in times[1:]:
        ns, known = np.where(known, ns, other.ns), known | other.known
    return Times(ns, known)


def _taken(times: Times, at: npt.NDArray[np.int64]) -> Times:
    """Return the rows at these places; -1 is none."""
    if not len(times.ns):
        return Times(np.zeros(len(at), np.int64), np.zeros(len(at), bool))
    return Times(times.ns[at], times.known[at] & (at >= 0))


def _places(client: pa.Table, server: pa.Table) -> npt.NDArray[np.int64]:
    """Return for each row of ``client`` the row of ``server`` with the same exchange, -1 if there is none."""
    rows = {name: at for at, name in enumerate(zip(*(server[name].to_pylist() for name in NAMES), strict=True))}
    return np.array(
        [rows.get(name, -1) for name in zip(*(client[name].to_pylist() for name in NAMES), strict=True)], dtype=np.int64
    )


def users(begins_ns: npt.NDArray[np.int64], ends_ns: npt.NDArray[np.int64]) -> int:
    """Return the most requests that were under way at once."""
    at = np.concatenate([begins_ns, ends_ns])
    change = np.concatenate([np.ones(len(begins_ns), int), -np.ones(len(ends_ns), int)])
    # A request that ends as another begins does not overlap it.
    order = np.lexsort((change, at))
    return int(np.cumsum(change[order]).max(initial=0))


def between_s(of_link: Requests) -> float | None:
    """Return the mean time between requests of the same client, in a closed loop; None for fewer than two requests.

    A cycle lasts the largest number of concurrent requests times the run's length over the number of requests. The part of the
    cycle without a request lies between requests."""
    if len(of_link) < 2:
        return None
    span_s = float(of_link.ends_ns.max() - of_link.begins_ns.min()) * 1e-9
    cycle_s = users(of_link.begins_ns, of_link.ends_ns) * span_s / len(of_link)
    busy_s = float((of_link.ends_ns - of_link.begins_ns).mean()) * 1e-9
    return max(0.0, cycle_s - busy_s)
