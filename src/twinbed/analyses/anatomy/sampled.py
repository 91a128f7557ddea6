"""The sampled requests of captures, packet by packet, and requests joined from the captures of both links.

``step_packets`` has a row for each packet of a sample of requests, the same requests at both ends of a path.  A packet of one
link's capture is found in the other's by its direction, kind, place in the stream, size and acknowledgment.  Several packets
that are alike (sent again, repeated acknowledgments) are matched in order.  If one of them got lost, the packet that arrived is
the latest that had been sent by then.  Where segmentation differs between the links, a packet arrives with the last of those
that carry its bytes.

Clocks: where each host has its own clock, the server's is shifted so that the fastest packet takes the same time there and
back.  Only drawings use this; no statistic depends on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from twinbed.analyses.anatomy.steps import ENDS, NAMES, STEPS, Seen

if TYPE_CHECKING:
    import pyarrow as pa

Exchange: TypeAlias = tuple[str, int, str, int, int]
"""The identity of an exchange at both links: the columns NAMES."""
PacketRow = TypedDict(
    "PacketRow",
    {
        "from": str,
        "kind": str,
        "position": int,
        "payload_bytes": int,
        "wire_packets": int,
        "acknowledges": int | None,
        "time_ns": int,
    },
)
"""The columns of ``step_packets`` that are used."""
StepRow: TypeAlias = Mapping[str, object]
"""A row of ``steps``."""
Key: TypeAlias = tuple[str, str, int, int, int | None]
DISORDER_NS = 10_000
"""Two captures of one machine may stamp a packet in the wrong order by this much."""
MOST_PACKETS = 2048
"""The packets of an exchange that the core keeps."""
_CLASSES = {"Y": "S", "E": "P", "X": "P", "Z": "F"}


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet of a request; times are in nanoseconds since the request's first packet."""

    from_client: bool
    kind: str
    """Its letter, the server's in lower case."""
    payload_bytes: int
    wire_packets: int
    """The packets on the wire that it stands for."""
    acknowledges: int | None
    client_ns: int | None
    """When the client's link saw it; None where it did not."""
    server_ns: int | None

    @property
    def sent_ns(self) -> int:
        """Return when the sender's link saw it, or the receiver's if only that did."""
        first, second = (self.client_ns, self.server_ns) if self.from_client else (self.server_ns, self.client_ns)
        known = first if first is not None else second
        assert known is not None, "one of the two saw it"
        return known

    @property
    def arrived_ns(self) -> int | None:
        """Return when the receiver's link saw it."""
        return self.server_ns if self.from_client else self.client_ns

    @property
    def was_seen_sent(self) -> bool:
        return (self.client_ns if self.from_client else self.server_ns) is not None


@dataclass(frozen=True, slots=True)
class Span:
    """One step of one request, from a packet at one link to a packet at one link."""

    step: str
    where: str
    begin_ns: int
    end_ns: int

    def holds(self, packet: Packet) -> bool:
        """Return whether the packet was sent or arrived in the span, ends included."""
        times = (packet.client_ns, packet.server_ns)
        return any(ns is not None and self.begin_ns <= ns <= self.end_ns for ns in times)


@dataclass(frozen=True, slots=True)
class Request:
    """One request with all its packets and steps."""

    seen: Seen
    packets: tuple[Packet, ...]
    """Ordered by when they were sent."""
    spans: tuple[Span, ...]
    """A step that is there and back has one span each way."""
    durations_ns: Mapping[str, int]
    """Step -> how long it took."""
    pattern: str
    is_cut: bool
    """True if there were more packets than are kept."""

    @property
    def total_ns(self) -> int:
        return sum(self.durations_ns.values())


@dataclass(frozen=True, slots=True)
class Samples:
    """Sampled requests of many links, as rows of one table that follow one another."""

    table: pa.Table
    kinds: npt.NDArray[np.uint8]
    """The letter's code of each row."""
    times_ns: npt.NDArray[np.int64]
    bounds: Mapping[tuple[str, str], Mapping[Exchange, tuple[int, int]]]
    """(run, link) -> exchange -> its first row, and the row after its last."""

    def timeline(self, link: tuple[str, str], exchange: Exchange) -> tuple[str, npt.NDArray[np.float64]]:
        """Return a letter a packet, and the seconds since the first."""
        begin, end = self.bounds[link][exchange]
        times = (self.times_ns[begin:end] - self.times_ns[begin]) * 1e-9
        return self.kinds[begin:end].tobytes().decode(), times

    def rows(self, link: tuple[str, str], exchange: Exchange) -> list[PacketRow]:
        """Return the packets of one exchange at a link."""
        begin, end = self.bounds[link][exchange]
        rows: list[PacketRow] = self.table.slice(begin, end - begin).to_pylist()
        return rows


def samples(table: pa.Table) -> Samples:
    """Return the sampled requests of the table ``step_packets``. Requests with a packet without a time are left out."""
    if not table.num_rows:
        return Samples(table, np.zeros(0, np.uint8), np.zeros(0, np.int64), {})
    times = table["time_ns"].combine_chunks()
    known = np.asarray(times.is_valid().to_numpy(zero_copy_only=False), bool)
    encoded = table["kind"].combine_chunks().dictionary_encode()
    codes = np.array([ord(kind) for kind in encoded.dictionary.to_pylist()], np.uint8)
    starts = np.flatnonzero(np.asarray(table["number"]) == 0)
    ends = np.append(starts[1:], table.num_rows)
    whole = np.logical_and.reduceat(known, starts)
    firsts = table.take(starts)
    places = zip(*(firsts[name].to_pylist() for name in ("run", "link")), strict=True)
    exchanges = zip(*(firsts[name].to_pylist() for name in NAMES), strict=True)
    bounds: dict[tuple[str, str], dict[Exchange, tuple[int, int]]] = defaultdict(dict)
    for place, exchange, begin, end, has_times in zip(places, exchanges, starts.tolist(), ends.tolist(), whole, strict=True):
        if has_times:
            bounds[place][exchange] = begin, end
    return Samples(table, codes[np.asarray(encoded.indices)], np.asarray(times.fill_null(0), np.int64), dict(bounds))


def together(captures: Sequence[pa.Table]) -> Samples:
    """Return the samples of one or two captures (the client's first) as the links of a run without a name."""
    import pyarrow as pa

    links = ("client", "server")
    named = [
        table.append_column("run", pa.array([""] * table.num_rows, pa.string())).append_column(
            "link", pa.array([link] * table.num_rows, pa.string())
        )
        for link, table in zip(links, captures, strict=False)
    ]
    return samples(pa.concat_tables(named))


def joined(
    seen: Seen, client: Sequence[PacketRow], server: Sequence[PacketRow], client_steps: StepRow, server_steps: StepRow | None
) -> Request:
    """Return one request, from its rows of ``step_packets`` and its row of ``steps`` at each link, or at the client's alone."""
    origin = client[0]["time_ns"]
    shift = origin
    if seen is Seen.CLIENT:
        server, server_steps = (), None
    elif seen is Seen.APART:
        shift = origin + _offset_ns(client, server)
    ours: list[PacketRow] = [{**row, "time_ns": row["time_ns"] - origin} for row in client]
    theirs: list[PacketRow] = [{**row, "time_ns": row["time_ns"] - shift} for row in server]
    if seen is Seen.CLIENT:
        packets = [_packet(row, row["time_ns"], None) for row in ours]
    else:
        packets = list(_packets(ours, theirs))
    packets.sort(key=lambda packet: packet.sent_ns)
    stations = {"client": _stations(client_steps, origin), "server": _stations(server_steps or {}, shift)}
    spans, durations = list[Span](), dict[str, int]()
    for step in STEPS[seen]:
        durations[step.name] = 0
        places = []
        for sign, link, begin, to_link, end in step.parts:
            first, last = stations[link].get(begin), stations[to_link].get(end)
            if first is not None and last is not None:
                durations[step.name] += sign * (last - first)
                places += [first, last]
        if len(places) == 4:  # there and back: what the client's link saw, but for what the server's did
            spans += [Span(step.name, step.where, places[0], places[2]), Span(step.name, step.where, places[3], places[1])]
        elif places:
            spans.append(Span(step.name, step.where, places[0], places[1]))
    is_cut = max(len(client), len(server)) >= MOST_PACKETS
    return Request(seen, tuple(packets), tuple(spans), durations, str(client_steps["pattern"]), is_cut)


def _stations(row: StepRow, origin: int) -> dict[str, int]:
    """Return known station -> nanoseconds since the request's first packet."""
    times = {
        name: at - origin for name, at in row.items() if name.endswith("_ns") and name != "silence_ns" and isinstance(at, int)
    }
    end = next((times[name] for name in ENDS if name in times), None)
    return times if end is None else {**times, "end_ns": max(end, times.get("response_end_ns", end))}


def _key(row: PacketRow) -> Key:
    kind = row["kind"].upper()
    return row["from"], _CLASSES.get(kind, kind), row["position"], row["payload_bytes"], row["acknowledges"]


def _grouped(rows: Sequence[PacketRow]) -> dict[Key, list[PacketRow]]:
    by_key: dict[Key, list[PacketRow]] = defaultdict(list)
    for row in rows:
        by_key[_key(row)].append(row)
    return by_key


def _offset_ns(client: Sequence[PacketRow], server: Sequence[PacketRow]) -> int:
    """Return by how much the server's clock is ahead if the fastest packet takes the same time there and back. Only packets
    seen equally often at both links are used."""
    outward, back = list[int](), list[int]()
    others = _grouped(server)
    for key, ours in _grouped(client).items():
        theirs = others.get(key, [])
        if len(ours) == len(theirs):
            ways = outward if key[0] == "client" else back
            ways += [their["time_ns"] - our["time_ns"] for our, their in zip(ours, theirs, strict=True)]
    if outward and back:
        return (min(outward) + max(back)) // 2
    return min(outward, default=0) or max(back, default=0)


def _packets(client: Sequence[PacketRow], server: Sequence[PacketRow]) -> Iterator[Packet]:
    sent = [*(row for row in client if row["from"] == "client"), *(row for row in server if row["from"] == "server")]
    received = [*(row for row in server if row["from"] == "client"), *(row for row in client if row["from"] == "server")]
    arrivals = _grouped(received)
    left = list[PacketRow]()
    pairs = list[tuple[PacketRow, int | None]]()
    for key, alike in _grouped(sent).items():
        alike_received = arrivals.pop(key, [])
        matched = _in_order(alike, alike_received)
        pairs += [(row, alike_received[matched[at]]["time_ns"]) for at, row in enumerate(alike) if at in matched]
        left += [row for at, row in enumerate(alike) if at not in matched]
        taken = set(matched.values())
        arrivals[key] = [row for at, row in enumerate(alike_received) if at not in taken]
    over = [row for rows in arrivals.values() for row in rows]
    consumed = set[int]()
    for row in left:
        pieces = [piece for piece in over if _carries(piece, row)]
        consumed |= {id(piece) for piece in pieces}
        pairs.append((row, max((piece["time_ns"] for piece in pieces), default=None)))
    for row, arrived in pairs:
        yield _packet(row, *((row["time_ns"], arrived) if row["from"] == "client" else (arrived, row["time_ns"])))
    for row in over:
        if id(row) not in consumed:  # the sender's link did not see it
            yield _packet(row, *((None, row["time_ns"]) if row["from"] == "client" else (row["time_ns"], None)))


def _in_order(sent: Sequence[PacketRow], received: Sequence[PacketRow]) -> dict[int, int]:
    """Return place among the sent -> place among the received."""
    if len(sent) == len(received):
        return {at: at for at in range(len(sent))}
    matched, at = dict[int, int](), len(sent) - 1
    for place in reversed(range(len(received))):
        while at >= 0 and sent[at]["time_ns"] > received[place]["time_ns"] + DISORDER_NS:
            at -= 1
        if at < 0:
            break
        matched[at] = place
        at -= 1
    return matched


def _carries(received: PacketRow, sent: PacketRow) -> bool:
    """Return whether a received packet has some of the sent one's bytes, and was not seen before it."""
    if received["from"] != sent["from"] or received["time_ns"] < sent["time_ns"] - DISORDER_NS:
        return False
    begin, end = sent["position"], sent["position"] + sent["payload_bytes"]
    return bool(received["position"] < end and begin < received["position"] + received["payload_bytes"])


def _packet(row: PacketRow, client_ns: int | None, server_ns: int | None) -> Packet:
    return Packet(
        row["from"] == "client",
        row["kind"],
        row["payload_bytes"],
        row["wire_packets"],
        row["acknowledges"],
        client_ns,
        server_ns,
    )
