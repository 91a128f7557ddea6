"""The parts of the steps on hosts: which time the program uses, which the kernel uses, and which is a wait.

A step of a host lies between two packets at its link.  Its parts lie between the stations at which the instrument ``stations``
saw the same bytes, so they add up to the step exactly.  A request without one of the stations has no parts of that step, and is
counted.

A host with a clock of its own is aligned with the captures by the offset that its packets bound (``stations.offset``).  Only
the two parts from the link to a station of the host have the error of that offset, with opposite signs.  All other parts, and
the step, are free of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from twinbed.analyses.anatomy import stations
from twinbed.analyses.anatomy.stations import NO_OFFSET, Host, Offset
from twinbed.analyses.anatomy.steps import HANDSHAKE, STEPS, Requests, Seconds, Seen, Times, column, packet_times

if TYPE_CHECKING:
    import pyarrow as pa


class Group(StrEnum):
    """Whose time a part is."""

    PROGRAM = "program"
    WAITING = "waiting to be run"
    KERNEL_IN = "kernel in"
    KERNEL_OUT = "kernel out"
    WIRE = "wire and switch"
    TRANSFER = "first byte to last byte"
    """Path and server at once: their shares depend on what is in flight."""


@dataclass(frozen=True, slots=True)
class Part:
    """From one station to another of the same host; LINK is the capture."""

    name: str
    title: str
    group: Group
    begins: str
    ends: str

    @property
    def crosses(self) -> bool:
        """Return whether the part spans two clocks, if the host has its own."""
        return LINK in (self.begins, self.ends)


LINK = "link"
_IN = (
    Part("softirq", "link to softirq", Group.KERNEL_IN, LINK, "softirq"),
    Part("socket", "softirq to socket", Group.KERNEL_IN, "softirq", "socket"),
    Part("wake", "in the socket until its thread wakes", Group.WAITING, "socket", "wake"),
)
_OUT = (
    Part("send", "call entered until queued", Group.KERNEL_OUT, "write", "qdisc"),
    Part("qdisc", "queued until handed to the driver", Group.KERNEL_OUT, "qdisc", "driver"),
    Part("driver", "driver to link", Group.KERNEL_OUT, "driver", LINK),
)
_AT_TAP = (*_OUT[:1], Part("qdisc", "queued until captured", Group.KERNEL_OUT, "qdisc", LINK))
"""For hosts that capture their own packets: packets are captured before the driver."""
_READ = Part("read", "its thread reads it", Group.PROGRAM, "wake", "read")
_ACCEPT = (
    _IN[0],
    Part("answer", "softirq until the SYN-ACK is queued", Group.KERNEL_IN, "softirq", "qdisc"),
)


def _parts(out: Sequence[Part]) -> dict[str, Sequence[Part]]:
    runs = Part("program", "the program", Group.PROGRAM, "read", "write")
    return {
        "accept": (*_ACCEPT, *out[1:]),
        "ask": (*_IN, Part("program", "the program", Group.PROGRAM, "wake", "write"), *out),
        "server": (*_IN, _READ, runs, *out),
        "finish": (*_IN, _READ, runs, *out),
    }


PARTS: Mapping[Seen, Mapping[str, Sequence[Part]]] = {
    Seen.BOTH: _parts(_OUT),
    Seen.APART: _parts(_AT_TAP),
    Seen.CLIENT: {},
}
"""Step -> its parts, in the order of time."""
WHOSE = {"accept": "server", "ask": "client", "server": "server", "finish": "client"}


def name(step: str, part: Part) -> str:
    """Return the name of a part in results: ``server.wake``."""
    return f"{step}.{part.name}"


def titles(seen: Seen) -> dict[str, str]:
    """Return part -> its title."""
    return {name(step, part): part.title for step, parts in PARTS[seen].items() for part in parts}


def groups(seen: Seen, *, of_parts: bool = False) -> dict[str, Group]:
    """Return part -> its group, and (without ``of_parts``) step without parts -> its group."""
    by_part = {name(step, part): part.group for step, parts in PARTS[seen].items() for part in parts}
    if of_parts:
        return by_part
    return by_part | {
        step.name: Group.TRANSFER if step.name == "transfer" else Group.WIRE
        for step in STEPS[seen]
        if step.name not in PARTS[seen]
    }


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of one run's requests on one link: arrays as long as the requests."""

    seconds: Mapping[str, Seconds]
    """Part -> its time, NaN where unknown. A step's parts are all known, or none is."""
    whole: Mapping[str, Seconds]
    """Group -> its time in a request, NaN where one of its steps has no parts."""
    bounds: Mapping[str, float]
    """Part -> the largest error of its time from hosts' clocks."""
    incomplete: int
    """Requests with a step that has no parts, since a station is missing."""
    disordered: int
    """Requests among these that have all stations, one of them before the station that it follows."""
    unbounded: int
    """Hosts whose clock offset is not bounded by packets."""


def split(client: pa.Table, server: pa.Table, requests: Requests, hosts: Mapping[str, Host], seen: Seen) -> Split:
    """Split requests into parts. ``hosts``: client and server -> its records. Tables as ``steps.requests`` takes them."""
    rows = requests.rows
    times = {
        key: Times(column_times.ns[rows], column_times.known[rows])
        for key, column_times in packet_times(client, server).items()
    }
    seen_at, ends = _seen_at(client, rows, hosts, times)
    opens = times["client", "syn_ns"].known
    offsets = _offsets(seen_at, ends, hosts, seen)
    seconds: dict[str, Seconds] = {}
    bounds: dict[str, float] = {}
    whole = np.ones(len(rows), bool)
    disordered = np.zeros(len(rows), bool)
    for step, parts in PARTS[seen].items():
        offset = offsets[WHOSE[step]]
        known, durations = _durations(parts, seen_at[step], ends[step], offset)
        if step in HANDSHAKE:
            # A request on an open connection has no handshake.
            durations = [np.where(opens, duration, 0.0) for duration in durations]
            known = known | ~opens
        negative = np.any([duration < 0 for duration in durations], axis=0)
        disordered |= known & negative
        known = known & ~negative
        whole &= known
        for part, duration in zip(parts, durations, strict=True):
            seconds[name(step, part)] = np.where(known, duration, np.nan)
            bounds[name(step, part)] = offset.bound_s if offset is not None and part.crosses else 0.0
    return Split(
        seconds,
        _by_group(seconds | dict(requests.durations), whole, seen),
        bounds,
        incomplete=int((~whole).sum()),
        disordered=int(disordered.sum()),
        unbounded=sum(offset_known is None for offset_known in offsets.values()),
    )


def _by_group(seconds: Mapping[str, Seconds], whole: npt.NDArray[np.bool_], seen: Seen) -> dict[str, Seconds]:
    sums: dict[str, Seconds] = {}
    for step, group in groups(seen).items():
        sums[group] = sums.get(group, 0.0) + seconds[step]
    return {group: np.where(whole, sums[group], np.nan) for group in Group if group in sums}


def _durations(
    parts: Sequence[Part], at: Mapping[str, Times], links: tuple[Times, Times], offset: Offset | None
) -> tuple[npt.NDArray[np.bool_], list[Seconds]]:
    """Return which requests have all parts, and how long each takes."""
    first, last = links
    known = first.known & last.known
    durations = list[Seconds]()
    for part in parts:
        begin, end = (_on_captures(at[station], offset) if station != LINK else None for station in (part.begins, part.ends))
        begin, end = begin or first, end or last
        known = known & begin.known & end.known
        durations.append(((end.ns - begin.ns) * 1e-9).astype(np.float64))
    return known & (offset is not None), durations


def _on_captures(times: Times, offset: Offset | None) -> Times:
    return times if offset is None or offset is NO_OFFSET else Times(times.ns - offset.at(times.ns), times.known)


def _seen_at(
    client: pa.Table, rows: npt.NDArray[np.int64], hosts: Mapping[str, Host], times: Mapping[tuple[str, str], Times]
) -> tuple[dict[str, dict[str, Times]], dict[str, tuple[Times, Times]]]:
    """Return step -> station -> its time by the host's clock, and step -> the times of the packets at its ends."""
    own = hosts["client"].connections("client", "server", client)
    next_bytes = _next_sequences(client, own)
    asked, ended, answered, done = (
        column(client, column_name)
        for column_name in ("request_sequence", "request_end_sequence", "response_sequence", "response_end_sequence")
    )
    own, other = own[rows], hosts["server"].connections("server", "client", client.take(rows))
    first, last, head, tail = (of_byte.ns[rows] for of_byte in (asked, ended, answered, done))
    came = stations.came(hosts["server"], other, last - 1)
    back = stations.came(hosts["client"], own, tail - 1)
    goes_on = times["client", "next_ns"].known
    again = stations.went(hosts["client"], own, next_bytes[rows])
    closes = stations.closed(hosts["client"], own, back["read"])
    leaves = {
        station: again[station]
        .only(next_bytes[rows] >= 0)
        .where(goes_on, closes[station].only(times["client", "client_fin_ns"].known))
        for station in again
    }
    at = {
        "accept": stations.accepted(hosts["server"], other, came["socket"]),
        "ask": stations.opened(hosts["client"], own, first),
        "server": came | stations.went(hosts["server"], other, head),
        "finish": back | leaves,
    }
    links = {
        "accept": (times["server", "syn_ns"], times["server", "syn_ack_ns"]),
        "ask": (times["client", "syn_ack_ns"], times["client", "request_ns"]),
        "server": (times["server", "request_end_ns"], times["server", "response_ns"]),
        "finish": (times["client", "response_end_ns"], times["client", "end_ns"]),
    }
    return at, links


def _next_sequences(client: pa.Table, connection: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return for each row the first sequence number of the connection's next request, -1 if there is none."""
    asked, begins, follows = (column(client, column_name).ns for column_name in ("request_sequence", "request_ns", "next_ns"))
    order = np.lexsort((begins, connection))
    following = np.full(len(order), -1)
    here, after = order[:-1], order[1:]
    is_next = (connection[here] == connection[after]) & (connection[here] >= 0) & (begins[after] == follows[here])
    following[here[is_next]] = asked[after[is_next]]
    return following


def _offsets(
    at: Mapping[str, Mapping[str, Times]],
    links: Mapping[str, tuple[Times, Times]],
    hosts: Mapping[str, Host],
    seen: Seen,
) -> dict[str, Offset | None]:
    """Return host -> its clock less the captures'. Hosts that capture their own packets use their own clock."""
    offsets: dict[str, Offset | None] = {}
    for role, host in hosts.items():
        own = [step for step, whose in WHOSE.items() if whose == role]
        if seen is Seen.APART or not host.own_clock:
            offsets[role] = NO_OFFSET
            continue
        incoming = [(links[step][0], at[step]["softirq"]) for step in own]
        outgoing = [(links[step][1], at[step]["driver"]) for step in own]
        offsets[role] = stations.offset(incoming, outgoing)
    return offsets


def hosts_of(rows: pa.Table, connections: pa.Table, probes: pa.Table) -> dict[str, dict[str, Host]]:
    """Return run -> host -> its records. Tables as the instrument ``stations`` gives them, of all runs."""
    if not rows.num_rows:
        return {}
    own = {(probe["run"], probe["host"]): probe["clock"] == "own" for probe in probes.to_pylist()}
    of_rows, of_connections = _by_host(rows), _by_host(connections)
    hosts: dict[str, dict[str, Host]] = {}
    for (run, host), own_clock in own.items():
        if (run, host) in of_rows and (run, host) in of_connections:
            tables = of_rows[run, host], of_connections[run, host]
            hosts.setdefault(run, {})[host] = Host(*tables, own_clock=own_clock)
    return hosts


def _by_host(table: pa.Table) -> dict[tuple[str, str], pa.Table]:
    keys = [table[column_name].cast("string").combine_chunks().dictionary_encode() for column_name in ("run", "host")]
    values = [key.dictionary.to_pylist() for key in keys]
    first, second = (np.asarray(key.indices, dtype=np.int64) for key in keys)
    codes = first * len(values[1]) + second
    order = np.argsort(codes, kind="stable")
    unique, starts = np.unique(codes[order], return_index=True)
    bounds = [*starts.tolist(), len(codes)]
    ordered = table.take(order)
    return {
        (values[0][code // len(values[1])], values[1][code % len(values[1])]): ordered.slice(start, end - start)
        for code, start, end in zip(unique.tolist(), bounds[:-1], bounds[1:], strict=True)
    }
