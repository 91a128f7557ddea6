"""Workload ``imported``: measurements of other programs, in files that are read as they are.

It runs nothing, and no study file may name it: ``twinbed import`` writes runs of it.  A run has one or more files.  Each has
its format and, where it holds several measurements, the place of one.  Values of a file are the run's, or of the host that the
import names.  A file of several measurements, a copy of which is in each of several runs, is read once.
"""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from twinbed.contracts.extracted import Extracted
from twinbed.contracts.format import Format, Measurement
from twinbed.contracts.params import WorkloadParams
from twinbed.contracts.workload import Described, Workload, WorkloadPlan
from twinbed.imports.text.source import File, read
from twinbed.metrics.metric import Metric, Value
from twinbed.metrics.own import OwnMetric
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document

if TYPE_CHECKING:
    import pyarrow as pa

MOST_KEPT = 8
"""Files that are remembered: runs of a few tables may come in turn."""


@dataclass(frozen=True, slots=True)
class _Several:
    format: Format
    file: str
    options: Document
    sha256: bytes
    measurements: Sequence[Measurement]


class Repeated:
    """Remembers the last files that it read, and forgets them with its owner. Several threads may ask it."""

    def __init__(self) -> None:
        self._last: deque[_Several] = deque(maxlen=MOST_KEPT)
        self._lock = threading.Lock()

    def measurements(self, kind: Format, file: File, options: Document) -> Sequence[Measurement]:
        """Return the measurements of a file. Raises FormatError."""
        if file.then:
            return read(kind, file, options)
        with self._lock:
            alike = [
                cached for cached in self._last if (cached.format, cached.file, cached.options) == (kind, file.name, options)
            ]
        digest = _sha256(file.path) if alike else b""
        same = next((cached for cached in alike if digest and cached.sha256 == digest), None)
        if same is not None:
            return same.measurements
        measurements_ = read(kind, file, options)
        if len(measurements_) > 1:
            several = _Several(kind, file.name, options, digest or _sha256(file.path), measurements_)
            with self._lock:
                self._last.append(several)
        return measurements_


def _sha256(path: Path) -> bytes:
    """Return the hash; empty where the file cannot be read, as reading it reports."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").digest()
    except OSError:
        return b""


ALIKE = 1e-4
"""Share by which two files of a run may differ: both ends of a stream time it, a little apart."""


class ImportedFile(BaseModel):
    """One file of a run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(description="below the run's artifacts")
    then: tuple[str, ...] = Field((), description="files that are read below it, as one")
    format: str = Field(description="the format's name")
    piece: int = Field(0, ge=0, description="which of its measurements, from 0")
    host: str = Field("", description="the host that it is from; empty for the run as a whole")
    options: dict[str, JsonValue] = Field(default_factory=dict, description="what the manifest says of such files")
    prefix: Literal["", "label", "host", "date", "log"] = Field(
        "", description="the text that is removed from the start of each line"
    )


class ImportedParams(WorkloadParams):
    """The files and metrics of a run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: tuple[ImportedFile, ...] = Field(description="its files")
    metrics: tuple[OwnMetric, ...] = Field((), description="metrics that the manifest declares")


@dataclass(frozen=True)
class Imported(Workload[ImportedParams]):
    """The workload, with the formats that there are."""

    formats: Callable[[], Mapping[str, Format]]
    repeated: Repeated = field(default_factory=Repeated, init=False, repr=False, compare=False)
    name = "imported"
    params = ImportedParams
    summary = "what was measured elsewhere"
    files = ("*",)
    raw = "the files that were imported"
    metrics: Sequence[Metric] = ()
    work = ""
    rate = ""

    def __reduce__(self) -> tuple[type[Imported], tuple[Callable[[], Mapping[str, Format]]]]:
        """Start without remembered files in another process."""
        return type(self), (self.formats,)

    def described(self, params: ImportedParams) -> Described:
        """Return the metrics of the formats of a run's files; the work is that of the first that has any."""
        metrics: dict[str, Metric] = {}
        used = [self.formats()[file.format] for file in params.files if file.format in self.formats()]
        for kind in used:
            metrics.update((metric.name, metric) for metric in kind.metrics)
        metrics.update((own.name, own.metric()) for own in params.metrics)
        work = next((kind.work for kind in used if kind.work), "")
        rate = next((kind.rate for kind in used if kind.rate), "")
        return Described(tuple(metrics.values()), work, rate)

    def plan(self, params: ImportedParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        """Return an empty plan: nothing is run again."""
        return WorkloadPlan()

    def parse(self, params: ImportedParams, artifacts: Path) -> Extracted:
        """Read a run's files. Raises FormatError or LookupError where a file cannot be read at all."""
        values: dict[tuple[str, str, str], tuple[Value, float]] = {}
        tables: dict[str, list[pa.Table]] = {}
        cautions: list[Caution] = []
        for file in params.files:
            measurement = self._reading(file, artifacts)
            for value in _placed(measurement, file.host):
                place = (value.metric, value.host, value.direction)
                resolution = measurement.resolution.get(value.metric, 0.0)
                before = values.get(place)
                if before is not None and _contradict(value, before[0], resolution + before[1]):
                    detail = f"{file.path}: {value.metric} is {value.value}, but {before[0].value} in another file of the run"
                    cautions.append(Caution(Kind.CONTRADICTED, detail))
                elif before is None or before[0].value is None or (value.value is not None and resolution < before[1]):
                    values[place] = value, resolution
            for name, table in measurement.tables.items():
                tables.setdefault(name, []).append(of_host(table, file.host))
            cautions += measurement.cautions
            cautions += [
                Caution(Kind.UNREADABLE, f"{file.path}: {diagnostic}")
                for diagnostic in measurement.diagnostics
                if not diagnostic.harmless
            ]
        return Extracted(
            [value for value, _ in values.values()], {name: _joined(parts) for name, parts in tables.items()}, cautions
        )

    def _reading(self, file: ImportedFile, artifacts: Path) -> Measurement:
        if file.format not in self.formats():
            raise LookupError(f"{file.path}: this twinbed has no format {file.format}; update twinbed")
        measurements = self.repeated.measurements(self.formats()[file.format], _opened(file, artifacts), file.options)
        if file.piece >= len(measurements):
            raise LookupError(f"{file.path} has only {len(measurements)} measurements, so none with number {file.piece + 1}")
        return measurements[file.piece]


def _opened(file: ImportedFile, artifacts: Path) -> File:
    return File(artifacts / file.path, file.path, tuple(File(artifacts / path, path) for path in file.then), file.prefix)


def _contradict(value: Value, other: Value, resolution: float) -> bool:
    if value.value is None or other.value is None:
        return False
    return abs(value.value - other.value) > resolution + ALIKE * max(abs(value.value), abs(other.value))


def _placed(measurement: Measurement, host: str) -> Iterator[Value]:
    for value in measurement.values:
        yield value if value.host or not host else replace(value, host=host)


def of_host(table: pa.Table, host: str) -> pa.Table:
    """Return the table with its empty hosts named."""
    import pyarrow.compute as pc

    if not host or "host" not in table.column_names:
        return table
    column = table["host"]
    named = pc.if_else(pc.equal(pc.fill_null(column, ""), ""), host, column)
    return table.set_column(table.column_names.index("host"), "host", named)


def _joined(parts: Sequence[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return parts[0] if len(parts) == 1 else pa.concat_tables(parts, promote_options="permissive")
