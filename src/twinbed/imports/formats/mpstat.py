"""Formats ``mpstat-json`` and ``mpstat-text``: CPU time and interrupts over time, of every CPU (``-P ALL``) too.

``mpstat -o JSON INTERVAL COUNT`` gives shares of CPU time of all CPUs, and interrupts and softirqs a second (``-I``): means of
the intervals, which are equally long.  The table ``mpstat`` has the shares of each CPU in each interval (interval, cpu, busy,
idle, steal).  The text without ``-o JSON`` gives the same values and table for CPU time; its tables of interrupts are not read.
Its lines ``Average:`` are no interval.

Without an interval mpstat writes one block about the time since boot, which looks like any other.  So JSON of one block has no
values, unless the manifest has ``one_interval: true`` (``mpstat -o JSON 60 1``).  A text of one block and no average has no
values.

Source: mpstat(1), and sysstat's own output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.documents import documents, elements, line_of
from twinbed.imports.text.figures import of_json, table
from twinbed.imports.text.processors import Sample, cpu_cautions, shares
from twinbed.metrics.counters import CPU_BUSY, CPU_IDLE, CPU_STEAL, RATES
from twinbed.metrics.metric import Metric, Value
from twinbed.model.json import Document, Json
from twinbed.model.members import objects_at

METRICS: Sequence[Metric] = (CPU_BUSY, CPU_IDLE, CPU_STEAL, RATES["interrupts"], RATES["softirqs"])
BUSY = ("usr", "nice", "sys", "irq", "soft", "guest", "gnice")
IDLE = ("idle", "iowait")
STEAL = ("steal",)
_ALL = "all"


def _measurement(blocks: Sequence[Json], diagnostics: list[Diagnostic], facts: Mapping[str, str]) -> Measurement:
    """Return the means over the blocks, each of an interval, and the table ``mpstat``."""
    rows = list(_rows(blocks, diagnostics))
    of_all = [sample for _, cpu, sample in rows if cpu == _ALL]
    of_cpu: dict[str, list[Sample]] = {}
    for _, cpu, sample in rows:
        of_cpu.setdefault(cpu if cpu == _ALL else f"cpu{cpu}", []).append(sample)
    values = list(shares(of_all))
    for metric, rates in ((RATES["interrupts"], _interrupts(blocks)), (RATES["softirqs"], _softirqs(blocks))):
        values.append(Value(metric.name, fmean(rates) if rates else None, metric.unit))
    columns: dict[str, tuple[str, Sequence[object]]] = {
        "interval": ("int64", [interval for interval, _, _ in rows]),
        "cpu": ("string", [cpu for _, cpu, _ in rows]),
    }
    for name in ("busy", "idle", "steal"):
        columns[name] = ("float64", [getattr(sample, name) / sample.whole for _, _, sample in rows])
    return Measurement(values, {"mpstat": table(columns)}, list(cpu_cautions(of_all, of_cpu)), diagnostics, dict(facts))


def _rows(blocks: Sequence[Json], diagnostics: list[Diagnostic]) -> Iterator[tuple[int, str, Sample]]:
    for interval, block in enumerate(blocks):
        for load in objects_at(block, "cpu-load"):
            cpu = load.get("cpu")
            parts = [[of_json(load.get(name)) for name in names] for names in (BUSY, IDLE, STEAL)]
            known = [part for group in parts for part in group if part is not None and 0 <= part <= 100]
            sums = [sum(part for part in group if part is not None) for group in parts]
            if not isinstance(cpu, str) or len(known) < sum(map(len, parts)) or not sum(sums):
                diagnostics.append(Diagnostic(f"interval {interval + 1} of a CPU is not as mpstat writes it"))
            else:
                yield interval, cpu, Sample(*sums)


def _interrupts(blocks: Sequence[Json]) -> list[float]:
    """Return interrupts a second, block by block."""
    rates = [
        of_json(total.get("intr"))
        for block in blocks
        for total in objects_at(block, "sum-interrupts")
        if total.get("cpu") == _ALL
    ]
    return [rate for rate in rates if rate is not None and rate >= 0]


def _softirqs(blocks: Sequence[Json]) -> list[float]:
    """Return softirqs a second, block by block, of all CPUs and kinds."""
    sums = []
    for block in blocks:
        rates = [of_json(kind.get("value")) for cpu in objects_at(block, "soft-interrupts") for kind in objects_at(cpu, "intr")]
        present = [rate for rate in rates if rate is not None and rate >= 0]
        if rates and len(present) == len(rates):
            sums.append(sum(present))
    return sums


_BEGINS = re.compile(rb'\s*\{\s*"sysstat"\s*:\s*\{\s*"hosts"\s*:')
_KINDS = re.compile(rb'"(?:cpu-load|sum-interrupts|individual-interrupts|soft-interrupts|node-load)"')
_STATISTICS = re.compile(r'"statistics"\s*:\s*\[')
_FACT = re.compile(r'"(release|number-of-cpus)"\s*:\s*("[^"\\]{1,200}"|[0-9]{1,6})')
_FACTS = {"release": "kernel", "number-of-cpus": "cpus"}


def _recognises_json(head: bytes) -> bool:
    return _BEGINS.match(head) is not None and _KINDS.search(head) is not None


def _read_json(source: Source, options: Document) -> Sequence[Measurement]:
    text = source.text()
    begins = _STATISTICS.search(text)
    if begins is None:
        raise FormatError('has no "statistics"')
    members = list(elements(text, begins.end()))
    blocks, end = [block for block, _ in members], members[-1][1] if members else begins.end()
    diagnostics = []
    whole = [after for _, after in documents(text)]
    if not whole:
        diagnostics.append(Diagnostic("ends early, or is damaged", line_of(text, end)))
    elif text[whole[0] :].strip():
        diagnostics.append(Diagnostic("only the first document is read", line_of(text, whole[0])))
    facts = {_FACTS[name]: value.strip('"') for name, value in _FACT.findall(text[: begins.start()])}
    if len(blocks) == 1 and options.get("one_interval") is not True:
        diagnostics.append(Diagnostic("has one block, which may be about the time since boot; set one_interval if it is not"))
        blocks = []
    elif not blocks:
        diagnostics.append(Diagnostic("has no block"))
    return [_measurement(blocks, diagnostics, facts)]


_HEADING = re.compile(rb"^\d\d:\d\d:\d\d(?: [AP]M)?[ \t]+CPU[ \t]+%usr\b", re.MULTILINE)
_FIRST = re.compile(r"Linux (\S{1,100}) \(.*\(([0-9]{1,6}) CPU\)\s*")
_TIME = re.compile(r"\d\d:\d\d:\d\d\b")


def _read_text(source: Source, options: Document) -> Sequence[Measurement]:
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
        diagnostics.append(Diagnostic("has one interval and no average, so it is about the time since boot"))
        intervals = []
    return [_measurement([{"cpu-load": list(block.values())} for block in intervals], diagnostics, facts)]


def _add(
    blocks: list[dict[str, dict[str, Json]]], row: dict[str, str], whole: bool, number: int, diagnostics: list[Diagnostic]
) -> None:
    """Add a line to its interval: the last one, unless that has the CPU already."""
    try:
        load: dict[str, Json] = {
            name.removeprefix("%"): float(cell.replace(",", ".")) for name, cell in row.items() if name.startswith("%")
        }
    except ValueError:
        whole = False
    if not whole:
        diagnostics.append(Diagnostic("is not a line about a CPU", number))
        return
    if row["CPU"] in blocks[-1]:
        blocks.append({})
    blocks[-1][row["CPU"]] = {"cpu": row["CPU"], **load}


FORMATS = (
    Format("mpstat-json", "CPU time and interrupts over time, from mpstat -o JSON", METRICS, _recognises_json, _read_json),
    Format("mpstat-text", "CPU time over time, as mpstat prints it", METRICS, _HEADING.search, _read_text),
)
