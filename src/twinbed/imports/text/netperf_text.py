"""netperf's text, test by test: tables, selected outputs (``-k``, ``-o``), interim results and warnings, as they stand."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from twinbed.contracts.format import Diagnostic
from twinbed.imports.text.figures import real

_HEADER = re.compile(r"(?:MIGRATED )?([A-Za-z0-9/ ]{2,60}?) TEST\b")
_TITLE = re.compile(r"(?:TCP|UDP|SCTP|DCCP|OMNI|XTI|STREAM|DG|SOCKET)\b")
_SELECTED = re.compile(r"([A-Z][A-Z0-9_]{2,60})=(.*)")
_INTERIM = re.compile(r"Interim result:\s+(\S+) (\S+) over (\S+) seconds ending at (\S+)")
_RATE = re.compile(r"(?:10\^([0369])bits|([KMG]?)Bytes)/s(?:ec)?\b")
_ERROR = re.compile(r"\w+: .*\berror\b", re.IGNORECASE)
_LABELS = {
    "remote bytes received": "REMOTE_BYTES_RECVD",
    "local bytes received": "LOCAL_BYTES_RECVD",
    "local transport retransmissions": "LOCAL_TRANSPORT_RETRANS",
    "remote transport retransmissions": "REMOTE_TRANSPORT_RETRANS",
    "minimum latency microseconds": "MIN_LATENCY",
    "maximum latency microseconds": "MAX_LATENCY",
    "50th percentile latency microseconds": "P50_LATENCY",
    "90th percentile latency microseconds": "P90_LATENCY",
    "99th percentile latency microseconds": "P99_LATENCY",
}
"""Of ``-o``, where they are not the selector's name in words."""
_UNITS_OF_LABELS = re.compile(r" (?:\(sec\)|microseconds|%)$")


@dataclass
class Test:
    """One test. ``line`` is its heading's."""

    line: int
    title: str
    rows: list[tuple[int, list[float]]] = field(default_factory=list)
    """(line, numbers) of the lines that hold numbers alone."""
    selected: dict[str, str] = field(default_factory=dict)
    heading: str = ""
    interims: list[tuple[float, float, float, str]] = field(default_factory=list)
    """(ended, seconds, rate, unit)"""
    warnings: list[str] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def transactions(self) -> bool:
        return "response" in self.title.lower() or self.selected.get("THROUGHPUT_UNITS") == "Trans/s"


def tests(lines: Sequence[str]) -> list[Test]:
    """Each that has a heading."""
    tests_: list[Test] = []
    labels: list[str] = []
    for number, line in enumerate(lines, start=1):
        header = _HEADER.match(line)
        if header and _TITLE.match(header[1]):
            tests_.append(Test(number, header[1]))
            labels = []
        elif tests_ and line.strip():
            labels = _line(tests_[-1], number, line.strip(), labels)
    return tests_


def _line(test: Test, number: int, line: str, labels: list[str]) -> list[str]:
    """Takes a line in; gives the labels that the next one is to be read by."""
    if interim := _INTERIM.match(line):
        _interim(test, number, interim)
    elif selected := _SELECTED.fullmatch(line):
        test.selected.setdefault(selected[1], selected[2])
    elif labels:
        values = _cells(line)
        if len(values) == len(labels):
            test.selected |= dict(zip(labels, values, strict=True))
        else:
            test.diagnostics.append(Diagnostic(f"{len(values)} values for {len(labels)} labels", number))
    elif line.startswith(("!!!", "netperf:")) or _ERROR.match(line):
        test.warnings.append(line.lstrip("! "))
    elif names := _labels(line):
        return names
    elif line[0].isdecimal():
        row = [real(word) for word in line.split()]
        if None in row:
            test.diagnostics.append(Diagnostic(f"cannot be read: {line[:80]}", number))
        else:
            test.rows.append((number, [each for each in row if each is not None]))
    else:
        test.heading += f"{line}\n"
    return []


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _labels(line: str) -> list[str]:
    """The selectors of a line of ``-o``'s labels; empty where it is none."""
    cells = _cells(line)
    if len(cells) < 2 or not all(any(letter.isalpha() for letter in cell) for cell in cells):
        return []
    return [_selector(label) for label in cells]


def _selector(label: str) -> str:
    words = label.strip().lower()
    return _LABELS.get(words) or _UNITS_OF_LABELS.sub("", words).upper().replace(" ", "_")


def _interim(test: Test, number: int, match: re.Match[str]) -> None:
    rate, seconds, ended = (real(match[at]) for at in (1, 3, 4))
    factor = 1.0 if match[2] == "Trans/s" else scale(match[2])
    if rate is None or seconds is None or ended is None or factor is None:
        test.diagnostics.append(Diagnostic(f"cannot be read: {match[0][:80]}", number))
        return
    test.interims.append((ended, seconds, rate * factor, "1/s" if match[2] == "Trans/s" else "bit/s"))


def scale(unit: str) -> float | None:
    """bit/s in one of the unit."""
    match = _RATE.search(unit)
    if match is None:
        return None
    return 10.0 ** int(match[1]) if match[1] else 8.0 * 1024 ** ("", "K", "M", "G").index(match[2])
