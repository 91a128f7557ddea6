"""CPU time as tools print it, sample by sample: shares of the whole, and cautions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from twinbed.metrics.counters import CPU_BUSY, CPU_IDLE, CPU_STEAL
from twinbed.metrics.metric import Value
from twinbed.model.caution import Caution, Kind
from twinbed.readers.counters.cautions import IDLE_SHARE, STEAL_SHARE


@dataclass(frozen=True, slots=True)
class Sample:
    """Parts of one interval, in any unit, and not all 0. ``idle`` holds the time that waited for disks."""

    busy: float
    idle: float
    steal: float

    @property
    def whole(self) -> float:
        return self.busy + self.idle + self.steal


def shares(samples: Sequence[Sample]) -> Iterator[Value]:
    """Yield the shares of all samples together, which are taken to be equally long."""
    whole = sum(sample.whole for sample in samples)
    parts = (
        (CPU_BUSY, sum(sample.busy for sample in samples)),
        (CPU_IDLE, sum(sample.idle for sample in samples)),
        (CPU_STEAL, sum(sample.steal for sample in samples)),
    )
    for metric, part in parts:
        yield Value(metric.name, part / whole if whole > 0 else None, metric.unit)


def cpu_cautions(samples: Sequence[Sample], by_cpu: Mapping[str, Sequence[Sample]]) -> Iterator[Caution]:
    """Yield the cautions of the instrument ``counters``. ``each``: a CPU's own samples, or those of all CPUs as one."""
    busy = {cpu: median(1 - sample.idle / sample.whole for sample in own) for cpu, own in by_cpu.items() if own}
    if exhausted := {cpu: share for cpu, share in busy.items() if share > 1 - IDLE_SHARE}:
        yield Caution(
            Kind.CPU_EXHAUSTED, "busy: " + ", ".join(f"{cpu} {share:.1%}" for cpu, share in sorted(exhausted.items()))
        )
    whole, steal = sum(sample.whole for sample in samples), sum(sample.steal for sample in samples)
    if whole > 0 and steal / whole > STEAL_SHARE:
        yield Caution(Kind.STEAL, f"{steal / whole:.1%} of the CPU time")
