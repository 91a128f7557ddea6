"""The list of a part of the tables, so that no file of it is lost or changed unseen.

A part is a file of the same name in several folders below ``tables``. The file in ``tables/runs`` is written last: the metadata
of its schema list the others with their bytes and hashes. Older parts have no list; they must have the tables that every part
has.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from twinbed.model.json import WRONG, Json, integer, named, parsed, text
from twinbed.results.parquet import Room
from twinbed.tree import NotPlain, Tree

if TYPE_CHECKING:
    import pyarrow as pa

OURS = ("metrics", "cautions", "facts", "applied", "runs")
"""The tables that every part has."""
RUNS = "runs"
LIST = b"twinbed.files"
"""The key of the list in the metadata of a part's runs."""
_DIGEST_BYTES = 16


class PartBroken(Exception):
    """A file of a part is lost, was changed, or cannot be read. ``part`` is empty if no part of a folder is meant."""

    def __init__(self, file: str, fault: str, part: str = "") -> None:
        super().__init__(f"{file} {fault}")
        self.part = part


class Listed(NamedTuple):
    """A file as it was written."""

    size: int
    digest: str

    @classmethod
    def of(cls, content: bytes) -> Listed:
        return cls(len(content), hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest())


def metadata(files: Mapping[str, bytes]) -> dict[bytes, bytes]:
    """Return the list of a part's files (table -> content) for the schema of its runs."""
    return {LIST: json.dumps({name: Listed.of(content) for name, content in sorted(files.items())}).encode()}


def read_list(schema: pa.Schema) -> Mapping[str, Listed] | None:
    """Return the list in the schema of a part's runs; None if it has none. Raises ValueError."""
    given = (schema.metadata or {}).get(LIST)
    return None if given is None else named(_listed)(parsed(given))


def _listed(value: Json) -> Listed:
    if not isinstance(value, list) or len(value) != 2:
        raise TypeError(f"{value!r:.60} is not a pair of size and hash")
    return Listed(integer(value[0]), text(value[1]))


def committed(tables: Tree) -> list[str]:
    """Return the names of the committed parts of a folder of tables."""
    return [name for name in tables.entries(RUNS) if name.startswith("part-") and name.endswith(".parquet")]


def columns_of_runs(tables: Tree, part: str, columns: Sequence[str]) -> pa.Table:
    """Return columns of a part's runs, once the sizes of its other files are as listed. Raises PartBroken."""
    import pyarrow as pa

    name = f"{RUNS}/{part}"
    try:
        with tables.open(name) as file:
            parquet = Room().opened(file, columns)
            listed = read_list(parquet.schema_arrow)
            table = parquet.read(columns=list(columns))
    except NotPlain:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise PartBroken(name, f"cannot be read: {error}", part) from error
    for other in dict.fromkeys((*OURS, *(listed or ()))):
        status = tables.status(f"{other}/{part}")
        if status is None:
            raise PartBroken(f"{other}/{part}", "is lost", part)
        if listed is None or other == RUNS:
            continue
        if other not in listed:
            raise PartBroken(f"{other}/{part}", "is not in the part's list", part)
        if status.st_size != listed[other].size:
            raise PartBroken(f"{other}/{part}", f"has {status.st_size:,} of {listed[other].size:,} bytes", part)
    return table


def files(tables: Tree, table: str) -> Iterator[tuple[str, BinaryIO]]:
    """Yield each part of a table with its file, as it was written. Raises PartBroken."""
    for part in committed(tables):
        for file in file_of(tables, table, part):
            yield part, file


def file_of(tables: Tree, table: str, part: str) -> Iterator[BinaryIO]:
    """Yield the file of a table in a part, if it has one. Raises PartBroken if it is not as it was written."""
    content = _content(tables, table, part, _list_of(tables, part))
    if content is not None:
        yield io.BytesIO(content)


def _list_of(tables: Tree, part: str) -> Mapping[str, Listed] | None:
    import pyarrow.parquet as pq

    name = f"{RUNS}/{part}"
    try:
        with tables.open(name) as file:
            return read_list(pq.ParquetFile(file).schema_arrow)
    except NotPlain:
        raise
    except (OSError, *WRONG) as error:
        raise PartBroken(name, f"cannot be read: {error}", part) from error


def _content(tables: Tree, table: str, part: str, listed: Mapping[str, Listed] | None) -> bytes | None:
    """Return a file of a part; None if the part does not have this table."""
    name = f"{table}/{part}"
    if listed is not None and table not in (*OURS, *listed):
        return None
    try:
        with tables.open(name) as file:
            content = file.read()
    except FileNotFoundError:
        if listed is None and table not in OURS:
            return None
        raise PartBroken(name, "is lost", part) from None
    if listed is not None and table != RUNS and Listed.of(content) != listed.get(table):
        raise PartBroken(name, "is not as it was written", part)
    return content
