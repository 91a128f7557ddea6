"""Format ``iperf3-json``: the documents of ``iperf3 -J`` and ``--json-stream``, of a client or a server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from twinbed.contracts.format import Diagnostic, Fact, Format, FormatError, Measurement, Source
from twinbed.imports.formats.iperf3.documents import REVERSE, Output, cookie, documents
from twinbed.imports.formats.iperf3.way import C_TO_S, METRICS, S_TO_C, Circumstances, Interval, Side, Summary, Way, measurement
from twinbed.imports.text.figures import head_text, number, plain
from twinbed.model.json import Document, Json
from twinbed.model.members import list_at, object_at, objects_at, text_at

_MARKS = (
    re.compile(r'"version"\s*:\s*"iperf 3'),
    re.compile(r'\{\s*"event"\s*:\s*"(?:start|interval|end)"\s*,\s*"data"\s*:\s*\{'),
)
_MEMBERS = ('"intervals"', '"streams"', '"bits_per_second"')
"""Members of a document whose version comes last."""
_SUMMARY = ("seconds", "bytes", "bits_per_second", "retransmits", "packets", "lost_packets", "jitter_ms")
_KERNEL = re.compile(r"(\S+) \S+ (\S+)")


def _recognises(head: bytes) -> bool:
    text = head_text(head)
    return any(mark.search(text) for mark in _MARKS) or all(name in text for name in _MEMBERS)


def _read_documents(source: Source, options: Document) -> Sequence[Measurement]:
    measurements: list[Measurement] = []
    idle: list[Diagnostic] = []
    seen: dict[str, list[Document]] = {}
    for document in documents(source.text()):
        if (test := cookie(document)) is not None:
            alike = seen.setdefault(test, [])
            if document.content in alike:
                idle.append(Diagnostic("the same document again", document.line, harmless=True))
                continue
            alike.append(document.content)
        measured, empty = _read(document)
        if empty and (measurements or not document.content.get("error")):
            idle += _nothing(document)
        else:
            measurements.append(measured)
    if not measurements:
        raise FormatError("has no measurement of iperf3: " + ("; ".join(map(str, idle)) or "no document is from iperf3"))
    if idle:
        measurements[-1] = replace(measurements[-1], diagnostics=[*measurements[-1].diagnostics, *idle])
    return measurements


def _nothing(document: Output) -> Iterator[Diagnostic]:
    error = document.content.get("error")
    yield Diagnostic("has a document without a measurement" + (f": {error}" if error else ""), document.line)
    yield from document.diagnostics


def _read(document: Output) -> tuple[Measurement, bool]:
    """Return a document's measurement, and whether it is empty."""
    content, diagnostics = document.content, document.diagnostics
    start, end = object_at(content, "start"), object_at(content, "end")
    test = object_at(start, "test_start")
    error = content.get("error")
    server = "accepted_connection" in start
    reverse = bool(number(test.get("reverse")))
    protocol = text_at(test, "protocol")
    own = _Records(list_at(content, "intervals"), server == reverse, diagnostics, "intervals")
    fetched = object_at(content, "server_output_json")
    # A cut document may have only some of them; its summary is whole or not there.
    far = (
        _Records(list_at(fetched, "intervals"), reverse, diagnostics, "server_output_json.intervals")
        if fetched and not document.cut
        else None
    )
    if isinstance(content.get("server_output_text"), str):
        diagnostics.append(
            Diagnostic(
                "the server's output is text, which is not read; numbers that only the server has are missing", document.line
            )
        )
    udp = protocol == "UDP" if protocol is not None else own.udp
    both = {True, False} if number(test.get("bidir")) or own.both or f"sum_sent{REVERSE}" in end else {own.sends}
    known = not (server or error)
    omit = bool(number(test.get("omit")))
    cpu = object_at(end, "cpu_utilization_percent")
    ways = []
    for sends in sorted(both, reverse=True):
        to_server = sends != server
        suffix = "" if to_server or len(both) == 1 else REVERSE
        direction = "" if len(both) == 1 else C_TO_S if to_server else S_TO_C
        way = Way(udp, direction=direction, near="server" if server else "client", near_sends=sends)
        near, other = (way.sender, way.receiver) if sends else (way.receiver, way.sender)
        near.intervals = own.of(sends)
        if far is not None:
            other.intervals = far.of(not sends)
        near.cpu_share, other.cpu_share = _share(cpu.get("host_total")), _share(cpu.get("remote_total")) if known else None
        _summaries(way, end, suffix, near, known, omit)
        ways.append(way)
    circumstances = Circumstances(
        facts=dict(_facts(start, end, test, own, len(both) > 1, server)),
        started_s=number(object_at(start, "timestamp").get("timesecs")),
        duration_s=number(test.get("duration")) or None,
        error=error if isinstance(error, str) else None,
        diagnostics=diagnostics,
    )
    sides = [side for way in ways for side in (way.sender, way.receiver)]
    empty = not own.count and not any(side.summary and side.summary.size_bytes for side in sides)
    return measurement(ways, circumstances), empty


def _summaries(way: Way, end: Document, suffix: str, near: Side, known: bool, omit: bool) -> None:
    """Take the summary of the end that wrote the file, and of the other end where the file knows it."""
    for side, name in ((way.sender, "sum_sent"), (way.receiver, "sum_received")):
        if side is near or known:
            side.summary = _summary(object_at(end, name + suffix))
            side.counts = (side is near and bool(side.intervals)) or not omit
    both = _summary(object_at(end, "sum" + suffix))
    if way.udp and both is not None and (way.receiver is near or known) and way.receiver.summary is None:
        # Versions before 3.7 have one summary: sizes and counts of the end that wrote it, losses and jitter of the receiver.
        mine = way.receiver is near
        way.receiver.summary = both if mine else Summary(lost=both.lost, jitter_s=both.jitter_s)
        way.receiver.counts = mine or not omit


class _Records:
    """The interval records of one end, sent and received."""

    def __init__(self, records: Sequence[Json], usually_sends: bool, diagnostics: list[Diagnostic], where: str) -> None:
        self._by_sends: dict[bool, list[Interval]] = {True: [], False: []}
        self.udp: bool | None = None
        self.mtu: float | None = None
        self.count = 0
        for index, record in enumerate(records):
            wholly = 0
            for name in ("sum", f"sum{REVERSE}"):
                total = object_at(record, name)
                sends = total.get("sender")
                sends = sends if isinstance(sends, bool) else usually_sends
                interval = self._interval(total, sends, objects_at(record, "streams")) if total else None
                if interval is not None:
                    self._by_sends[sends].append(interval)
                    wholly += 1
                elif total:
                    wholly = -2
            if wholly <= 0:
                diagnostics.append(Diagnostic(f"{where}[{index}] has no sum of bytes and seconds that can be read"))
            self.count += max(wholly, 0)
        self.sends = (
            usually_sends if (self._by_sends[True] and self._by_sends[False]) or not self.count else bool(self._by_sends[True])
        )
        self.both = bool(self._by_sends[True] and self._by_sends[False])

    def of(self, sends: bool) -> Sequence[Interval]:
        return [interval for interval in self._by_sends[sends] if not interval.omitted and interval.seconds > 0]

    def _interval(self, total: Document, sends: bool, streams: Sequence[Document]) -> Interval | None:
        start, seconds, size = (number(total.get(name)) for name in ("start", "seconds", "bytes"))
        if start is None or seconds is None or size is None:
            return None
        mine = [stream for stream in streams if stream.get("sender", sends) == sends]
        if self.udp is None:
            self.udp = "packets" in total
        if self.mtu is None and mine:
            self.mtu = number(mine[0].get("pmtu"))
        orders = [number(stream.get("out_of_order")) for stream in mine]
        return Interval(
            start,
            seconds,
            size,
            total.get("omitted") is True,
            number(total.get("retransmits")),
            number(total.get("packets")),
            number(total.get("lost_packets")),
            sum(order for order in orders if order is not None) if orders and None not in orders else None,
            () if sends else _present([stream.get("jitter_ms") for stream in mine if number(stream.get("packets"))], 1e-3),
            _present([stream.get("rtt") for stream in mine], 1e-6) if sends else (),
            _present([stream.get("snd_cwnd") for stream in mine], 1.0) if sends else (),
        )


def _present(numbers: Sequence[object], unit: float) -> Sequence[float]:
    """Return all of them in base units, or none."""
    read = [number(value) for value in numbers]
    return [value * unit for value in read if value is not None] if None not in read else ()


def _summary(record: Document) -> Summary | None:
    if not record:
        return None
    seconds, size, rate, retransmissions, datagrams, lost, jitter_ms = (number(record.get(name)) for name in _SUMMARY)
    return Summary(seconds, size, rate, retransmissions, datagrams, lost, None if jitter_ms is None else jitter_ms * 1e-3)


def _share(percent: object) -> float | None:
    known = number(percent)
    return None if known is None else known / 100


def _facts(
    start: Document, end: Document, test: Document, own: _Records, both: bool, server: bool
) -> Iterator[tuple[str, Fact]]:
    version, system = start.get("version"), start.get("system_info")
    if isinstance(version, str):
        yield "version", version.removeprefix("iperf ").strip()
    if isinstance(system, str):
        kernel = _KERNEL.match(system)
        # Without the host's name, which lies between.
        yield "kernel", f"{kernel[1]} {kernel[2]}" if kernel else system.strip()
    if (protocol := text_at(test, "protocol")) is not None:
        yield "protocol", protocol.lower()
    counts = (("streams", "num_streams"), ("payload_bytes", "blksize"), ("duration_s", "duration"), ("omit_s", "omit"))
    for name, key in (*counts, ("target_rate_bit_s", "target_bitrate")):
        setting = number(test.get(key))
        if setting:
            yield name, plain(setting)
    mss = number(start.get("tcp_mss")) or number(start.get("tcp_mss_default"))
    if mss:
        yield "mss", plain(mss)
    congestion = end.get(
        "receiver_tcp_congestion" if server and "sender_tcp_congestion" not in end else "sender_tcp_congestion"
    )
    if isinstance(congestion, str):
        yield "congestion", congestion
    if own.mtu:
        yield "mtu", plain(own.mtu)
    if test:
        yield "reverse", bool(number(test.get("reverse")))
        yield "bidirectional", both


iperf3_json = Format(
    "iperf3-json",
    "iperf3's JSON (-J, --json-stream), from a client or a server",
    METRICS,
    _recognises,
    _read_documents,
    work="received_bytes",
    rate="goodput",
)
