"""What ``twinbed-probe events`` writes (crates/probe/EVENTS.md), read: one place's hits, values and rows."""

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


@dataclass(frozen=True, slots=True)
class Lasted:
    """Of one kind: how often it happened, how often its time is known, and that time."""

    hits: int
    timed: int
    seconds: float
    least_s: float
    most_s: float


@dataclass(frozen=True, slots=True)
class Place:
    """The machine or a host with a kernel of its own."""

    name: str
    scale: float | None
    """The time from the first to the last moment, over that in which hits were counted; None where none were."""
    windows: int
    hits: Mapping[str, Mapping[str, int]]
    """Tracepoint -> device -> hits; a tracepoint that the kernel refused is not there."""
    lasted: Mapping[str, Lasted]
    refused: Mapping[str, str]
    """Tracepoint, or kind of KVM's -> why it is not counted."""
    lost: int
    missed: int | None

    def values(self) -> Iterator[Value]:
        for tracepoint, metric in HITS.items():
            counted = self.hits.get(tracepoint)
            yield Value(metric.name, None if counted is None else self._scaled(sum(counted.values())), metric.unit, self.name)
        for kind, metric in ACCESSES.items():
            of = self.lasted.get(kind)
            yield Value(metric.name, None if of is None else self._scaled(of.hits), metric.unit, self.name)
            yield Value(SECONDS[kind].name, self._seconds(of), SECONDS[kind].unit, self.name)

    def _scaled(self, hits: float) -> float | None:
        return None if self.scale is None else hits * self.scale

    def _seconds(self, of: Lasted | None) -> float | None:
        """Of all hits, by the mean of those whose time is known."""
        if of is None or (of.hits and not of.timed):
            return None
        return self._scaled(of.hits * of.seconds / of.timed if of.timed else 0.0)

    def table(self) -> pa.Table:
        """host, source, event, device, hits, count, seconds, least_s, mean_s, most_s. Null is not known."""
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
                yield {"host": self.name, **of_device, "hits": hits, "count": self._scaled(hits)}
        for kind in ACCESSES:
            of = self.lasted.get(kind)
            row = {"host": self.name, "source": "kvm", "event": kind, "seconds": self._seconds(of)}
            if of is not None:
                row |= {"hits": of.hits, "count": self._scaled(of.hits)}
            if of is not None and of.timed:
                row |= {"least_s": of.least_s, "mean_s": of.seconds / of.timed, "most_s": of.most_s}
            yield row

    def cautions(self) -> Iterator[Caution]:
        if self.lost:
            yield Caution(Kind.EVENTS_LOST, f"{self.lost} of devices beyond those for which there was room", self.name)
        if self.missed:
            yield Caution(Kind.EVENTS_LOST, f"{self.missed} during another on the same CPU", self.name)


def read_place(file: Path) -> Place:
    """Raises OSError, or ValueError where it is not whole."""
    lines = file.read_text(errors="replace").splitlines()
    if not lines or lines[0] != HEAD or lines[-1] != "end":
        raise ValueError(f"{file.name} is not whole: it begins with {HEAD!r} and ends with 'end'")
    facts: dict[str, str] = {}
    hits: dict[str, dict[str, int]] = {}
    lasted: dict[str, Lasted] = {}
    refused: dict[str, str] = {}
    for line in lines[1:-1]:
        word, _, rest = line.partition(" ")
        if word == "counted":
            source, _, event = rest.partition(" ")
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
            lasted[kind] = Lasted(count, timed, *(NANOSECOND_S * each for each in (total, least, most)))
        else:
            facts[word] = rest
    attached = int(facts["attached_ns"])
    scale = (int(facts["end_ns"]) - int(facts["start_ns"])) / attached if attached > 0 else None
    missed = None if facts["missed"] == "-" else int(facts["missed"])
    return Place(file.parent.name, scale, int(facts["windows"]), hits, lasted, refused, int(facts["lost"]), missed)
