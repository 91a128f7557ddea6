"""Published results as a source: one snapshot, for as long as it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinbed.model.columns import PlannedRuns, Records
from twinbed.results.bucket.address import Address
from twinbed.results.bucket.objects import BucketError, Objects, Stored
from twinbed.results.bucket.snapshot import Snapshot, latest
from twinbed.results.catalogue import FEW, PLANNED_FEW, READ, planned_of, records_of
from twinbed.results.listed import OURS
from twinbed.results.parquet import Room, free_bytes
from twinbed.results.schema import check
from twinbed.results.source import Catalogue

_AT_ONCE = 8
"""Objects requested at the same time: most of the time passes while waiting for answers."""
_TEXT_BYTES = 16 * 2**20
_TEXT_RATIO = 20
"""The most bytes of texts for each stored byte, beyond those."""
T = TypeVar("T")


class BucketSource:
    """Results published at an address. Every method raises BucketError if something cannot be read."""

    def __init__(self, address: Address) -> None:
        """Open the latest snapshot. Raises BucketError if nothing was published."""
        self._objects = Objects(address)
        snapshot = latest(self._objects)
        if snapshot is None:
            raise BucketError(
                f"{address}: no results were published there", advice=f"`twinbed publish RESULTS {address}` publishes a folder"
            )
        self.snapshot: Snapshot = snapshot

    def read(self, name: str) -> bytes:
        if name not in self.snapshot.files:
            raise FileNotFoundError(name)
        return bytes(self._objects.checked(self.snapshot.files[name]))

    def link_checks(self) -> Sequence[str]:
        return sorted(name for name in self.snapshot.files if name.startswith("links/"))

    def catalogue(self) -> Catalogue:
        tables = self._catalogues
        if not tables:
            return Catalogue(Records.of([]), dict, [])
        table = pa.concat_tables(tables)
        return Catalogue(self._understood(records_of, table), partial(_digests, table), [])

    @cached_property
    def _catalogues(self) -> Sequence[pa.Table]:
        """Return the catalogue of each batch."""
        return catalogues(self._objects, self.snapshot, READ, FEW)

    def planned(self) -> PlannedRuns | None:
        if self.snapshot.planned is None:
            return None
        (table,) = opened(self._objects, [self.snapshot.planned], Room(), few=PLANNED_FEW)
        with strange(self._objects, "its planned runs"):
            whole = table.read()
            check("planned", whole)
            _refuse_long(whole, PLANNED_FEW, self.snapshot.planned.bytes)
            _refuse_twice([whole])
            return planned_of(whole)

    def tables(self) -> Sequence[str]:
        return sorted({name for batch in self.snapshot.batches for name in batch.tables})

    def parts(self, table: str) -> Sequence[tuple[str, pa.NativeFile]]:
        """Return the objects of a table, each of which has rows of its batch's runs only."""
        with_runs = zip(self.snapshot.batches, self._catalogues, strict=True)
        stored = [(file, runs["run"]) for batch, runs in with_runs for file in batch.tables.get(table, ())]
        contents = _contents(self._objects, [file for file, _ in stored])
        for content, (part, runs) in zip(contents, stored, strict=True):
            with strange(self._objects, f"the table {table} in {part.name}"):
                file = Room().opened(pa.BufferReader(content), ["run"], ["run"])
                rows = file.read(columns=["run"])["run"].unique()
                if not pc.all(pc.is_in(rows.cast(pa.string()), runs), min_count=0).as_py():
                    raise ValueError("it has rows of runs that are not in its batch")
        return [(file.name, pa.BufferReader(content)) for content, (file, _) in zip(contents, stored, strict=True)]

    def _understood(self, read: Callable[[pa.Table], T], table: pa.Table) -> T:
        with strange(self._objects, f"snapshot {self.snapshot.number}"):
            return read(table)


def catalogues(objects: Objects, snapshot: Snapshot, columns: Sequence[str], few: Sequence[str]) -> Sequence[pa.Table]:
    """Return the runs of each batch, ``few`` as dictionaries. Raises BucketError if one is no catalogue, or a run is there
    twice."""
    for number, batch in enumerate(snapshot.batches, start=1):
        for name in OURS:
            if batch.runs and not batch.tables.get(name):
                with strange(objects, f"snapshot {snapshot.number}"):
                    raise ValueError(f"its batch {number} has no table {name}")
    stored = [batch.catalogue for batch in snapshot.batches]
    tables = []
    for batch, file in zip(snapshot.batches, opened(objects, stored, Room(), columns, few), strict=True):
        with strange(objects, f"the catalogue {batch.catalogue.name}"):
            table = file.read(columns=columns)
            check("catalogue", table, columns)
            if table.num_rows != batch.runs:
                raise ValueError(f"it has {table.num_rows:,} runs; the snapshot says {batch.runs:,}")
            tables.append(table)
    with strange(objects, f"snapshot {snapshot.number}"):
        _refuse_twice(tables)
        for table, catalogue in zip(tables, stored, strict=True):
            _refuse_long(table, few, catalogue.bytes)
    return tables


def opened(
    objects: Objects, stored: Sequence[Stored], room: Room, columns: Sequence[str] | None = None, few: Sequence[str] = ()
) -> Iterator[pq.ParquetFile]:
    """Open objects that are Parquet, to be read within bounds of memory. Raises BucketError."""
    for entry, content in zip(stored, _contents(objects, stored), strict=True):
        with strange(objects, entry.name):
            file = room.opened(pa.BufferReader(content), columns, few)
        yield file


def _contents(objects: Objects, stored: Sequence[Stored]) -> Sequence[memoryview]:
    most, together = free_bytes() // 2, sum(entry.bytes for entry in stored)
    if together > most:
        raise BucketError(
            f"{objects.address}: objects of {together:,} bytes must be read at once, but half of the free memory is {most:,}",
            advice="read them on a machine with more memory",
        )
    if len(stored) < 2:
        return [objects.checked(entry) for entry in stored]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(objects.checked, stored))


@contextmanager
def strange(objects: Objects, what: str) -> Iterator[None]:
    """Raise BucketError with the place of an object that cannot be read."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise BucketError(
            f"{objects.address}: {what} cannot be read: {str(error) or type(error).__name__:.300}",
            advice="read it with the twinbed that published it, or publish again to another prefix",
        ) from error


def _refuse_twice(tables: Sequence[pa.Table]) -> None:
    runs = pa.chunked_array([chunk for table in tables for chunk in table["run"].chunks], pa.string())
    if runs.null_count:
        raise ValueError("it has a run without an id")
    if pc.count_distinct(runs).as_py() < len(runs):
        counted = pc.value_counts(runs)
        twice = counted.filter(pc.greater(counted.field("counts"), 1))
        raise ValueError(f"it lists the run {twice[0]['values'].as_py()} {twice[0]['counts'].as_py():,} times")


def _refuse_long(table: pa.Table, few: Sequence[str], stored: int) -> None:
    """Limit texts that are read at once: JSON in memory is twenty times as long as its text."""
    most = max(_TEXT_BYTES, _TEXT_RATIO * stored)
    texts = sum(chunk.dictionary.nbytes for name in few for chunk in table[name].chunks)
    plain = (column for column in table.columns if column.type == pa.string())
    longest = max((pc.max(pc.binary_length(column)).as_py() or 0 for column in plain), default=0)
    if texts > most or longest > _TEXT_BYTES:
        raise ValueError(f"its texts have {max(texts, longest):,} bytes; at most {most:,} are read, {_TEXT_BYTES:,} of a row")


def _digests(table: pa.Table) -> Mapping[str, str]:
    return dict(zip(table["run"].to_pylist(), table["digest"].to_pylist(), strict=True))
