"""Join the records of one host's kernel and programs (instrument ``stations``) to requests, by connection and sequence number.

A packet is found by its connection and a byte that it holds.  A call is found by the bytes that it moved: copied_seq after a
read, or write_seq after a write, with the number of bytes.  Nothing is joined by nearness in time, so concurrent connections
cannot be confused.  A record that is not found is unknown.

When does a thread reach the data in a socket?  When its first waiting call since then returns; if it waited in the read itself,
when the read returns; if it was busy with something else, when it enters the read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from twinbed.analyses.anatomy.steps import Times
from twinbed.statistics.two_clocks import straight

if TYPE_CHECKING:
    import pyarrow as pa

SYN, FIN = 0x02, 0x01
"""TCP's flags (RFC 9293, 3.1)."""
MODULUS = 1 << 32
OUT, IN = ("qdisc", "driver"), ("softirq", "socket")


class Host:
    """One host's records in one run."""

    def __init__(self, rows: pa.Table, connections: pa.Table, *, own_clock: bool) -> None:
        self.own_clock = own_clock
        ends = ("own_address", "own_port", "other_address", "other_port")
        self._numbers = {
            end: number
            for number, *end_list in zip(
                connections["connection"].to_pylist(), *(connections[name].to_pylist() for name in ends), strict=True
            )
            for end in (tuple(end_list),)
        }
        ordered = rows.sort_by("time_ns")
        names = ordered["station"].cast("string").to_numpy()
        column = {
            name: np.asarray(ordered[name].combine_chunks().fill_null(-1), dtype=np.int64)
            for name in ("connection", "time_ns", "end_ns", "sequence", "bytes", "flags", "thread")
        }
        self._of = {name: _Rows.of({key: values[names == name] for key, values in column.items()}) for name in set(names)}

    def connections(self, own: str, other: str, steps: pa.Table) -> npt.NDArray[np.int64]:
        """Return the connection of each row of ``steps``, -1 where there is none; own and other are client and server."""
        names = (f"{own}_address", f"{own}_port", f"{other}_address", f"{other}_port")
        keys = zip(*(steps[name].to_pylist() for name in names), strict=True)
        return np.array([self._numbers.get(key, -1) for key in keys], dtype=np.int64)

    def of(self, station: str) -> _Rows:
        return self._of.get(station, _NOTHING)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one station, by time."""

    connection: npt.NDArray[np.int64]
    time_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    sequence: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    flags: npt.NDArray[np.int64]
    thread: npt.NDArray[np.int64]

    @classmethod
    def of(cls, columns: Mapping[str, npt.NDArray[np.int64]]) -> _Rows:
        return cls(**columns)

    def only(self, kept: npt.NDArray[np.bool_]) -> _Rows:
        return _Rows(*(getattr(self, name)[kept] for name in self.__slots__))

    def __len__(self) -> int:
        return len(self.time_ns)

    def times(self, at: npt.NDArray[np.int64]) -> Times:
        return _picked(self.time_ns, at)

    def ends(self, at: npt.NDArray[np.int64]) -> Times:
        return _picked(self.end_ns, at)

    def threads(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.where(at >= 0, _picked(self.thread, at).ns, -1)

    def holding(
        self, connection: npt.NDArray[np.int64], byte: npt.NDArray[np.int64], *, after: bool = False
    ) -> npt.NDArray[np.int64]:
        """Return for each pair the first row of the connection that holds the byte with that sequence number, -1 if none does.
        ``after``: a row's sequence number is that after its bytes."""
        moved = self.bytes > 0
        rows = np.flatnonzero(moved)
        if not len(rows):
            return np.full(len(byte), -1)
        start = (self.sequence[rows] - (self.bytes[rows] if after else 0)) % MODULUS
        keys = self.connection[rows] * MODULUS + start
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
        byte = byte % MODULUS

        def at(most: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            """Return the row that begins last, up to that number; the first of packets that were sent again."""
            last = np.searchsorted(keys, connection * MODULUS + most, side="right") - 1
            first = np.searchsorted(keys, keys[np.maximum(last, 0)], side="left")
            begins = rows[first]
            holds = (last >= 0) & (connection >= 0) & (self.connection[begins] == connection)
            return np.where(holds & ((byte - start[order][first]) % MODULUS < self.bytes[begins]), begins, -1)

        holder = at(byte)
        # Numbers wrap: the row that begins last of all may continue at 0.
        return np.where(holder >= 0, holder, at(np.full(len(byte), MODULUS - 1)))

    def next_of(
        self, owner: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64], from_ns: Times, times: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return for each pair the owner's first row at or after a time, -1 if there is none. ``owner`` and ``times`` have a
        value for each row."""
        return self._neighbour(owner, wanted, from_ns, times, step=0)

    def last_of(
        self, owner: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64], until_ns: Times, times: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return, as ``next_of``, the last row before that time."""
        return self._neighbour(owner, wanted, until_ns, times, step=-1)

    def _neighbour(
        self, owner: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64], at: Times, times: npt.NDArray[np.int64], step: int
    ) -> npt.NDArray[np.int64]:
        if not len(self):
            return np.full(len(wanted), -1)
        # Sort an owner's rows together, by time; a time is its rank among all.
        order = np.lexsort((times, owner))
        ranks = np.sort(times)
        stride = len(times) + 1
        keys = owner[order] * stride + np.searchsorted(ranks, times[order], side="left")
        place = np.searchsorted(keys, wanted * stride + np.searchsorted(ranks, at.ns, side="left"), side="left") + step
        inside = (place >= 0) & (place < len(keys)) & at.known & (wanted >= 0)
        nearest = order[np.clip(place, 0, len(keys) - 1)]
        return np.where(inside & (owner[nearest] == wanted), nearest, -1)


def _picked(values: npt.NDArray[np.int64], at: npt.NDArray[np.int64]) -> Times:
    if not len(values):
        return Times(np.zeros(len(at), np.int64), np.zeros(len(at), bool))
    return Times(values[np.maximum(at, 0)], at >= 0)


_EMPTY = np.zeros(0, np.int64)
_NOTHING = _Rows(*(_EMPTY for _ in range(7)))


def came(host: Host, connection: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> dict[str, Times]:
    """Return the times of incoming data, up to the byte ``last``: softirq, socket, wake, read (when it returned)."""
    at = {name: host.of(name).holding(connection, last) for name in IN}
    reads = host.of("read")
    read = reads.holding(connection, last, after=True)
    softirq, socket = (host.of(name).times(at[name]) for name in IN)
    entered, done = reads.times(read), reads.ends(read)
    woke = _woke(host, reads.threads(read), socket, done)
    # The thread waited in the read itself, or was busy.
    itself = done.where(entered.ns <= socket.ns, entered)
    return {"softirq": softirq, "socket": socket, "wake": woke.where(woke.known, itself).only(done.known), "read": done}


def _woke(host: Host, thread: npt.NDArray[np.int64], since: Times, until: Times) -> Times:
    """Return the thread's first return from a waiting call, after ``since`` and up to ``until``."""
    waits = host.of("wait")
    at = waits.next_of(waits.thread, thread, since, waits.end_ns)
    ended = waits.ends(at)
    return ended.only(ended.ns <= until.ns)


def went(host: Host, connection: npt.NDArray[np.int64], first: npt.NDArray[np.int64]) -> dict[str, Times]:
    """Return the times of outgoing data from the byte ``first``: write (when it was entered), qdisc, driver."""
    writes = host.of("write")
    write = writes.times(writes.holding(connection, first, after=True))
    return {"write": write} | {name: host.of(name).times(host.of(name).holding(connection, first)) for name in OUT}


def opened(host: Host, connection: npt.NDArray[np.int64], first: npt.NDArray[np.int64]) -> dict[str, Times]:
    """Return a client's times before its first byte: softirq and socket (of the SYN-ACK), wake, write, qdisc, driver."""
    out = went(host, connection, first)
    answers = {name: _flagged(host, name, SYN) for name in IN}
    times = {
        name: rows.times(rows.last_of(rows.connection, connection, out["write"], rows.time_ns))
        for name, rows in answers.items()
    }
    writes, connects = host.of("write"), host.of("connect")
    thread = writes.threads(writes.holding(connection, first, after=True))
    woke = _woke(host, thread, times["socket"], out["write"])
    blocking = connects.ends(connects.last_of(connects.connection, connection, out["write"], connects.end_ns))
    blocking = blocking.only(blocking.ns >= times["socket"].ns)
    itself = blocking.where(blocking.known, out["write"])
    return times | {"wake": woke.where(woke.known, itself)} | out


def accepted(host: Host, connection: npt.NDArray[np.int64], until: Times) -> dict[str, Times]:
    """Return a server's times before its socket took the request: softirq (of the SYN), qdisc and driver (of the SYN-ACK)."""
    stations = {name: _flagged(host, name, SYN) for name in ("softirq", *OUT)}
    return {name: rows.times(rows.last_of(rows.connection, connection, until, rows.time_ns)) for name, rows in stations.items()}


def closed(host: Host, connection: npt.NDArray[np.int64], since: Times) -> dict[str, Times]:
    """Return a client's times after it read the answer: write (when it entered the close), qdisc and driver (of the FIN)."""
    closes = host.of("close")
    entered = closes.times(closes.next_of(closes.connection, connection, since, closes.time_ns))
    times = {"write": entered}
    for name in OUT:
        rows = _flagged(host, name, FIN)
        times[name] = rows.times(rows.next_of(rows.connection, connection, entered, rows.time_ns))
    return times


def _flagged(host: Host, station: str, flag: int) -> _Rows:
    rows = host.of(station)
    return rows.only(rows.flags & flag != 0)


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a host's clock is ahead of the captures', as packets bound it."""

    base_ns: int
    """A time by the host's clock."""
    offset_s: float
    """The offset at ``base_ns``."""
    drift: float
    """Seconds for each second of the captures' clock."""
    bound_s: float
    """The largest possible error."""

    def at(self, ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how far it is ahead in whole nanoseconds, at times of the host's clock."""
        captures_s = (ns - self.base_ns) * 1e-9 / (1 + self.drift)
        ahead = self.offset_s + self.drift * captures_s
        whole: npt.NDArray[np.int64] = np.rint(ahead * 1e9).astype(np.int64)
        return whole


NO_OFFSET = Offset(0, 0.0, 0.0, 0.0)


def offset(incoming: list[tuple[Times, Times]], outgoing: list[tuple[Times, Times]]) -> Offset | None:
    """Return a host's clock less the captures'; None if packets do not bound it. Pairs are (captured, seen by the host).

    A packet leaves the driver before it is captured, and reaches the softirq after (statistics/two_clocks)."""
    base, ahead = None, 0
    arrays: list[list[npt.NDArray[np.float64]]] = [[], [], [], []]
    for way, pairs in enumerate((incoming, outgoing)):
        for captured, seen in pairs:
            both = captured.known & seen.known
            link, host = captured.ns[both], seen.ns[both]
            if not len(link):
                continue
            if base is None:
                base, ahead = int(link[0]), int(host[0] - link[0])
            # Subtract the first difference, so that floats are exact to the nanosecond.
            apart = ((host - link - ahead) * 1e-9).astype(np.float64)
            at = ((link - base) * 1e-9).astype(np.float64)
            arrays[2 * way].append(at)
            arrays[2 * way + 1].append(apart if way == 0 else -apart)
    if base is None or not all(arrays):
        return None
    line = straight(*(np.concatenate(array) for array in arrays))
    if line is None:
        return None
    base_of_host_ns = base + ahead + round(line.offset_s * 1e9)
    return Offset(base_of_host_ns, line.offset_s + ahead * 1e-9, line.drift, line.bound_s)
