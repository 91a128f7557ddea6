"""One place's snapshot file: values, rows for tables, facts for cautions, and interrupts by line.

A line of interrupts is known by the kernel's name for it (its chip and its handler), as ``IO-APIC 4-edge ttyS0``, since its
number may differ between boots; lines of one name are one. Lines of the architecture keep their label: ``LOC``, ``RES``,
``ERR``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed.metrics.counters import (
    CPU_BUSY,
    CPU_IDLE,
    CPU_STEAL,
    KERNEL,
    MEMORY_AVAILABLE,
    NETWORK,
    NIC_METRICS,
    RATES,
    WAKE_UP_LATENCY,
    WAKE_UP_TIME,
    WAKE_UPS,
    CounterMetric,
)
from twinbed.metrics.metric import Value
from twinbed.model.kernel import KEPT_AWAKE

if TYPE_CHECKING:
    import pyarrow as pa

KERNEL_MARK = "/proc/net/softnet_stat"
"""The source that is read only where the kernel is the place's own."""
OF_A_NAMESPACE = re.compile(r"/proc/net/|ethtool |tc ")
"""Sources that belong to a network namespace."""

OF_WAITING = ("/proc/schedstat", "/proc/pressure/cpu")
"""Sources that count threads waiting for a CPU, of whatever class."""

_BUSY = r"cpu\.(user|nice|system|irq|softirq)_ticks"
_IDLE = r"cpu\.(idle|iowait)_ticks"
_STEAL = r"cpu\.steal_ticks"
_ALL = r"cpu\.(user|nice|system|idle|iowait|irq|softirq|steal)_ticks"
# guest and guest_nice are in user and nice already.


@dataclass(frozen=True, slots=True)
class Place:
    """The machine or a host."""

    name: str
    differences: pa.Table
    log: pa.Table
    file: Path
    deltas: Mapping[str, Mapping[str, float | None]]
    """Source -> key -> difference, of the sources that the place has."""
    means: Mapping[str, float | None]
    """Gauge -> mean over the snapshots."""
    seconds: float | None
    """From the first to the last snapshot."""
    facts: Mapping[str, str]
    """The reader's facts of the file."""
    kept_awake: bool = False
    """True if threads of the idle class kept CPUs awake: nice time of /proc/stat is then idle time."""

    @property
    def has_kernel(self) -> bool:
        """Return whether the kernel is the place's own, and not the machine's below a container."""
        return KERNEL_MARK in self.sources

    @property
    def sources(self) -> frozenset[str]:
        """Return all sources that were asked for, there or not."""
        return frozenset(self.differences["source"].to_pylist())

    def total(self, source: str, pattern: str) -> float | None:
        """Return the sum of the differences of all keys that match; None where one is missing or there is none."""
        keys = self.deltas.get(source, {})
        matching = [difference for key, difference in keys.items() if re.fullmatch(pattern, key)]
        present = [difference for difference in matching if difference is not None]
        return sum(present) if present and len(present) == len(matching) else None

    def cpu_share(self, pattern: str) -> float | None:
        """Return a part of all CPU time, 0 to 1."""
        part, whole = self.total("/proc/stat", pattern), self.total("/proc/stat", _ALL)
        return part / whole if part is not None and whole else None

    def wake_up_s(self) -> float | None:
        """Return the mean time from waking a task until it ran on an idle CPU; None where none was counted."""
        count, total_s = self._total(WAKE_UPS), self._total(WAKE_UP_TIME)
        return total_s / count if count and total_s is not None else None

    def values(self) -> Iterator[Value]:
        if self.has_kernel:
            yield from (self._value(counter) for counter in KERNEL)
            for share, states in ((CPU_BUSY, _BUSY), (CPU_IDLE, _IDLE), (CPU_STEAL, _STEAL)):
                yield Value(share.name, self.cpu_share(states), share.unit, self.name)
            yield from (self._rate(counter) for counter in KERNEL if counter.metric.name in RATES)
            yield Value(WAKE_UP_LATENCY.name, self.wake_up_s(), WAKE_UP_LATENCY.unit, self.name)
            memory = self.means.get("meminfo:MemAvailable_bytes")
            yield Value(MEMORY_AVAILABLE.name, memory, MEMORY_AVAILABLE.unit, self.name)
        yield from (self._value(counter) for counter in NETWORK)
        nics = "|".join(re.escape(nic) for nic in self.nics())
        for name, metric in NIC_METRICS.items():
            total = self.total("/proc/net/dev", rf"net/dev:({nics})\.{name.removeprefix('nic_')}")
            yield Value(name, total, metric.unit, self.name)

    def _value(self, counter: CounterMetric) -> Value:
        return Value(counter.metric.name, self._total(counter), counter.metric.unit, self.name)

    def _total(self, counter: CounterMetric) -> float | None:
        total = self.total(counter.source, counter.pattern)
        return total * counter.factor if total is not None else None

    def _rate(self, counter: CounterMetric) -> Value:
        rate, total = RATES[counter.metric.name], self.total(counter.source, counter.pattern)
        return Value(rate.name, total / self.seconds if total is not None and self.seconds else None, rate.unit, self.name)

    def nics(self) -> Sequence[str]:
        """Return the interfaces that ethtool was asked about; without any, all but loopback."""
        asked = [source.removeprefix("ethtool -k ") for source in self.sources if source.startswith("ethtool -k ")]
        if asked:
            return sorted(asked)
        devices = {key.removeprefix("net/dev:").rpartition(".")[0] for key in self.deltas.get("/proc/net/dev", {})}
        return sorted(devices - {"lo"})

    def moved(self) -> pa.Table:
        """Return rows of the table ``counters``: without counters that did not change, and without another's kernel."""
        import pyarrow as pa
        import pyarrow.compute as pc

        stood = pc.and_(pc.equal(self.differences["kind"], "counter"), pc.equal(self.differences["difference"], 0.0))
        shown = pc.invert(pc.fill_null(stood, False))
        if not self.has_kernel:
            own = pa.array([source for source in self.sources if OF_A_NAMESPACE.match(source)], pa.string())
            shown = pc.and_(shown, pc.is_in(self.differences["source"], own))
        return self._named(self.differences.filter(shown))

    def log_rows(self) -> pa.Table:
        return self._named(self.log)

    def _named(self, table: pa.Table) -> pa.Table:
        import pyarrow as pa

        named = table.replace_schema_metadata(None)
        return named.add_column(0, "host", pa.array([self.name] * table.num_rows, pa.string()))


def read_place(file: Path) -> Place:
    """Read a file. Raises OSError, or ArtifactError (a ValueError) where not even one snapshot can be read."""
    differences = _core.counter_differences(str(file))
    log = _core.kernel_log(str(file))
    deltas: dict[str, dict[str, float | None]] = {}
    means: dict[str, float | None] = {}
    times = [seconds for seconds in differences["seconds"].to_pylist() if seconds is not None]
    columns = [differences[name].to_pylist() for name in ("source", "key", "kind", "difference", "mean")]
    for source, key, kind, difference, mean in zip(*columns, strict=True):
        if key is not None and kind == "counter":
            deltas.setdefault(source, {})[key] = difference
        elif key is not None and kind == "gauge":
            means[key] = mean
    kept_awake = (file.parent / KEPT_AWAKE).exists()
    return Place(
        file.parent.name,
        differences,
        log,
        file,
        _without_spinners(deltas) if kept_awake else deltas,
        means,
        max(times, default=None),
        _facts(differences) | _facts(log),
        kept_awake,
    )


def _without_spinners(deltas: Mapping[str, Mapping[str, float | None]]) -> Mapping[str, Mapping[str, float | None]]:
    """Leave out the threads that keep CPUs awake: their time is idle time, and their waiting for a CPU is no delay."""
    kept = {source: dict(keys) for source, keys in deltas.items() if source not in OF_WAITING}
    times = kept.get("/proc/stat", {})
    for key, nice in list(times.items()):
        idle = key.replace(".nice_", ".idle_")
        if idle != key and nice is not None and (rest := times.get(idle)) is not None:
            times |= {key: 0.0, idle: rest + nice}
    return kept


def _facts(table: pa.Table) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in (table.schema.metadata or {}).items()}


SOURCE = "/proc/interrupts"
_KEY = re.compile(r"intr\.(?P<line>[^(.]+)(?:\((?P<name>.*)\))?(?:\.cpu\d+)?")


def interrupt_table(places: Sequence[Place]) -> pa.Table:
    """Return one row a line of each kernel: host, line, count; null where a CPU's count is not known at both ends."""
    import pyarrow as pa

    rows: dict[tuple[str, str], float | None] = {}
    for place in places:
        for key, difference in place.deltas.get(SOURCE, {}).items() if place.has_kernel else ():
            match = _KEY.fullmatch(key)
            if match is None:
                continue
            line = match["name"] if match["line"].isdigit() and match["name"] else match["line"]
            so_far = rows.get((place.name, line), 0.0)
            rows[place.name, line] = None if so_far is None or difference is None else so_far + difference
    names = pa.schema([("host", pa.string()), ("line", pa.string()), ("count", pa.float64())])
    return pa.Table.from_pylist([{"host": host, "line": line, "count": of} for (host, line), of in rows.items()], schema=names)
