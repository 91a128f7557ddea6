"""Format ``siege-log``: the table that siege appends a row a run to (``-l``, ``siege.log``); a row is a measurement.

The metrics are the workload's ``http``.  Its data are whole MB (2^20 bytes), cut, and its throughput is those over the time, so
that both say less than the columns have digits; and whether headers count depends on siege's version, which is not in it: no
goodput and no bytes are read.  Times have two decimals of a second, as ``siege`` has them.  The date is when the run ended,
by a clock whose zone is not said: no start is read.  OKAY counts answers with a status below 400.
Source: siege(1), "LOGGING", and log.c of siege 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.load import SHOWN, head_text, number, values, whole_lines
from twinbed.metrics.http import METRICS, UNITS
from twinbed.metrics.metric import Metric
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document
from twinbed.readers.http import request_cautions

_COLUMNS = ("trans", "elap time", "data trans", "resp time", "trans rate", "throughput", "concurrent", "okay", "failed")
_HEAD = re.compile(r"[ \t]*Date & Time," + ",".join(rf"[ \t]*{name}" for name in _COLUMNS) + r"[ \t]*", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_MARK = re.compile(r"\*\*\*\* .* \*\*\*\*")
"""What ``siege -m`` writes between rows."""
_NONE = ("nan", "-nan", "inf", "-inf")
"""What it prints of a division by 0: no transactions, or no time."""
_STEP = 0.005
"""The resolution of times with two decimals."""


class SiegeLog(Format):
    """The format."""

    name = "siege-log"
    summary = "the table of runs that siege -l keeps, a row a measurement"
    metrics: Sequence[Metric] = METRICS
    work = "requests"
    rate = "requests_per_second"

    def recognises(self, head: bytes) -> bool:
        if b"Elap Time" not in head:
            return False
        return any(_HEAD.fullmatch(line) for line in head_text(head).splitlines())

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        lines, flaws = whole_lines(source.text())
        cut = {flaw.line for flaw in flaws}
        measurements: list[Measurement] = []
        for index, line in enumerate(source.text().split("\n") if cut else lines, start=1):
            if not line.strip() or _HEAD.fullmatch(line) or _MARK.fullmatch(line.strip()):
                continue
            figures = _row(line)
            if figures is None:
                flaws.append(Diagnostic(f"is no row of siege's log: {line.strip()[:SHOWN]!r}", index))
                continue
            # A last row without its line end may have lost digits of its last number, and of no other.
            measurements.append(_reading(figures | ({"failed": None} if index in cut else {})))
        if not measurements:
            raise FormatError("has no row of siege's log")
        last = measurements[-1]
        return [*measurements[:-1], _with(last, flaws)]


def _row(line: str) -> dict[str, float | None] | None:
    """The numbers of a row by their columns; None where it is none."""
    date, *cells = (cell.strip() for cell in line.split(","))
    if not _DATE.fullmatch(date) or len(cells) != len(_COLUMNS):
        return None
    figures = {column: number(cell) for column, cell in zip(_COLUMNS, cells, strict=True)}
    wrong = [cell for cell in cells if number(cell) is None and cell.lower() not in _NONE]
    return None if wrong or figures["trans"] is None else figures


def _with(measurement: Measurement, flaws: Sequence[Diagnostic]) -> Measurement:
    return Measurement(measurement.values, {}, measurement.cautions, flaws, {}, resolution=measurement.resolution)


def _reading(figures: Mapping[str, float | None]) -> Measurement:
    done, elapsed, failed, okay = (figures[name] for name in ("trans", "elap time", "failed", "okay"))
    timed = bool(done and elapsed)
    numbers: dict[str, float | None] = {
        "requests": done,
        "requests_per_second": figures["trans rate"] if timed else None,
        "time_taken": elapsed,
        "concurrency": figures["concurrent"] if timed else None,
        "failed_requests": failed,
        "non_2xx": None,
        "total_time_mean": figures["resp time"] if done else None,
    }
    return Measurement(
        values=list(values(numbers, UNITS)),
        cautions=list(_cautions(numbers, done, failed, okay)),
        resolution={"time_taken": _STEP, "total_time_mean": _STEP},
    )


def _cautions(
    numbers: Mapping[str, float | None], done: float | None, failed: float | None, okay: float | None
) -> Iterator[Caution]:
    yield from request_cautions(numbers, None if done is None or failed is None else done + failed)
    if done is not None and okay is not None and okay < done:
        yield Caution(Kind.NON_2XX, f"{okay:.0f} of {done:.0f} transactions were answered with a status below 400")


siege_log = SiegeLog()
