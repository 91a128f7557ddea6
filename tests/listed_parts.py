"""Makes the list that a part keeps of its files agree with them again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from twinbed.results.listed import RUNS, metadata


def list_again(tables: Path, part: str) -> bool:
    """Whether there is a part that can have a list, which then goes with its files."""
    runs = tables / RUNS / part
    try:
        table = pq.ParquetFile(runs).read()
    except (OSError, pa.ArrowException):
        return False
    files = {file.parent.name: file.read_bytes() for file in tables.glob(f"*/{part}") if file.parent.name != RUNS}
    runs.unlink()
    pq.write_table(table.replace_schema_metadata(metadata(files)), runs)
    return True
