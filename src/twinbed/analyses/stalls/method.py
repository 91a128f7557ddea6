"""The analysis ``stalls``: each stall of a connection, where it was, and what else happened then.

In: the tables ``stalls``, ``exchanges``, ``connections`` and ``kernel_messages``, and cautions.  Out: a row for each stall; a
stall that a client's link and its server's both saw is one.  Definitions: docs/stalls.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from twinbed.analyses.stalls import words
from twinbed.analyses.stalls.result import KernelMessage, Stalled, StallsFound
from twinbed.contracts.analysis import Analysis, NoSettings
from twinbed.model.caution import Caution, Kind
from twinbed.model.record import Record
from twinbed.model.tables import Tables
from twinbed.observations.inside import complete, read
from twinbed.observations.samples import cell_of
from twinbed.show.section import Section

NEAR_S = 1.0
"""Kernel messages up to this long before or after a stall are shown with it."""
SIDES = {"originator": "client", "responder": "server"}


@dataclass(frozen=True, slots=True)
class _Seen:
    """The columns of the table ``stalls`` that are used."""

    run: str
    link: str
    originator_address: str
    originator_port: int
    responder_address: str
    responder_port: int
    start_ns: int
    duration_s: float
    direction: str
    unacknowledged_bytes: int
    retransmissions: int
    probes: int
    returned_packets: int
    rto_s: float
    reason: str
    ended_by: str

    @property
    def end_ns(self) -> int:
        return self.start_ns + round(1e9 * self.duration_s)

    @property
    def place(self) -> tuple[str, str]:
        return self.run, self.link


@dataclass(frozen=True, slots=True)
class _Message:
    host: str
    time_ns: int
    text: str


class StallsAnalysis(Analysis[NoSettings, StallsFound]):
    """When did connections stall, for how long, where, and what did the kernels report?

    \b
      twinbed analyse stalls results/
      twinbed analyse stalls results/ --table messages -o messages.csv    kernel messages near them
    """

    name = "stalls"
    params = NoSettings
    epilog = "docs/stalls.md defines a stall."
    table_names = ("stalls", "messages")
    is_in_reports = True

    def run(self, source: Tables, params: NoSettings | None = None) -> StallsFound:
        records = {record.id: record for record in complete(source)}
        columns = [field.name for field in fields(_Seen)]
        rows = [
            _Seen(**{name: row[name] for name in columns})
            for row in source.table("stalls").to_pylist()
            if row["run"] in records
        ]
        requests, begun = _requests(source, rows), _begun(source, rows)
        messages: dict[str, list[_Message]] = defaultdict(list)
        for run, *message in read(source, "kernel_messages", "run", "host", "time_ns", "text"):
            messages[run].append(_Message(*message))
        stalls = [
            _stalled(records[group[0].run], group, requests, begun, messages[group[0].run])
            for group in _groups(sorted(rows, key=lambda row: (row.start_ns, row.link)))
        ]
        metrics = read(source, "metrics", "run", "metric", "value")
        known = {run for run, metric, value in metrics if metric == "stalls" and value is not None and run in records}
        return StallsFound(tuple(stalls), len(known), tuple(_pauses(source, records)))

    def section(self, result: StallsFound) -> Section:
        return words.section(result)

    def says_something(self, result: StallsFound) -> bool:
        return bool(result.stalls)


def _groups(rows: Sequence[_Seen]) -> Iterator[list[_Seen]]:
    """Yield the rows of one stall: what both links of a connection saw at the same time."""
    groups: list[list[_Seen]] = []
    open_groups: dict[tuple[object, ...], list[_Seen]] = {}
    for row in rows:
        ends = (row.originator_address, row.originator_port, row.responder_address, row.responder_port)
        key = (row.run, *ends, row.direction)
        group = open_groups.get(key)
        overlaps = group is not None and row.start_ns < group[0].end_ns
        if group is not None and overlaps and all(row.link != other.link for other in group):
            group.append(row)
        else:
            open_groups[key] = [row]
            groups.append(open_groups[key])
    yield from groups


def _stalled(
    record: Record,
    group: Sequence[_Seen],
    requests: Mapping[tuple[str, str], Sequence[tuple[int, int]]],
    begun: Mapping[tuple[str, str], int],
    messages: Sequence[_Message],
) -> Stalled:
    """Return one stall, as the client's link saw it if it did."""
    row = min(group, key=lambda seen: (not seen.link.startswith("client"), seen.link))
    link, start, end = row.place, row.start_ns, row.end_ns
    under_way = None
    if link in requests:
        under_way = sum(from_ns <= end and until_ns >= start for from_ns, until_ns in requests[link])
    near = round(1e9 * NEAR_S)
    return Stalled(
        run=record.id,
        cell=cell_of(record.levels)[1],
        testbed=str(record.settings["testbed"]["name"]),
        links=tuple(sorted(seen.link for seen in group)),
        client=f"{row.originator_address}:{row.originator_port}",
        server=f"{row.responder_address}:{row.responder_port}",
        start_ns=start,
        since_s=(start - begun.get(link, start)) / 1e9,
        duration_s=row.duration_s,
        waiting=SIDES[row.direction],
        unacknowledged_bytes=row.unacknowledged_bytes,
        retransmissions=row.retransmissions,
        probes=row.probes,
        rto_s=row.rto_s,
        reason=row.reason,
        ended_by=row.ended_by,
        place=_place(group),
        requests=under_way,
        messages=tuple(
            KernelMessage(message.host, (message.time_ns - start) / 1e9, message.text)
            for message in messages
            if start - near <= message.time_ns <= end + near
        ),
    )


def _place(group: Sequence[_Seen]) -> str | None:
    """Return where the connection got stuck, from the retransmissions and answers that each link saw."""
    by_side = {"client" if row.link.startswith("client") else "server": row for row in group}
    if len(by_side) != 2:
        return None
    own = SIDES[group[0].direction]
    sender, receiver = by_side[own], by_side["server" if own == "client" else "client"]
    if sender.reason == "zero_window":
        return "receiver"
    if not sender.retransmissions:
        return "sender"
    if not receiver.retransmissions:
        return "path"
    return "path_back" if receiver.returned_packets > sender.returned_packets else "receiver"


def _requests(source: Tables, rows: Sequence[_Seen]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Return the begin and end of each request on each link that stalled. A request without an end never had one."""
    wanted = {row.place for row in rows}
    requests: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for run, link, start, seconds in read(source, "exchanges", "run", "link", "start_ns", "duration_s") if wanted else ():
        if (run, link) in wanted and start is not None:
            end = 1 << 63 if seconds is None else start + round(1e9 * seconds)
            requests.setdefault((run, link), []).append((start, end))
    return requests


def _begun(source: Tables, rows: Sequence[_Seen]) -> dict[tuple[str, str], int]:
    """Return when the first connection of each link that stalled began."""
    wanted = {row.place for row in rows}
    begun: dict[tuple[str, str], int] = {}
    for run, link, start in read(source, "connections", "run", "link", "start_ns") if wanted else ():
        if (run, link) in wanted and start is not None:
            begun[run, link] = min(start, begun.get((run, link), start))
    return begun


def _pauses(source: Tables, records: Mapping[str, Record]) -> Iterator[Caution]:
    for run, kind, detail in read(source, "cautions", "run", "kind", "detail"):
        if kind == Kind.STALL.name.lower() and run in records:
            yield Caution(Kind.STALL, detail, run)


analysis = StallsAnalysis()
