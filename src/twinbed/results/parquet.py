"""Opens Parquet files that may be a stranger's: a file of 1 KB may hold 10 GB in memory.

Parquet packs three times: pages are compressed, texts are numbers in a dictionary, and equal numbers are counted.  Sizes in the
footer are only a claim.  So the header of every page is read, the memory of all pages is computed, and compared with the stored
bytes and the free memory, before anything is decompressed.

Source: parquet.thrift and Encodings.md of apache/parquet-format; the compact protocol of Apache Thrift.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeAlias, Union

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

FREE_BYTES = 128 * 2**20
"""Up to so many bytes in memory the stored bytes do not matter."""
MOST_RATIO = 200
"""The most bytes in memory for each stored byte, beyond those. A table of metrics has 17 (texts are the same in most rows)."""
MOST_COLUMNS = 1000
_SMALL_BYTES = 2**20
"""Up to so much is assumed for a column of texts without looking."""
_UNKNOWN_BYTES = 2**32
_MOST_FOOTER_BYTES = 16 * 2**20
_MOST_HEADER_BYTES = 2**20
_TEXT = "BYTE_ARRAY"
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
"""The most bytes of a value in memory; a FIXED_LEN_BYTE_ARRAY has its own."""
_DICTIONARY_ENTRY_BYTES = 16
_ROW_BYTES = 9
"""Bytes in addition to a value: the beginning of a text, and whether it is null."""
_DICTIONARY = frozenset({2, 8})
"""Encodings of pages of numbers in a dictionary: PLAIN_DICTIONARY, RLE_DICTIONARY."""
_ENCODINGS = _DICTIONARY | {0, 3, 5, 6, 9}
"""PLAIN, RLE, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, BYTE_STREAM_SPLIT. DELTA_BYTE_ARRAY is missing: a text that repeats
the one before takes no byte of its page."""

File: TypeAlias = Union[Path, "pa.NativeFile", BinaryIO]


class Unreadable(OSError):
    """A Parquet file is damaged, or takes more memory than allowed: an OSError, as pyarrow raises for damage."""


@dataclass(slots=True)
class Room:
    """The memory for tables that are read together."""

    _stored: int = 0
    _taken: int = 0
    _free: int = field(default_factory=lambda: free_bytes() // 2)

    def opened(self, file: File, columns: Collection[str] | None = None, few: Sequence[str] = ()) -> pq.ParquetFile:
        """Open a file to read these columns of it, of which ``few`` stay dictionaries. Raises Unreadable without room for them,
        and OSError or pa.ArrowException for a damaged file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        stream = pa.OSFile(str(file)) if isinstance(file, Path) else file
        self._stored += _size(stream)
        parquet = pq.ParquetFile(stream, read_dictionary=few)
        for at in range(parquet.metadata.num_row_groups):
            for chunk in _chunks(stream, parquet, at, columns):
                least = chunk.rows * _ROW_BYTES + chunk.page_bytes
                self._take(chunk, least)
                if chunk.name in few or not chunk.repeated_most:
                    continue
                # Each row as long as the longest is too much to suppose of columns that add up.
                if chunk.nested or chunk.repeated_most <= _SMALL_BYTES:
                    self._take(chunk, chunk.repeated_most)
                else:
                    self._take(chunk, _text_bytes(stream, chunk.name, at))
        stream.seek(0)
        return parquet

    def _fits(self, more: int) -> bool:
        return self._taken + more <= min(self._free, max(FREE_BYTES, MOST_RATIO * self._stored))

    def _take(self, chunk: _Chunk, more: int) -> None:
        if not self._fits(more):
            raise Unreadable(
                f"the column {chunk.name} of {chunk.rows:,} rows needs {self._taken + more:,} bytes of memory for "
                f"{self._stored:,} stored; {min(self._free, max(FREE_BYTES, MOST_RATIO * self._stored)):,} are allowed"
            )
        self._taken += more


class _Chunk(NamedTuple):
    """A column of a row group, by its pages' headers."""

    name: str
    rows: int
    nested: bool
    """True if it is in a list or struct."""
    page_bytes: int
    """Bytes of all pages, decompressed, and of their decoders."""
    repeated_most: int
    """The most bytes of texts from a dictionary, if each row has the longest; 0 for other columns."""


class _Page(NamedTuple):
    bytes: int
    stored: int
    values: int
    encoding: int
    is_dictionary: bool
    header_bytes: int


def _chunks(
    stream: pa.NativeFile | BinaryIO, file: pq.ParquetFile, at: int, columns: Collection[str] | None
) -> Iterator[_Chunk]:
    group = file.metadata.row_group(at)
    if group.num_columns > MOST_COLUMNS:
        raise Unreadable(f"it has {group.num_columns:,} columns, more than {MOST_COLUMNS:,}")
    flat = frozenset(file.schema_arrow.names)
    for number in range(group.num_columns):
        column = group.column(number)
        name, kind = column.path_in_schema, column.physical_type
        if columns is not None and name not in columns and name.partition(".")[0] not in columns:
            continue
        width = 0 if kind == _TEXT else _WIDTHS.get(kind) or file.schema.column(number).length
        if not group.num_rows and not column.num_values:
            continue
        begin = column.data_page_offset
        if column.has_dictionary_page and 0 < column.dictionary_page_offset < begin:
            begin = column.dictionary_page_offset
        pages = list(_pages(stream, name, begin, begin + column.total_compressed_size))
        data = [page for page in pages if not page.is_dictionary]
        rows = max(group.num_rows, column.num_values, sum(page.values for page in data))
        dictionaries = [page for page in pages if page.is_dictionary]
        entries = sum(page.values for page in dictionaries) * _DICTIONARY_ENTRY_BYTES
        taken = sum(page.bytes for page in pages) + entries + rows * width
        repeated = sum(page.values for page in data if page.encoding in _DICTIONARY) if kind == _TEXT else 0
        yield _Chunk(name, rows, name not in flat, taken, repeated * sum(page.bytes for page in dictionaries))


def _pages(stream: pa.NativeFile | BinaryIO, name: str, begin: int, end: int) -> Iterator[_Page]:
    if not 0 < begin <= end <= _size(stream):
        raise Unreadable(f"the column {name} lies outside of the file")
    while begin < end:
        page = _page(stream, name, begin, end)
        begin += page.header_bytes + page.stored
        if begin > end or min(page.bytes, page.stored, page.values) < 0 or page.encoding not in _ENCODINGS:
            raise Unreadable(f"the column {name} has an invalid page: {page.bytes:,} bytes, encoding {page.encoding}")
        yield page


def _page(stream: pa.NativeFile | BinaryIO, name: str, begin: int, end: int) -> _Page:
    """Return the page whose header begins there."""
    length = 256
    while True:
        stream.seek(begin)
        data = stream.read(min(length, end - begin))
        try:
            return _header(data)
        except (IndexError, KeyError, RecursionError) as error:
            length *= 16
            if length > _MOST_HEADER_BYTES or len(data) == end - begin:
                raise Unreadable(f"the column {name} has a page without a header") from error


def _header(data: bytes) -> _Page:
    fields, at = _struct(data, 0)
    header = next((of for of in (fields.get(5), fields.get(8), fields.get(7)) if isinstance(of, dict)), {1: 0})
    encoding = header.get(4 if 8 in fields else 2, 0)
    numbers = fields[2], fields[3], header[1], encoding
    if not all(isinstance(number, int) for number in numbers):
        raise KeyError(numbers)
    size, stored, values, encoding = (number for number in numbers if isinstance(number, int))
    return _Page(size, stored, values, encoding, 7 in fields, at)


_Fields: TypeAlias = "dict[int, int | _Fields | None]"


def _struct(data: bytes, at: int) -> tuple[_Fields, int]:
    """Return the fields of a struct (numbers and structs, None for others), and where it ends. Raises IndexError if it does not
    end."""
    fields: _Fields = {}
    number = 0
    while kind := data[at]:
        at += 1
        if kind >> 4:
            number += kind >> 4
        else:
            number, at = _zigzag(data, at)
        fields[number], at = _value(data, at, kind & 15)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[int | _Fields | None, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind == 3:
        return data[at], at + 1
    if kind in (4, 5, 6):
        return _zigzag(data, at)
    if kind == 7:
        return None, at + 8
    if kind == 8:
        length, at = _varint(data, at)
        return None, at + length
    if kind == 12:
        return _struct(data, at)
    raise KeyError(kind)  # lists and maps: a page's header has none


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while shift < 64:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise KeyError(number)


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _text_bytes(stream: pa.NativeFile | BinaryIO, column: str, at: int) -> int:
    """Return the bytes of all texts of a column, which is read as its dictionary and numbers."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    stream.seek(0)
    read = pq.ParquetFile(stream, read_dictionary=[column]).read_row_group(at, columns=[column])[column]
    lengths = (pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0 for chunk in read.chunks)
    return sum(lengths)


def _size(stream: pa.NativeFile | BinaryIO) -> int:
    """Return the bytes of a file. Raises Unreadable for a footer that is too long."""
    size: int = stream.seek(0, 2)
    if size >= 12:
        stream.seek(size - 8)
        footer = int.from_bytes(stream.read(4), "little")
        if footer > _MOST_FOOTER_BYTES:
            raise Unreadable(f"its footer has {footer:,} bytes, more than {_MOST_FOOTER_BYTES:,}")
    stream.seek(0)
    return size


def free_bytes(system: Path = Path("/")) -> int:
    """Return the free memory of this machine, or of the control group that limits this process; _UNKNOWN_BYTES if unknown."""
    machine = re.search(r"^MemAvailable: +(\d+) kB$", _text(system / "proc/meminfo"), re.MULTILINE)
    most, current = (_text(system / "sys/fs/cgroup" / name).strip() for name in ("memory.max", "memory.current"))
    left = [1024 * int(machine[1])] if machine else []
    if most.isdecimal() and current.isdecimal():
        left.append(max(0, int(most) - int(current)))
    return min(left, default=_UNKNOWN_BYTES)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
