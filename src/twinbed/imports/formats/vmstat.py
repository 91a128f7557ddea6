"""Format ``vmstat``: what ``vmstat INTERVAL`` prints, also wide (``-w``), with times (``-t``), and of inactive memory (``-a``).

Gives shares of CPU time, interrupts and context switches per second: means of the samples, which are equally long.  The first
line is about the time since boot, so it is no sample (with ``-y`` a sample gets lost).  The table ``vmstat`` has every sample
as it is printed (time_s, r, b, swpd and so on).

Text before every line, such as a time that ``ts`` put there, is left out.  vmstat repeats its heading after as many samples as
a screen has lines (22 where there is no screen).  A heading that comes earlier is that of another vmstat, whose first line is
no sample either.

Limits: vmstat rounds to whole percents.  ``-S`` sets the units of memory and the text does not name them, so memory gives no
metric.

Source: vmstat(8).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import count, table, unread
from twinbed.imports.text.processors import Sample, cpu_cautions, shares
from twinbed.metrics.counters import CPU_BUSY, CPU_IDLE, CPU_STEAL, RATES
from twinbed.metrics.metric import Value
from twinbed.model.json import Document

_HEAD = re.compile(
    r"^[ \t]*(?P<before>(?:(?:[\d:.,/TZ+>|\[\]-]{1,40}|[A-Z][a-z]{2})[ \t]+){0,6}+)"
    r"r[ \t]+b[ \t]+swpd[ \t]+free[ \t]+(?:buff[ \t]+cache|inact[ \t]+active)[ \t]+si[ \t]+so[ \t]+bi[ \t]+bo"
    r"[ \t]+in[ \t]+cs[ \t]+us[ \t]+sy[ \t]+id[ \t]+wa(?:[ \t]+st)?(?:[ \t]+gu)?(?P<zone>[ \t]+[A-Z+-][\w+-]*)?[ \t]*\r?$",
    re.MULTILINE,
)
_GROUPS = re.compile(r".{0,80}?-*procs-* +-+memory")
_SCREEN = 20
"""Samples between two headings of one vmstat, at least."""
_RATES = {"in": RATES["interrupts"], "cs": RATES["context_switches"]}
_UTC = ("UTC", "GMT")


@dataclass(frozen=True, slots=True)
class _Row:
    """A sample."""

    counts: Mapping[str, int]
    """The numbers by the heading's columns."""
    time_s: float | None
    """Since the epoch, where it is printed in UTC."""

    def sample(self) -> Sample:
        busy = self.counts["us"] + self.counts["sy"] + self.counts.get("gu", 0)
        return Sample(busy, self.counts["id"] + self.counts["wa"], self.counts.get("st", 0))


def _recognises(head: bytes) -> bool:
    return b"swpd" in head and _HEAD.search(head.decode("latin-1")) is not None


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    columns: list[str] = []
    zone, is_other = "", False
    rows: list[_Row | None] = []
    diagnostics: list[Diagnostic] = []
    before, screen, since = 0, 0, 0
    is_first = True
    for number, line in enumerate(source.text().split("\n"), 1):
        if head := _HEAD.match(line):
            before = len(head["before"].split())
            names = line.split()[before : -1 if head["zone"] else None]
            if not columns:
                zone, columns = (head["zone"] or "").strip(), names
            elif since < _SCREEN or since != (screen := screen or since):
                diagnostics.append(Diagnostic("another vmstat begins: its first line is left out too", number, harmless=True))
                is_first = True
            since = 0
            is_other = names != columns
            if is_other:
                diagnostics.append(
                    Diagnostic("has other columns than the first heading; the lines below it are not read", number)
                )
        elif columns and not is_other and line.strip() and not _GROUPS.match(line):
            row = _row(line.split()[before:], columns, zone)
            if row is None:
                diagnostics.append(unread(line, number, "is not a sample of vmstat"))
            rows.append(None if is_first else row)
            is_first = False
            since += 1
    if not columns:
        raise FormatError("has no heading of vmstat")
    samples = [row for row in rows if row is not None]
    if not samples:
        diagnostics.append(Diagnostic("has no sample after the line about the time since boot"))
    return [_measurement(samples, columns, diagnostics)]


def _row(words: Sequence[str], columns: Sequence[str], zone: str) -> _Row | None:
    if len(words) != len(columns) + (2 if zone else 0):
        return None
    numbers = [count(word) for word in words[: len(columns)]]
    known = {name: number for name, number in zip(columns, numbers, strict=True) if number is not None}
    if len(known) < len(columns) or not known["us"] + known["sy"] + known["id"] + known["wa"]:
        return None
    return _Row(known, _time_s(" ".join(words[len(columns) :])) if zone in _UTC else None)


def _time_s(text: str) -> float | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _measurement(rows: Sequence[_Row], columns: Sequence[str], diagnostics: Sequence[Diagnostic]) -> Measurement:
    samples = [row.sample() for row in rows]
    values = list(shares(samples))
    values += [
        Value(metric.name, fmean(row.counts[name] for row in rows) if rows else None, metric.unit)
        for name, metric in _RATES.items()
    ]
    cells: dict[str, tuple[str, Sequence[object]]] = {"time_s": ("float64", [row.time_s for row in rows])}
    cells |= {name: ("int64", [row.counts[name] for row in rows]) for name in columns}
    cautions = list(cpu_cautions(samples, {"all CPUs": samples}))
    return Measurement(values, {"vmstat": table(cells)}, cautions, diagnostics, {}, rows[0].time_s if rows else None)


FORMATS = (
    Format(
        "vmstat",
        "CPU, interrupts and context switches over time, from vmstat",
        (CPU_BUSY, CPU_IDLE, CPU_STEAL, *_RATES.values()),
        _recognises,
        _read,
    ),
)
