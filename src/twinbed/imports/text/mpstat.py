"""CPU time and interrupts as mpstat's JSON has them; the format ``mpstat-text`` puts its tables into the same blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from twinbed.contracts.format import Diagnostic, Measurement
from twinbed.imports.text.figures import of_json
from twinbed.imports.text.processors import Sample, cpu_cautions, shares
from twinbed.metrics.counters import CPU_BUSY, CPU_IDLE, CPU_STEAL, RATES
from twinbed.metrics.metric import Metric, Value
from twinbed.model.json import Json
from twinbed.model.members import objects_at

METRICS: Sequence[Metric] = (CPU_BUSY, CPU_IDLE, CPU_STEAL, RATES["interrupts"], RATES["softirqs"])
BUSY = ("usr", "nice", "sys", "irq", "soft", "guest", "gnice")
IDLE = ("idle", "iowait")
STEAL = ("steal",)
_ALL = "all"


def reading(blocks: Sequence[Json], diagnostics: list[Diagnostic], facts: Mapping[str, str]) -> Measurement:
    """Return the means over the blocks, each of an interval, and the table ``mpstat``."""
    import pyarrow as pa

    rows = list(_rows(blocks, diagnostics))
    of_all = [sample for _, cpu, sample in rows if cpu == _ALL]
    each: dict[str, list[Sample]] = {}
    for _, cpu, sample in rows:
        each.setdefault(cpu if cpu == _ALL else f"cpu{cpu}", []).append(sample)
    values = list(shares(of_all))
    for metric, rates in ((RATES["interrupts"], _interrupts(blocks)), (RATES["softirqs"], _softirqs(blocks))):
        values.append(Value(metric.name, fmean(rates) if rates else None, metric.unit))
    columns = {
        "interval": pa.array([interval for interval, _, _ in rows], pa.int64()),
        "cpu": pa.array([cpu for _, cpu, _ in rows], pa.string()),
    }
    for name in ("busy", "idle", "steal"):
        columns[name] = pa.array([getattr(sample, name) / sample.whole for _, _, sample in rows], pa.float64())
    return Measurement(values, {"mpstat": pa.table(columns)}, list(cpu_cautions(of_all, each)), diagnostics, dict(facts))


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
    """A second, block by block."""
    rates = [
        of_json(each.get("intr")) for block in blocks for each in objects_at(block, "sum-interrupts") if each.get("cpu") == _ALL
    ]
    return [rate for rate in rates if rate is not None and rate >= 0]


def _softirqs(blocks: Sequence[Json]) -> list[float]:
    """A second, block by block: those of all CPUs and kinds."""
    sums = []
    for block in blocks:
        rates = [of_json(each.get("value")) for cpu in objects_at(block, "soft-interrupts") for each in objects_at(cpu, "intr")]
        present = [rate for rate in rates if rate is not None and rate >= 0]
        if rates and len(present) == len(rates):
            sums.append(sum(present))
    return sums
