"""``owping``'s and ``owstats``'s text: the summary, the packets of ``-v``, and the records of ``-R``.

Each direction is a session of its own.  Two sessions that follow each other, from A to B and from B to A, are one measurement:
the first is the client's own way.  The text of a single session does not give its direction: the option ``direction``
(``client_to_server``, ``server_to_client``) does, else its values have none.  Listed packets are preferred to the summary.
Where the summary contradicts them, beyond its three digits, a caution gives both.

Limits: the summary's median and jitter are as coarse as owping's buckets (-b), by default 0.1 ms.  Its first and last times are
in a time zone that it does not name, so only listed packets say when it began.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import SECONDS, count, real, unread
from twinbed.imports.text.probing import METRICS, OneWay, direction_of, summarised
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document
from twinbed.readers.latency import owamp
from twinbed.readers.latency.files import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from twinbed.readers.latency.probes import MISSING

_START = re.compile(
    rb"^[ \t]*--- ow(?:ping|stats) statistics from \[|\A\s*(?:\d{1,10} \d{18,20} [01] \S+ \d{1,20} [01] \S+ \d{1,3}\s)", re.M
)
_HEADER = re.compile(r"--- ow(?:ping|stats) statistics from \[(.{1,200}?)\]:(\S+) to \[(.{1,200}?)\]:(\S+)(?: ---)?")
_COUNTS = re.compile(r"(\d+) sent, (\d+) lost \([^)]*\), (\d+) duplicates")
_DELAYS = re.compile(r"one-way delay min/median/max = (\S+)/(\S+)/(\S+) (ns|us|ms|s), \((?:err=(\S+) (ns|us|ms|s)|(unsync))\)")
_JITTER = re.compile(r"one-way jitter = (\S+) (ns|us|ms|s)\b")
_PACKET = re.compile(
    r"seq_no=(\d+)\s+delay=(\S+) (ns|us|ms|s) \((?:sync, err=(\S+) (ns|us|ms|s)|unsync)\) sent=(\d{1,11})\.(\d{1,9}) recv=\S+"
)
_LOST = re.compile(r"seq_no=(\d+)\s+\*LOST\*")
_DIGITS = 0.006
"""Share of a number that rounding to three digits may take away."""


@dataclass
class _Session:
    origin: str = ""
    target: str = ""
    ports: tuple[str, str] = ("", "")
    packets: list[tuple[int, float | None, float | None]] = field(default_factory=list)
    """(sequence, delay in seconds or None where it was lost, seconds since 1970 when it was sent), as they came."""
    errors_s: list[float | None] = field(default_factory=list)
    counts: tuple[int, int, int] | None = None
    delays: tuple[float | None, float | None, float | None] | None = None
    error_s: float | None = None
    jitter: float | None = None
    reordered: int | None = None


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    way = direction_of(options)
    diagnostics: list[Diagnostic] = []
    sessions = _sessions(source.text().split("\n"), diagnostics)
    if not sessions:
        raise FormatError("has no session of owping with a packet or a summary")
    measurements = []
    while sessions:
        first = sessions.pop(0)
        if sessions and first.origin and (first.origin, first.target) == (sessions[0].target, sessions[0].origin):
            group = [(CLIENT_TO_SERVER, first), (SERVER_TO_CLIENT, sessions.pop(0))]
        else:
            group = [(way, first)]
        measurements.append(_measurement(group, diagnostics))
        diagnostics = []
    return measurements


def _sessions(lines: Sequence[str], diagnostics: list[Diagnostic]) -> list[_Session]:
    sessions: list[_Session] = []
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        if header := _HEADER.fullmatch(line):
            ends, ports = (header[1], header[3]), (header[2], header[4])
            same = sessions and (sessions[-1].origin, sessions[-1].target, sessions[-1].ports) == (*ends, ports)
            if not same or sessions[-1].counts:
                sessions.append(_Session(*ends, ports))
        elif words := _words(line):
            if not sessions or sessions[-1].origin:
                sessions.append(_Session())
            _record(sessions[-1], words)
        elif sessions and line:
            _line(sessions[-1], number, line, diagnostics)
    return [session for session in sessions if session.counts or session.packets]


def _words(line: str) -> Sequence[str] | None:
    words = line.split(" ")
    return words if line[:1].isdecimal() and len(line) < 200 and owamp.record(words) else None


def _record(session: _Session, words: Sequence[str]) -> None:
    record = owamp.record(words)
    if record is None or max(record) > 1 << 62:
        return
    sequence, sent, received = record
    session.packets.append((sequence, None if received == MISSING else (received - sent) / 1e9, sent / 1e9))
    if received != MISSING:
        parts = [real(words[3]), real(words[6])]
        known = [part for part in parts if part is not None]
        synchronised = words[2] == words[5] == "1" and len(known) == len(parts)
        session.errors_s.append(sum(known) if synchronised else None)


def _line(session: _Session, number: int, line: str, diagnostics: list[Diagnostic]) -> None:
    if packet := _PACKET.fullmatch(line):
        sequence, delay = count(packet[1]), real(packet[2])
        if sequence is None or delay is None:
            diagnostics.append(unread(line, number, "a packet's delay cannot be read"))
            return
        session.packets.append((sequence, delay * SECONDS[packet[3]], float(f"{packet[6]}.{packet[7]}")))
        error = real(packet[4]) if packet[4] else None
        session.errors_s.append(None if error is None else error * SECONDS[packet[5]])
    elif lost := _LOST.match(line):
        sequence = count(lost[1])
        if sequence is not None:
            session.packets.append((sequence, None, None))
    elif counts := _COUNTS.fullmatch(line):
        numbers = [count(counts[at]) for at in (1, 2, 3)]
        if None in numbers:
            diagnostics.append(unread(line, number, "has counts that no program prints"))
        else:
            session.counts = (numbers[0] or 0, numbers[1] or 0, numbers[2] or 0)
    elif delays := _DELAYS.fullmatch(line):
        scale = SECONDS[delays[4]]
        session.delays = tuple(_scaled(delays[at], scale, number, diagnostics) for at in (1, 2, 3))  # type: ignore[assignment]
        session.error_s = _scaled(delays[5], SECONDS[delays[6]], number, diagnostics) if delays[5] else None
    elif jitter := _JITTER.match(line):
        session.jitter = _scaled(jitter[1], SECONDS[jitter[2]], number, diagnostics)
    elif line == "no reordering":
        session.reordered = 0
    elif "seq_no=" in line or "one-way" in line or " sent, " in line:
        diagnostics.append(unread(line, number))


def _scaled(text: str, scale: float, number: int, diagnostics: list[Diagnostic]) -> float | None:
    """Return a number in base units. owping prints nan where no packet arrived: that is missing, not unreadable."""
    value = real(text)
    if value is None and text != "nan":
        diagnostics.append(Diagnostic(f"has no number: {text[:40]}", number))
    return None if value is None else value * scale


def _measurement(group: Sequence[tuple[str, _Session]], diagnostics: list[Diagnostic]) -> Measurement:
    cautions: list[Caution] = []
    values, delay_cautions = summarised([(way, _one_way(session, cautions)) for way, session in group])
    starts = [sent for _, session in group for _, _, sent in session.packets if sent is not None]
    return Measurement(
        values, {}, [*cautions, *delay_cautions], diagnostics, {"protocol": "udp"}, min(starts) if starts else None
    )


def _one_way(session: _Session, cautions: list[Caution]) -> OneWay:
    if session.packets:
        of_packets = _of_packets(session)
        cautions += _contradictions(session, of_packets)
        return of_packets
    sent, lost, duplicates = session.counts or (None, None, None)
    least, median, most = session.delays or (None, None, None)
    return OneWay(
        *(session.origin, session.target, sent, lost, duplicates, session.reordered),
        delays={"min": least, "median": median, "max": most},
        jitter=session.jitter,
        error_s=session.error_s,
    )


def _of_packets(session: _Session) -> OneWay:
    import numpy as np

    first: dict[int, float | None] = {}
    twice = 0
    for sequence, delay, _ in session.packets:
        twice += sequence in first
        first.setdefault(sequence, delay)
    delays = np.array([delay for delay in first.values() if delay is not None])
    by_sequence = [first[sequence] for sequence in sorted(first)]
    steps = [abs(after - before) for before, after in pairwise(by_sequence) if before is not None and after is not None]
    p50, p95 = (float(np.quantile(delays, share)) for share in (0.5, 0.95)) if len(delays) else (None, None)
    known = [error for error in session.errors_s if error is not None]
    return OneWay(
        *(session.origin, session.target, len(first), len(first) - len(delays), twice, _reordered(session)),
        delays={
            "min": float(delays.min()) if len(delays) else None,
            "mean": float(delays.mean()) if len(delays) else None,
            "median": p50,
            "p95": p95,
            "max": float(delays.max()) if len(delays) else None,
        },
        jitter=None if p50 is None or p95 is None else p95 - p50,
        delay_variation_p95=None if p95 is None else p95 - float(delays.min()),
        ipdv=sum(steps) / len(steps) if steps else None,
        error_s=max(known) if known and len(known) == len(session.errors_s) else None,
    )


def _reordered(session: _Session) -> int | None:
    """Count the packets that a later one overtook."""
    arrived: dict[int, float] = {}
    for sequence, delay, sent in session.packets:
        if delay is not None and sent is not None:
            arrived.setdefault(sequence, sent + delay)
    latest, count = float("-inf"), 0
    order = sorted(arrived.items(), key=lambda item: (item[1], item[0]))
    for sequence, _ in order:
        count += sequence < latest
        latest = max(latest, sequence)
    return count


def _contradictions(session: _Session, of_packets: OneWay) -> list[Caution]:
    pairs: list[tuple[str, float | None, float | None]] = []
    if session.counts:
        pairs += zip(
            ("sent", "lost", "duplicates"),
            (of_packets.sent, of_packets.lost, of_packets.duplicates),
            session.counts,
            strict=True,
        )
    if session.delays:
        pairs += [("shortest delay in s", of_packets.delays["min"], session.delays[0])]
        pairs += [("longest delay in s", of_packets.delays["max"], session.delays[2])]
    return [
        Caution(Kind.CONTRADICTED, f"{name}: {ours:.6g} by the packets, {theirs:.6g} by the summary")
        for name, ours, theirs in pairs
        if ours is not None and theirs is not None and abs(ours - theirs) > _DIGITS * abs(theirs)
    ]


FORMATS = (
    Format("owping", "owping's summary, packets (-v) or records (-R), one direction or both", METRICS, _START.search, _read),
)
