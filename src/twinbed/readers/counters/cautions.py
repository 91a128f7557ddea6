"""Cautions from counters and the kernel's log."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from twinbed import _core
from twinbed.contracts.place import MACHINE
from twinbed.model.caution import Caution, Kind
from twinbed.readers.counters.place import Place
from twinbed.readers.kernel_log import nic_trouble

IDLE_SHARE = 0.02
"""A CPU that is idle for less of its time is exhausted."""
STEAL_SHARE = 0.01
SHORT = 0.5
"""Intervals shorter than this share of the longest are left out: the last one ends when the instrument is stopped."""

_CPU_TICKS = re.compile(r"(cpu\d+)\.(user|nice|system|idle|iowait|irq|softirq|steal)_ticks")
_IDLE = frozenset({"idle", "iowait"})


def place_cautions(place: Place) -> Iterator[Caution]:
    """Yield cautions on a place's CPUs, and on the file."""
    if place.has_kernel:
        exhausted = {cpu: busy for cpu, busy in busy_shares(place).items() if busy > 1 - IDLE_SHARE}
        if exhausted:
            which = ", ".join(f"{cpu} {busy:.1%}" for cpu, busy in sorted(exhausted.items()))
            yield Caution(Kind.CPU_EXHAUSTED, f"busy on {_shown(place)}: {which}")
        steal = place.cpu_share(r"cpu\.steal_ticks")
        if steal is not None and steal > STEAL_SHARE:
            yield Caution(Kind.STEAL, f"{steal:.1%} of the CPU time of {_shown(place)}")
    if int(place.facts["snapshots"]) < 2:
        yield Caution(Kind.UNREADABLE, f"{place.name}: one snapshot only, so there are no differences")
    if "cut_off" in place.facts:
        yield Caution(Kind.UNREADABLE, f"{place.name}: the last snapshot is not whole: {place.facts['cut_off']}")


def log_cautions(place: Place) -> Iterator[Caution]:
    """Yield cautions on a place's NICs, from its kernel's log, and on the log."""
    if trouble := nic_trouble(_shown(place), place.log["text"].to_pylist()):
        yield trouble
    lost = int(place.facts["lost"])
    if lost:
        yield Caution(Kind.UNREADABLE, f"{place.name}: {lost} records of the kernel log were overwritten before they were read")


def busy_shares(place: Place) -> dict[str, float]:
    """Return CPU -> share of time that it was not idle: the median over the intervals between snapshots.

    Not over all time at once, since the workload begins after the first snapshot and ends before the last.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    intervals = _core.counter_intervals(str(place.file))
    stat = intervals.filter(pc.equal(intervals["source"].cast(pa.string()), "/proc/stat"))
    columns = [stat[name].to_pylist() for name in ("snapshot", "start_monotonic_s", "end_monotonic_s", "key", "difference")]
    ticks: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    lengths: dict[int, float] = {}
    for snapshot, start_s, end_s, key, difference in zip(*columns, strict=True):
        match = _CPU_TICKS.fullmatch(key)
        if match and difference is not None:
            ticks[match[1], snapshot][match[2]] = difference
            lengths[snapshot] = end_s - start_s
    idle = _IDLE | {"nice"} if place.kept_awake else _IDLE
    longest = max(lengths.values(), default=0.0)
    shares: dict[str, list[float]] = defaultdict(list)
    for (cpu, snapshot), states in ticks.items():
        whole = sum(states.values())
        if whole and lengths[snapshot] >= SHORT * longest:
            shares[cpu].append(1 - sum(states.get(state, 0.0) for state in idle) / whole)
    return {cpu: median(of_cpu) for cpu, of_cpu in shares.items()}


def _shown(place: Place) -> str:
    return "the machine" if place.name == MACHINE else place.name
