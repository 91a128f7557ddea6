"""Files in the folder of a run that keeps less: ``kept.json``, which lists the missing artifacts, and ``rows.zip``, the run's
rows of all tables.

The zip file holds ``<table>.parquet`` of each table that the run has rows in, without the column ``run``, uncompressed since
Parquet compresses by itself.  Both may come from a stranger: no link is followed, names are plain, sizes are limited, and any
error raises ``Damaged``.
"""

from __future__ import annotations

import io
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq

from twinbed.model.json import Document, dataclass_of, document, documents, integer, named, optional, parsed, text, value_of
from twinbed.results.keep.names import KEPT, ROWS
from twinbed.results.parquet import Room
from twinbed.tree import NotPlain, Tree

FORMAT = 1
MOST_JSON_BYTES = 64 * 2**20
MOST_BYTES = 2**28
"""The most bytes of ``rows.zip``, which is read into memory; its rows in memory are limited by ``Room``."""
MOST_TABLES = 1000
_TABLE = re.compile(r"([a-z][a-z0-9_]{0,63})\.parquet")
_ARTIFACT = re.compile(r"artifacts(/[^/\0]+)+")
_MOMENT = (1980, 1, 1, 0, 0, 0)
"""The date of every member: zip has no earlier one."""
_WRONG = (
    NotPlain,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    EOFError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    pa.ArrowException,
)
"""Errors of reading a file that others wrote: zipfile, json and pyarrow, each in its own way."""


class Damaged(Exception):
    """The kept files cannot be read."""


@dataclass(frozen=True, slots=True)
class File:
    """An artifact that is no longer as it was collected."""

    path: str
    """As in ``run.json``."""
    bytes: int
    """The size when it was collected."""
    sha256: str | None
    """None if it was not known."""
    kept_as: str | None = None
    """The path of the part that was kept; None if nothing was."""
    kept_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """``kept.json``."""

    run: str
    """The run's id when it was written: a merge gives it another."""
    keep: str
    """The requested amount, such as ``tables``."""
    twinbed: str
    """The version that made the rows."""
    files: Sequence[File]
    rows: Mapping[str, int] | None = None
    """Table -> the number of the run's rows in it; None in older files."""

    def to_json(self) -> Document:
        return {"format": FORMAT, **cast(Document, asdict(self))}

    @classmethod
    def read(cls, run: Tree) -> Kept:
        """Read the one in a run's folder. Raises Damaged."""
        try:
            data = document(parsed(run.read(KEPT, most=MOST_JSON_BYTES)))
            if data["format"] != FORMAT:
                raise ValueError(f"format {data['format']!r}, this twinbed reads {FORMAT}")
            files = tuple(_file(file) for file in documents(data["files"]))
            counts = value_of(data, "rows", optional(named(integer))) if "rows" in data else None
            return cls(text(data["run"]), text(data["keep"]), text(data["twinbed"]), files, counts)
        except (*_WRONG, RecursionError) as error:
            raise Damaged(f"{KEPT}: {_reason(error)}") from error


def _file(data: Document) -> File:
    return dataclass_of(File, data, path=lambda value: _path(text(value)), kept_as=optional(lambda value: _path(text(value))))


def _path(path: str) -> str:
    if _ARTIFACT.fullmatch(path) is None or {".", ".."} & set(path.split("/")):
        raise ValueError(f"{path!r:.80} is not an artifact of this run")
    return path


def packed(tables: Mapping[str, pa.Table]) -> bytes:
    """Return ``rows.zip`` of these tables; the same for the same rows."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for name, table in sorted(tables.items()):
            parquet = pa.BufferOutputStream()
            pq.write_table(table, parquet, compression="zstd")
            archive.writestr(zipfile.ZipInfo(f"{name}.parquet", _MOMENT), parquet.getvalue())
    return sink.getvalue()


def kept_and_rows(run: Tree) -> tuple[Kept, dict[str, pa.Table]]:
    """Return what is kept of a run, and its rows of each table. Raises Damaged, also if a table or some rows are lost."""
    kept, tables = Kept.read(run), rows(run)
    for name, count in (kept.rows or {}).items():
        present = tables[name].num_rows if name in tables else 0
        if present != count:
            raise Damaged(f"{ROWS}: only {present:,} of {count:,} rows of the table {name}")
    return kept, tables


def rows(run: Tree) -> dict[str, pa.Table]:
    """Return table -> the run's rows, from its folder. Raises Damaged."""
    try:
        with run.open(ROWS) as file, zipfile.ZipFile(file) as archive:
            if os.fstat(file.fileno()).st_size > MOST_BYTES:
                raise ValueError(f"it has more than {MOST_BYTES} bytes")
            entries = archive.infolist()
            if len(entries) > MOST_TABLES:
                raise ValueError(f"it has {len(entries)} files, more than {MOST_TABLES}")
            tables: dict[str, pa.Table] = {}
            room = Room()
            for entry in entries:
                name = _table(entry, tables)
                content = archive.read(entry)
                if len(content) != entry.file_size:
                    raise ValueError(f"{entry.filename} is cut off")
                tables[name] = room.opened(pa.BufferReader(content)).read()
                tables[name].validate(full=True)
            return tables
    except _WRONG as error:
        raise Damaged(f"{ROWS}: {_reason(error)}") from error


def _table(entry: zipfile.ZipInfo, tables: Mapping[str, pa.Table]) -> str:
    name = _TABLE.fullmatch(entry.filename)
    if name is None or name[1] in tables:
        raise ValueError(f"{entry.filename!r:.80} is not the name of a table, or occurs twice")
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > MOST_BYTES:
        raise ValueError(f"{entry.filename} is packed in another way, or too large")
    return name[1]


def _reason(error: BaseException) -> str:
    """Return an error's text without a file's name: the place of results makes no difference."""
    return error.strerror if isinstance(error, OSError | NotPlain) and error.strerror else str(error) or type(error).__name__
