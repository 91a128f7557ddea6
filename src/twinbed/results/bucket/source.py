"""Published results as a source: one snapshot of them, for as long as it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from twinbed.model.columns import PlannedRuns, Records
from twinbed.results.bucket.address import Address
from twinbed.results.bucket.objects import BucketError, Objects, Stored
from twinbed.results.bucket.snapshot import Snapshot, latest
from twinbed.results.catalogue import FEW, PLANNED_FEW, READ, planned_of, records_of
from twinbed.results.source import Catalogue

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 8
"""Objects asked for at the same time: most of the time goes by waiting for answers."""
T = TypeVar("T")


class BucketSource:
    """What was published at an address. Every method raises BucketError where something cannot be read."""

    def __init__(self, address: Address) -> None:
        """Raises BucketError where nothing was published."""
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
        table = self._tables([batch.catalogue for batch in self.snapshot.batches], FEW, READ)
        if table is None:
            return Catalogue(Records.of([]), dict, [])
        return Catalogue(self._understood(records_of, table), partial(_digests, table), [])

    def planned(self) -> PlannedRuns | None:
        table = self._tables([self.snapshot.planned] if self.snapshot.planned else [], PLANNED_FEW)
        return None if table is None else self._understood(planned_of, table)

    def tables(self) -> Sequence[str]:
        return sorted({name for batch in self.snapshot.batches for name in batch.tables})

    def parts(self, table: str) -> Sequence[pa.NativeFile]:
        import pyarrow as pa

        stored = [each for batch in self.snapshot.batches for each in batch.tables.get(table, ())]
        return [pa.BufferReader(content) for content in self._contents(stored)]

    def _contents(self, stored: Sequence[Stored]) -> Sequence[memoryview]:
        if len(stored) < 2:
            return [self._objects.checked(each) for each in stored]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(self._objects.checked, stored))

    def _tables(self, stored: Sequence[Stored], few: Sequence[str], columns: Sequence[str] | None = None) -> pa.Table | None:
        """One below the other, the columns ``few`` as dictionaries; None without any."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            files = (pq.ParquetFile(pa.BufferReader(each), read_dictionary=few) for each in self._contents(stored))
            tables = [file.read(columns=columns) for file in files]
            return pa.concat_tables(tables) if tables else None
        except (OSError, KeyError, pa.ArrowException) as error:
            raise self._strange(error) from error

    def _understood(self, read: Callable[[pa.Table], T], table: pa.Table) -> T:
        try:
            return read(table)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise self._strange(error) from error

    def _strange(self, error: Exception) -> BucketError:
        return BucketError(
            f"{self._objects.address}: snapshot {self.snapshot.number} is nothing that this twinbed reads: {error!r:.200}",
            advice="read it with the twinbed that published it, or publish again to another prefix",
        )


def _digests(table: pa.Table) -> Mapping[str, str]:
    return dict(zip(table["run"].to_pylist(), table["digest"].to_pylist(), strict=True))
