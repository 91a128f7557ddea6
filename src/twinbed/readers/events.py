"""Output of ``twinbed-probe events`` (docs/probe/EVENTS.md): one place's hits, values and rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.metrics.events import ACCESSES, HITS, SECONDS
from twinbed.metrics.metric import Value
from twinbed.model.caution import Caution, Kind

if TYPE_CHECKING:
    import pyarrow as pa

HEAD = "twinbed-events 1"
NANOSECOND_S = 1e-9
FEWEST_SOFTIRQS = 1000
"""Softirqs in windows from which on their share estimates the share of the traffic. Packets of guests' taps make none."""


@dataclass(frozen=True, slots=True)
class Lasted:
    """One kind: how often it happened, how often its time is known, and that time."""

    hits: int
    timed: int
    seconds: float
    least_s: float
    most_s: float


@dataclass(frozen=True, slots=True)
class Place:
    """The machine or a host with a kernel of its own."""

    name: str
    scales: Mapping[str, float | None]
    """Tracepoint or KVM's kind -> estimated ratio of all hits to the hits seen; None where nothing could be seen."""
    hits: Mapping[str, Mapping[str, int]]
    """Tracepoint -> device -> hits; a tracepoint that the kernel refused is not there."""
    lasted: Mapping[str, Lasted]
    refused: Mapping[str, str]
    """Tracepoint or KVM's kind -> why it is not counted."""
    lost: int
    missed: int | None

    def values(self) -> Iterator[Value]:
        for tracepoint, metric in HITS.items():
            counted = self.hits.get(tracepoint)
            total = None if counted is None else self._scaled(tracepoint, sum(counted.values()))
            yield Value(metric.name, total, metric.unit, self.name)
        for kind, metric in ACCESSES.items():
            of = self.lasted.get(kind)
            yield Value(metric.name, None if of is None else self._scaled(kind, of.hits), metric.unit, self.name)
            yield Value(SECONDS[kind].name, self._seconds(kind), SECONDS[kind].unit, self.name)

    def _scaled(self, event: str, hits: float) -> float | None:
        scale = self.scales[event]
        return None if scale is None else hits * scale

    def _seconds(self, kind: str) -> float | None:
        """Return the time of all hits, by the mean of those whose time is known."""
        of = self.lasted.get(kind)
        if of is None or (of.hits and not of.timed):
            return None
        return self._scaled(kind, of.hits * of.seconds / of.timed if of.timed else 0.0)

    def table(self) -> pa.Table:
        """Return host, source, event, device, hits, count, seconds, least_s, mean_s, most_s. Null is unknown."""
        import pyarrow as pa

        texts = ("host", "source", "event", "device")
        numbers = ("count", "seconds", "least_s", "mean_s", "most_s")
        schema = pa.schema(
            [*((name, pa.string()) for name in texts), ("hits", pa.int64()), *((name, pa.float64()) for name in numbers)]
        )
        return pa.Table.from_pylist(list(self._rows()), schema)

    def _rows(self) -> Iterator[dict[str, str | int | float | None]]:
        for tracepoint in HITS:
            if tracepoint in self.refused:
                yield {"host": self.name, "source": "net", "event": tracepoint}
            for device, hits in self.hits.get(tracepoint, {}).items():
                of_device = {"source": "net", "event": tracepoint, "device": device or None}
                yield {"host": self.name, **of_device, "hits": hits, "count": self._scaled(tracepoint, hits)}
        for kind in ACCESSES:
            of = self.lasted.get(kind)
            row = {"host": self.name, "source": "kvm", "event": kind, "seconds": self._seconds(kind)}
            if of is not None:
                row |= {"hits": of.hits, "count": self._scaled(kind, of.hits)}
            if of is not None and of.timed:
                row |= {"least_s": of.least_s, "mean_s": of.seconds / of.timed, "most_s": of.most_s}
            yield row

    def cautions(self) -> Iterator[Caution]:
        if self.lost:
            yield Caution(Kind.EVENTS_LOST, f"{self.lost} of devices for which there was no room", self.name)
        if self.missed:
            yield Caution(Kind.EVENTS_LOST, f"{self.missed} during another on the same CPU", self.name)


def read_place(file: Path) -> Place:
    """Read a file. Raises OSError, or ValueError where it is not whole."""
    lines = file.read_text(errors="replace").splitlines()
    if not lines or lines[0] != HEAD or lines[-1] != "end":
        raise ValueError(f"{file.name} is not whole: it begins with {HEAD!r} and ends with 'end'")
    facts: dict[str, str] = {}
    spans: dict[str, tuple[int, int]] = {}
    hits: dict[str, dict[str, int]] = {}
    lasted: dict[str, Lasted] = {}
    refused: dict[str, str] = {}
    for line in lines[1:-1]:
        word, _, rest = line.partition(" ")
        if word == "counted":
            source, event, ns, softirqs = rest.split(" ")
            spans[event] = int(ns), int(softirqs)
            if source == "net":
                hits[event] = {}
        elif word == "refused":
            _source, event, reason = rest.split(" ", 2)
            refused[event] = reason
        elif word == "hits":
            event, number, device = rest.split(" ", 2)
            # Devices of one name in several network namespaces are one.
            hits[event][device] = hits[event].get(device, 0) + int(number)
        elif word == "lasted":
            kind, *numbers = rest.split(" ")
            count, timed, total, least, most = map(int, numbers)
            lasted[kind] = Lasted(count, timed, *(NANOSECOND_S * duration_ns for duration_ns in (total, least, most)))
        else:
            facts[word] = rest
    whole = int(facts["end_ns"]) - int(facts["start_ns"]), int(facts["softirqs"])
    scales = {event: 1.0 if float(facts["share"]) == 1 else _scale(span, whole, event in hits) for event, span in spans.items()}
    missed = None if facts["missed"] == "-" else int(facts["missed"])
    return Place(file.parent.name, scales, hits, lasted, refused, int(facts["lost"]), missed)


def _scale(span: tuple[int, int], whole: tuple[int, int], of_packets: bool) -> float | None:
    """Estimate the ratio for events of packets by softirqs that received packets; for others, or with too few, by time."""
    ns, softirqs = span
    if of_packets and softirqs >= FEWEST_SOFTIRQS:
        return whole[1] / softirqs
    return whole[0] / ns if ns > 0 else None
