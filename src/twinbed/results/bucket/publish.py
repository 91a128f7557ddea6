"""Publishes the new runs of a folder to a bucket; one conditional put makes them count.

Objects put before it count for nothing: a publisher that is killed leaves objects that no snapshot names.  If two publish at
once, one finds its number taken, looks again, and adds the runs that are still new.  Nothing is ever changed or removed, so
that readers meanwhile have a whole snapshot.

Batches are combined as counters carry: when a batch is not smaller than the one before it, both become one.  So n runs are in
at most log2(n) + 1 batches, and each is rewritten as often at most.
"""

from __future__ import annotations

import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.model.columns import Records
from twinbed.model.json import loads
from twinbed.model.record import Record
from twinbed.model.run import Status
from twinbed.results.bucket.address import Address
from twinbed.results.bucket.objects import BucketError, Objects, Stored
from twinbed.results.bucket.snapshot import Batch, Snapshot, latest
from twinbed.results.bucket.source import catalogues, opened, strange
from twinbed.results.catalogue import Entry, planned_table, table_of
from twinbed.results.parquet import Room
from twinbed.results.store import FLEET, Store
from twinbed.tree import Tree

if TYPE_CHECKING:
    import pyarrow as pa

OBJECT_BYTES = 32 * 2**20
"""An object of a table of this size is not combined with others, and a larger table begins another object."""
MOST_RUNS = 2**18
"""A batch with as many runs is not combined with others: the amount read and written at once stays small."""
_ROWS = 2**17
"""Rows of a table that are written at once."""
_RECORDS = 10_000
"""Records that are written as columns at once."""
_TRIES = 30
_ONE_STUDY = ("study.json", "study.yaml", "looks.json")
"""Files about all runs."""


class PublishRefused(BucketError):
    """The results there and those to be published do not go together."""


@dataclass(frozen=True, slots=True)
class Published:
    """The result of publishing: the snapshot that counts now, and its runs, of which ``added`` are new."""

    snapshot: int
    runs: int
    added: int
    bytes: int
    """Bytes put there, of all kinds."""


@dataclass(frozen=True, slots=True)
class _Known:
    digest: str
    key: str
    status: str


class Publisher:
    """A publisher of a folder, whose tables are up to date, to an address. With ``raw`` artifacts are included."""

    def __init__(
        self,
        store: Store,
        address: Address,
        version: str,
        *,
        raw: bool,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        self._store = store
        self._objects = Objects(address)
        self._version = version
        self._raw = raw and not store.frozen
        self._on_progress = on_progress
        self._bytes = 0
        self._raw_of: dict[str, str] = {}
        """Run -> the object with its artifacts, for those that were put."""

    def publish(self) -> Published:
        """Publish the folder. Raises BucketError, and PublishRefused if other results are there."""
        keys = self._keys()
        files = {name: self._put(content) for name, content in self._files()}
        planned = self._put(_parquet(planned_table(self._store.planned))) if self._store.planned else None
        for _ in range(_TRIES):
            before = latest(self._objects) or Snapshot(0, self._version, {}, None, ())
            present = self._runs_in(before)
            self._refuse_others(before, present, files, planned)
            new = self._new(present, keys)
            if not new and before.number and {**before.files, **files} == before.files and planned == before.planned:
                return Published(before.number, before.runs, 0, self._bytes)
            batches = self._with(before.batches, present, new, keys)
            after = Snapshot(before.number + 1, self._version, {**before.files, **files}, planned, batches)
            if after.put(self._objects):
                return Published(after.number, after.runs, after.runs - before.runs, self._bytes)
        raise BucketError(f"{self._objects.address}: another publisher was faster at every attempt", advice="try again later")

    def _keys(self) -> Mapping[str, str]:
        """Return run -> the key of its rows in tables."""
        table = self._store.table("runs", ["run", "key"])
        return dict(zip(table["run"].to_pylist(), table["key"].to_pylist(), strict=True)) if table.num_rows else {}

    def _runs_in(self, snapshot: Snapshot) -> list[dict[str, _Known]]:
        """Return the runs of each batch."""
        columns = ["run", "digest", "key", "status"]
        batches = []
        for table in catalogues(self._objects, snapshot, columns, []):
            rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
            batches.append({run: _Known(*known) for run, *known in rows})
        return batches

    def _refuse_others(
        self, before: Snapshot, present: Sequence[Mapping[str, _Known]], files: Mapping[str, Stored], planned: Stored | None
    ) -> None:
        known = {run: known_run for batch in present for run, known_run in batch.items()}
        own = self._store.digests
        missing = known.keys() - own.keys()
        one_study = {"the planned runs": (before.planned, planned)}
        one_study |= {name: (before.files.get(name), files.get(name)) for name in _ONE_STUDY}
        changed = [name for name, (earlier, other) in one_study.items() if earlier != other]
        if changed and missing:
            raise PublishRefused(
                f"{self._objects.address} has {len(missing)} runs that {self._store.shown} lacks, and {changed[0]} differ",
                advice="publish to another prefix, or merge both results and publish those",
            )
        for run in sorted(known.keys() & own.keys()):
            if known[run].digest != own[run] and known[run].status == Status.COMPLETE:
                raise PublishRefused(
                    f"{self._objects.address} has a complete run {run} that differs from the one in {self._store.shown}",
                    advice="publish to another prefix",
                )

    def _new(self, present: Sequence[Mapping[str, _Known]], keys: Mapping[str, str]) -> set[str]:
        """Return runs that are not there, or were made or read again since."""
        known = {run: (of_run.digest, of_run.key) for batch in present for run, of_run in batch.items()}
        digests = self._store.digests
        return {run for run in Records.of(self._store.records).ids if known.get(run) != (digests[run], keys.get(run, ""))}

    def _files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the study's files. Its planned runs are a table of their own: there may be a million."""
        source = self._store.source
        for name in (*_ONE_STUDY, FLEET, *source.link_checks()):
            try:
                content = source.read(name)
            except FileNotFoundError:
                continue
            if name == "study.json" and self._store.planned:
                rest = {key: value for key, value in loads(content).items() if key != "runs"}
                content = f"{json.dumps(rest, indent=1)}\n".encode()
            yield name, content

    def _with(
        self, before: Sequence[Batch], present: Sequence[Mapping[str, _Known]], new: set[str], keys: Mapping[str, str]
    ) -> list[Batch]:
        """Return the batches with one more, combined by carrying; runs that were made again are removed from older ones."""
        batches = []
        for batch, runs in zip(before, present, strict=True):
            if again := new & runs.keys():
                batch = self._put_together([batch], runs.keys() - again)
            if batch.runs:
                batches.append(batch)
        if new:
            batches.append(self._batch(new, keys))
        while len(batches) > 1 and MOST_RUNS > batches[-1].runs >= batches[-2].runs:
            last = batches.pop()
            batches.append(self._put_together([batches.pop(), last]))
        return batches

    def _batch(self, new: set[str], keys: Mapping[str, str]) -> Batch:
        import pyarrow as pa

        records = [record for record in self._store.records if record.id in new]
        catalogue = []
        for begin in range(0, len(records), _RECORDS):
            of = records[begin : begin + _RECORDS]
            catalogue.append(table_of([self._entry(record, keys.get(record.id, "")) for record in of]))
            self._on_progress(begin + len(of), len(records))
        wanted = pa.array(sorted(new), pa.string())
        tables = {name: self._rows(self._store.parts(name), wanted) for name in self._store.names()}
        stored = self._put(_parquet(pa.concat_tables(catalogue)))
        return Batch(len(records), stored, tables)

    def _entry(self, record: Record, key: str) -> Entry:
        return Entry(record, self._store.digests[record.id], key, self._artifacts(record.id))

    def _artifacts(self, run: str) -> str | None:
        if not self._raw:
            return None
        if run not in self._raw_of:
            with tempfile.NamedTemporaryFile() as file:
                _pack(self._store.tree, f"runs/{run}", file.name)
                stored = self._objects.put_file(Path(file.name))
            self._bytes += stored.bytes
            self._raw_of[run] = stored.name
        return self._raw_of[run]

    def _put_together(self, batches: Sequence[Batch], keep: Iterable[str] | None = None) -> Batch:
        """Combine several batches, or keep a part of one. Large objects stay as they are if nothing is removed."""
        import pyarrow as pa

        wanted = None if keep is None else pa.array(sorted(keep), pa.string())
        of_batches = opened(self._objects, [batch.catalogue for batch in batches], Room())
        with strange(self._objects, "a catalogue"):
            catalogue = pa.concat_tables([_kept(file.read(), wanted) for file in of_batches])
        tables: dict[str, Sequence[Stored]] = {}
        for name in sorted({name for batch in batches for name in batch.tables}):
            stored = [table for batch in batches for table in batch.tables.get(name, ())]
            large = [table for table in stored if wanted is None and table.bytes >= OBJECT_BYTES]
            small = [table for table in stored if table not in large]
            room = Room()
            with strange(self._objects, f"the table {name}"):
                rows = self._rows((file.read() for table in small for file in opened(self._objects, [table], room)), wanted)
            tables[name] = [*large, *rows]
        return Batch(catalogue.num_rows, self._put(_parquet(catalogue)), tables)

    def _rows(self, parts: Iterable[pa.Table], wanted: pa.Array | None) -> list[Stored]:
        """Put the rows of these runs as objects of about OBJECT_BYTES; a part with other columns begins another object. Without
        rows, an empty object shows the columns."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        stored: list[Stored] = []
        sink, writer, schema = pa.BufferOutputStream(), None, None
        for part in parts:
            schema = schema or part.schema
            for rows in (_kept(pa.Table.from_batches([batch]), wanted) for batch in part.to_batches(_ROWS)):
                if not rows.num_rows:
                    continue
                if writer is not None and (sink.tell() >= OBJECT_BYTES or writer.schema != rows.schema):
                    writer.close()
                    stored.append(self._put(sink.getvalue()))
                    sink, writer = pa.BufferOutputStream(), None
                writer = writer or pq.ParquetWriter(sink, rows.schema, compression="zstd")
                writer.write_table(rows)
        if writer is not None:
            writer.close()
            stored.append(self._put(sink.getvalue()))
        elif schema is not None:
            stored.append(self._put(_parquet(schema.empty_table())))
        return stored

    def _put(self, content: bytes | pa.Buffer) -> Stored:
        stored = self._objects.put(memoryview(content).cast("B"))
        self._bytes += stored.bytes
        return stored


def _kept(table: pa.Table, wanted: pa.Array | None) -> pa.Table:
    import pyarrow.compute as pc

    return table if wanted is None else table.filter(pc.is_in(table["run"], wanted))


def _parquet(table: pa.Table) -> pa.Buffer:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _pack(tree: Tree, run: str, file: str) -> None:
    """Write a run's folder as a compressed tar file, the same bytes for the same files. Raises NotPlain for a link."""
    import pyarrow as pa

    with (
        pa.OSFile(file, "wb") as sink,
        pa.CompressedOutputStream(sink, "zstd") as stream,
        tarfile.open(fileobj=stream, mode="w|") as archive,
    ):
        for name, _ in sorted(tree.files(run), key=lambda pair: pair[0].split("/")):
            entry = tarfile.TarInfo(name)
            with tree.open(f"{run}/{name}") as content:
                entry.size = os.fstat(content.fileno()).st_size
                archive.addfile(entry, content)
