"""The input of `twinbed analyse`, read from a results folder or from a table in long form: CSV, TSV or Parquet. CSV, TSV or
Parquet.

A file has one row an observation, one column the response, others its levels.  Separators are commas, semicolons or tabs,
whichever the header has most of; .gz is read too.  Empty fields and NA, NaN, null and the like are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, SupportsFloat, TypeVar

from twinbed.contracts.analysis import Inputs
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.near import instead
from twinbed.observations.frame import Column, Frame, arranged, of_tables
from twinbed.statistics.resolution import printed_step

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

PARQUET = b"PAR1"
MOST_STEPS = 1000
"""Responses rounded to fewer steps than this between the least and the largest are equal by chance."""
Number = TypeVar("Number", "np.bool_", "np.float64")


def read_frame(
    inputs: Inputs,
    source: Path,
    response: str | None,
    columns: Sequence[str] | None = None,
    *,
    host: str | None = None,
    direction: str | None = None,
) -> Frame:
    """Read the response and what may explain it. Raises TwinbedError. From a results folder ``response`` is a metric (None: its
    first headline), at ``host`` and in ``direction`` if several places have it. From a file it is a column, and ``columns``
    None takes all others. Rows that lack one of the used ``columns`` are left out."""
    if inputs.is_results(source):
        frame = replace(of_tables(inputs.tables(source), response, host, direction), source=str(source))
        for name in columns or ():
            frame.column(name)
        return frame
    if host is not None or direction is not None:
        raise TwinbedError(
            "--host and --direction are for results folders", advice=f"leave them out: {source} is a file with columns"
        )
    return frame_of_file(source, response, columns)


def frame_of_file(source: Path, response: str | None, columns: Sequence[str] | None = None) -> Frame:
    """Return the frame of a file, as ``read_frame``."""
    return _of_file(source, _table(source), response, columns)


def _of_file(source: Path, table: pa.Table, response: str | None, columns: Sequence[str] | None) -> Frame:
    import numpy as np

    present = ", ".join(table.column_names) or "none"
    if response is None:
        raise TwinbedError("the column of the response is missing", advice=f"give --response NAME; {source} has {present}")
    names = [name for name in table.column_names if name != response] if columns is None else list(dict.fromkeys(columns))
    for name in (response, *names):
        if name not in table.column_names:
            raise TwinbedError(f"{source} has no column {name!r}", advice=instead(name, table.column_names))
        if table.column_names.count(name) > 1:
            raise TwinbedError(f"{source} has several columns {name!r}", advice="give each its own name")
    if response in names:
        raise TwinbedError(f"{response} cannot explain itself", advice="leave the response out of the factors")
    y = _numbers(source, response, table[response])
    missing = {f"rows without {response}": np.isnan(y)}
    missing |= {f"rows without {name}": _array(table[name].is_null(nan_is_null=True), np.bool_) for name in names}
    kept = np.ones(len(y), dtype=bool)
    left_out = {}
    for reason, absent in missing.items():
        # A row is counted once, for the first of its reasons.
        if count := int(np.sum(kept & absent)):
            left_out[reason] = count
        kept &= ~absent
    explaining = {name: _column(name, table[name], kept) for name in names}
    frame = Frame(str(source), response, "", None, y[kept], explaining, tuple(names), left_out)
    return replace(frame, cautions=(*_alike(explaining), *_repeated(frame)))


def _alike(columns: Mapping[str, Column]) -> Iterator[Caution]:
    """Yield levels that differ only in case or blanks: a program takes them as two, their author hardly does."""
    for name, column in columns.items():
        written: dict[str, list[str]] = {}
        for level in column.levels:
            if isinstance(level, str):
                written.setdefault("".join(level.split()).casefold(), []).append(level)
        for levels in written.values():
            if len(levels) > 1:
                yield Caution(Kind.ALIKE, f"{name}: {', '.join(map(repr, levels))}")


def _repeated(frame: Frame) -> Iterator[Caution]:
    """Yield rows with the same levels and the same response to the last digit, if responses have digits enough to differ."""
    import numpy as np

    if not len(frame) or printed_step(frame.y.tolist()) * MOST_STEPS > float(np.ptp(frame.y)):
        return
    rows = zip(frame.y.tolist(), *(column.codes.tolist() for column in frame.columns.values()), strict=True)
    if count := len(frame) - len(set(rows)):
        yield Caution(Kind.REPEATED_ROWS, f"{count} of {len(frame)} rows")


def _array(values: pa.ChunkedArray, kind: type[Number]) -> NDArray[Number]:
    """Return the values as an array, by way of a list: pyarrow's to_numpy takes a second, as it imports pandas if installed."""
    import numpy as np

    return np.array(values.to_pylist(), dtype=kind)


def _column(name: str, values: pa.ChunkedArray, kept: NDArray[np.bool_]) -> Column:
    import numpy as np

    coded = values.combine_chunks().dictionary_encode()
    # A missing index becomes -1; its row is not kept.
    indices = np.array([-1 if index is None else index for index in coded.indices.to_pylist()], dtype=np.intp)
    present, codes = np.unique(indices[kept], return_inverse=True)
    levels = coded.dictionary.to_pylist()
    return arranged(name, [_level(levels[at]) for at in present], codes.astype(np.intp))


def _level(value: object) -> str | int | float | bool:
    return value if isinstance(value, str | int | float | bool) else str(value)


def _numbers(source: Path, name: str, values: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return numbers; a missing one is NaN here, only until its rows are left out."""
    import numpy as np
    import pyarrow as pa

    kind = values.type
    if pa.types.is_boolean(kind) or not (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
    ):
        for row, value in enumerate(values.to_pylist(), 1):
            if value is not None and (isinstance(value, bool) or not _is_number(value)):
                comma = isinstance(value, str) and _is_number(value.replace(",", "."))
                raise TwinbedError(
                    f"{source}: {name} is {value!r} in row {row} (the header not counted), which is not a number",
                    advice="write decimals with a point: 1.5, not 1,5"
                    if comma
                    else "a response is a number in every row, or empty where it is missing",
                )
    numbers = _array(values.cast(pa.float64()), np.float64)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise TwinbedError(
            f"{source}: {name} is infinite in row {infinite[0] + 1} (the header not counted)",
            advice="leave the field empty where there is no value",
        )
    return numbers


def _is_number(value: object) -> bool:
    if not isinstance(value, str | bytes | SupportsFloat):
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True


def _table(source: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        with source.open("rb") as file:
            if file.read(len(PARQUET)) == PARQUET:
                return parquet.read_table(source)
        with pa.input_stream(str(source)) as stream:
            header = stream.read(1 << 16).split(b"\n", 1)[0]
        separator = max(b",;\t", key=header.count)
        return csv.read_csv(
            source,
            parse_options=csv.ParseOptions(delimiter=chr(separator), newlines_in_values=True),
            convert_options=csv.ConvertOptions(strings_can_be_null=True, timestamp_parsers=["none"]),
        )
    except FileNotFoundError:
        raise TwinbedError(f"{source}: no such file or folder", advice="give a results folder, CSV or Parquet") from None
    except (OSError, pa.ArrowException) as error:
        raise TwinbedError(
            f"{source} cannot be read as CSV or Parquet: {error}",
            advice="give a table with one row per observation, and a header that names the columns",
        ) from error
