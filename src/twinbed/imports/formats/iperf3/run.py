"""A line of numbers in iperf3's text, and a run, as its lines are gathered and make a measurement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from twinbed.contracts.format import Diagnostic, Fact, Measurement
from twinbed.imports.formats.iperf3.way import C_TO_S, S_TO_C, Circumstances, Interval, Number, Side, Summary, Way, measurement
from twinbed.imports.text.figures import DECIMAL, number, plain, unread

PART = re.compile(rf"\[ *(?P<id>[0-9]+|SUM)\](?:\[(?P<role>[TR]X)-[CS]\])? +(?P<start>{DECIMAL}) ?- ?(?P<end>{DECIMAL}) +sec +")
"""The beginning of such a line. With --timestamps there is a time before it."""
_REST = re.compile(
    rf"(?P<size>{DECIMAL}) (?P<size_unit>[KMGT]?)Bytes +(?P<rate>{DECIMAL}) (?P<rate_unit>[KMGT]?)(?P<rate_of>bits|Bytes)/sec"
    rf"(?: +(?P<jitter>{DECIMAL}) ms +(?P<lost>[0-9]+)/ ?(?P<of>[0-9]+) \([^()]*\)"
    rf"| +(?P<count>[0-9]+)(?: +(?P<cwnd>{DECIMAL}) (?P<cwnd_unit>[KMGT]?)Bytes)?)?"
    r" *(?P<mark>sender|receiver|\(omitted\))? *"
)
_SIZES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_BITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True, slots=True)
class Row:
    """A line: of a stream or of their sum, an interval or a summary.

    ``count``: retransmissions of TCP, datagrams of a sender of UDP.
    ``mark``: sender or receiver of a summary, omitted, or empty.
    """

    is_sum: bool
    role: str
    start_s: float
    end_s: float
    size_bytes: float
    rate_bit_s: float
    count: Number
    cwnd_bytes: Number
    jitter_s: Number
    lost: Number
    datagrams: Number
    mark: str


def row(begun: re.Match[str], line: str) -> Row | None:
    """Return the rest of a line; None where it does not go on as iperf3's lines do."""
    rest = _REST.fullmatch(line, begun.end())
    if rest is None:
        return None
    start, end, size, rate = (number(text) for text in (begun["start"], begun["end"], rest["size"], rest["rate"]))
    if start is None or end is None or size is None or rate is None or end < start:
        return None
    cwnd, jitter = number(rest["cwnd"]), number(rest["jitter"])
    return Row(
        begun["id"] == "SUM",
        begun["role"] or "",
        start,
        end,
        size * _SIZES[rest["size_unit"]],
        rate * (_BITS[rest["rate_unit"]] if rest["rate_of"] == "bits" else 8 * _SIZES[rest["rate_unit"]]),
        number(rest["count"]),
        None if cwnd is None else cwnd * _SIZES[rest["cwnd_unit"]],
        None if jitter is None else jitter * 1e-3,
        number(rest["lost"]),
        number(rest["of"]),
        (rest["mark"] or "").strip("()"),
    )


BOTH = "both"
SUMMARIES = ("sender", "receiver", BOTH)
"""Marks of rows that are no intervals."""
ROUNDING = 0.005
"""The share by which rounding to three digits changes a number, at most."""


@dataclass(slots=True)
class Run:
    """A run. ``rows``: line, whether it is of the server's output in a client's, and the row."""

    server: bool
    facts: dict[str, str | int]
    started_s: float | None
    diagnostics: list[Diagnostic]
    rows: list[tuple[int, bool, Row]] = field(default_factory=list)
    reverse: bool = False
    server_output: bool = False
    done: bool = False
    streams: int = 0
    unheard: bool = False
    """True if iperf3 prints that it does not know the other end's numbers."""
    disordered: int = 0
    """Number of lines about a datagram that came out of order."""
    error: str | None = None
    duration_s: float | None = None
    cpu: tuple[bool, Number, Number] | None = None
    """(the end that wrote it sent, its share in per cent, the other's share)"""
    _headings: list[str] = field(default_factory=list)
    _here: int = 0
    """Headings of this end's output so far."""

    def heading(self, text: str) -> None:
        """Take a heading: the first one is over intervals, the second over summaries."""
        self._headings.append(text)
        self._here += 1

    def add(self, number: int, added: Row, line: str) -> None:
        """Add a row. Before iperf 3.7 UDP's summary has no mark: its size is the sender's, losses and jitter the receiver's."""
        unmarked = self._here > 1 and not added.mark
        if unmarked and "Datagrams" not in self._headings[-1]:
            self.diagnostics.append(unread(line, number, "is a summary of neither end"))
        else:
            self.rows.append((number, self.server_output, replace(added, mark=BOTH) if unmarked else added))

    def begin_server_output(self) -> None:
        self.server_output, self._here = True, 0

    @property
    def measured(self) -> bool:
        return bool(self.rows)

    @property
    def complete(self) -> bool:
        return any(row.mark in SUMMARIES for _, _, row in self.rows)

    def measurement(self) -> Measurement:
        udp = any("Datagrams" in heading for heading in self._headings) if self._headings else None
        sends = not self.reverse
        if self.server and self._headings:
            # A server does not print the direction; the heading of its columns shows it.
            columns = self._headings[0]
            sends = "Retr" in columns or ("Datagrams" in columns and "Jitter" not in columns)
        if self.cpu is not None:
            sends = self.cpu[0]
        roles = {row.role for _, _, row in self.rows if row.role}
        both = [True, False] if roles else [sends]
        ways = []
        for near_sends in both:
            to_server = near_sends != self.server
            direction = "" if not roles else C_TO_S if to_server else S_TO_C
            way = Way(
                udp, direction=direction, near="server" if self.server else "client", near_sends=near_sends, rounding=ROUNDING
            )
            self._fill(way, ("TX" if near_sends else "RX") if roles else "", ("RX" if near_sends else "TX") if roles else "")
            ways.append(way)
        if not self.complete and self.rows:
            self.diagnostics.append(
                Diagnostic("the run ends before its summary; only its whole intervals are read", self.rows[-1][0])
            )
        elif any(row.mark == "receiver" and not row.size_bytes for _, _, row in self.rows) and not (self.done or self.server):
            text = "the receiver's summary is 0 and 'iperf Done.' is missing, so the run was interrupted"
            self.diagnostics.append(Diagnostic(text, self.rows[-1][0]))
        if self.disordered and self.rows:
            text = f"{self.disordered} lines about datagrams out of order are not counted"
            self.diagnostics.append(Diagnostic(text, self.rows[0][0], harmless=True))
        facts: dict[str, Fact] = {**self.facts}
        if self.streams:
            facts["streams"] = self.streams // len(both)
        if udp is not None:
            facts |= {
                "protocol": "udp" if udp else "tcp",
                "reverse": not roles and sends == self.server,
                "bidirectional": bool(roles),
            }
        if self.duration_s:
            facts["duration_s"] = plain(self.duration_s)
        return measurement(ways, Circumstances(facts, self.started_s, self.duration_s, self.error, self.diagnostics))

    def _fill(self, way: Way, role: str, far_role: str) -> None:
        near, far = (way.sender, way.receiver) if way.near_sends else (way.receiver, way.sender)
        own = [row for _, of_server, row in self.rows if not of_server and row.role == role]
        near.intervals = list(self._intervals(own, way.udp, way.near_sends))
        fetched = [row for _, of_server, row in self.rows if of_server and row.role == far_role]
        if fetched:
            far.intervals = list(self._intervals(fetched, way.udp, not way.near_sends))
        omitted = any(row.mark == "omitted" for row in own)
        for side, mark in ((way.sender, "sender"), (way.receiver, "receiver")):
            self._summarise(side, mark, [row for row in own if row.mark == mark], way.udp, side is near)
            side.counts = side is near or not omitted
        unmarked = _together([row for row in own if row.mark == BOTH])
        if unmarked is not None and way.udp:
            if way.near_sends:
                way.receiver.summary = Summary(lost=unmarked.lost, jitter_s=unmarked.jitter_s)
                way.sender.summary = Summary(size_bytes=unmarked.size_bytes, rate_bit_s=unmarked.rate_bit_s)
            else:
                way.receiver.summary = Summary(datagrams=unmarked.datagrams, lost=unmarked.lost, jitter_s=unmarked.jitter_s)
        if self.cpu is not None:
            local_sends, local, remote = self.cpu
            mine = local_sends == way.near_sends or bool(role)
            if self.server or self.error or self.unheard:
                # This zero did not come from the other end.
                remote = None
            near.cpu_share, far.cpu_share = (_share(share) for share in ((local, remote) if mine else (remote, local)))

    def _summarise(self, side: Side, mark: str, rows: Sequence[Row], udp: bool | None, near: bool) -> None:
        total = _together(rows)
        if total is None or (not near and (self.server or self.error or (not self.done and not total.size_bytes))):
            # An end prints zeros for the other if it got no report from it.
            return
        sent = mark == "sender"
        side.summary = Summary(
            seconds=total.end_s - total.start_s,
            size_bytes=total.size_bytes,
            rate_bit_s=total.rate_bit_s,
            retransmissions=total.count if sent and not udp else None,
            datagrams=total.datagrams if udp else None,
            lost=None if sent else total.lost,
            jitter_s=None if sent else total.jitter_s,
        )

    def _intervals(self, rows: Sequence[Row], udp: bool | None, sends: bool) -> Iterator[Interval]:
        groups: list[list[Row]] = []
        for printed in rows:
            if printed.mark in SUMMARIES:
                continue
            last = groups[-1] if groups else []
            if (
                last
                and not last[-1].is_sum
                and (last[0].start_s, last[0].end_s, last[0].mark) == (printed.start_s, printed.end_s, printed.mark)
            ):
                last.append(printed)
            else:
                groups.append([printed])
        several = any(len(group) > 1 for group in groups)
        for group in groups:
            total = _together(group)
            if total is None or (several and not total.is_sum) or total.mark:
                continue
            streams = [stream for stream in group if not stream.is_sum]
            jitters = [stream.jitter_s for stream in streams if stream.jitter_s is not None and stream.datagrams]
            yield Interval(
                total.start_s,
                total.end_s - total.start_s,
                total.size_bytes,
                retransmissions=total.count if sends and not udp else None,
                datagrams=(total.count if sends else total.datagrams) if udp else None,
                lost=total.lost,
                jitters_s=jitters if not sends else (),
                cwnds_bytes=[stream.cwnd_bytes for stream in streams if stream.cwnd_bytes is not None] if sends else (),
            )


def _together(rows: Sequence[Row]) -> Row | None:
    """Return the sum of streams, or the only one; None where there are several without a sum, as in a text that is cut."""
    sums = [printed for printed in rows if printed.is_sum]
    return sums[-1] if sums else rows[0] if len(rows) == 1 else None


def _share(percent: Number) -> Number:
    return None if percent is None else percent / 100
