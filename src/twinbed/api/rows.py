"""Rows as Arrow tables and data frames.  Missing is null in both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from twinbed.model.error import TwinbedError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def arrow(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Return a table with a column for each key of any row; without rows there are none."""
    import pyarrow as pa

    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: column([row.get(name) for row in rows]) for name in names})


def column(values: Sequence[object]) -> pa.Array:
    """Return values of one kind as they are; of several kinds (1, ``auto``) as text."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pa.array(values, pa.float64())
    if kinds and all(issubclass(kind, str) for kind in kinds):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    if len(kinds) < 2:
        try:
            return pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # inner values of several kinds
            pass
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: object) -> str:
    from twinbed.model.run import level_text

    return level_text(value) if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)


def data_frame(table: pa.Table) -> pd.DataFrame:
    """Return a data frame with pyarrow's types. Raises TwinbedError without pandas.

    Columns with missing values have pandas' nullable types, so that integers stay integers.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise TwinbedError(
            "pandas is not installed", advice="pip install pandas; to_arrow() gives the same table without it"
        ) from error
    import pyarrow as pa

    nullable = {
        pa.bool_(): pd.BooleanDtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.string(): pd.StringDtype(),
    }
    frame = table.to_pandas()
    for name in table.column_names:
        if table[name].null_count:
            frame[name] = table[name].to_pandas(types_mapper=nullable.get)
    return frame
