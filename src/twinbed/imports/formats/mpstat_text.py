"""Format ``mpstat-text``: the tables that ``mpstat INTERVAL COUNT`` prints without ``-o JSON``, of every CPU (``-P ALL``) too.

The same values and table as ``mpstat-json``'s, as far as CPU time goes: tables of interrupts (``-I``) are not read.  The lines
``Average:`` are no interval.  Without an interval mpstat prints the time since boot, and no average: such a text has no values.
Source: mpstat(1), and sysstat's own output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.mpstat import METRICS, reading
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document, Json

_HEADING = re.compile(rb"^\d\d:\d\d:\d\d(?: [AP]M)?[ \t]+CPU[ \t]+%usr\b", re.MULTILINE)
_FIRST = re.compile(r"Linux (\S{1,100}) \(.*\(([0-9]{1,6}) CPU\)\s*")
_TIME = re.compile(r"\d\d:\d\d:\d\d\b")


class MpstatText(Format):
    """The format."""

    name = "mpstat-text"
    summary = "CPU time over time, as mpstat prints it"
    metrics: Sequence[Metric] = METRICS

    def recognises(self, head: bytes) -> bool:
        return _HEADING.search(head) is not None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        text = source.text()
        blocks: list[dict[str, dict[str, Json]]] = []
        facts: dict[str, str] = {}
        diagnostics: list[Diagnostic] = []
        columns: list[str] = []
        averaged = False
        for number, line in enumerate(text.split("\n"), start=1):
            cells = line.split()
            if (first := _FIRST.fullmatch(line)) is not None:
                facts |= {"kernel": first[1], "cpus": first[2]}
            elif "CPU" in cells and any(cell.startswith("%") for cell in cells):
                columns, blocks = cells, [*blocks, {}]
            elif "CPU" in cells or not cells:
                columns = []
            elif columns and not _TIME.match(line):
                averaged = True
            elif columns:
                _add(blocks, dict(zip(columns, cells, strict=False)), len(cells) == len(columns), number, diagnostics)
        intervals = [block for block in blocks if block]
        if not intervals:
            raise FormatError("has no line of a CPU")
        if len(intervals) == 1 and not averaged:
            diagnostics.append(Diagnostic("has one interval and no average: it is about the time since boot"))
            intervals = []
        return [reading([{"cpu-load": list(block.values())} for block in intervals], diagnostics, facts)]


def _add(
    blocks: list[dict[str, dict[str, Json]]], row: dict[str, str], whole: bool, number: int, diagnostics: list[Diagnostic]
) -> None:
    """Add a line to the interval that it is of: the last one, unless that has the CPU already."""
    try:
        load: dict[str, Json] = {
            name.removeprefix("%"): float(cell.replace(",", ".")) for name, cell in row.items() if name.startswith("%")
        }
    except ValueError:
        whole = False
    if not whole:
        diagnostics.append(Diagnostic("is no line of a CPU", number))
        return
    if row["CPU"] in blocks[-1]:
        blocks.append({})
    blocks[-1][row["CPU"]] = {"cpu": row["CPU"], **load}


mpstat_text = MpstatText()
