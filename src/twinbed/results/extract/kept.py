"""Rows of a run that keeps less than was collected: they were made before, and are never made again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from twinbed.model.caution import Caution, Kind
from twinbed.model.record import Record
from twinbed.results.extract.parts import APPLIED, CAUTIONS, FACTS, METRICS
from twinbed.results.extract.rows import KeptRows, RunRows, read_run
from twinbed.results.keep.kept import Damaged, kept_and_rows
from twinbed.results.schema import WrongTable, check
from twinbed.tree import Tree

_SCHEMAS: Mapping[str, pa.Schema] = {"metrics": METRICS, "cautions": CAUTIONS, "facts": FACTS, "applied": APPLIED}


def kept_rows(folder: Path, record: Record, key: str) -> KeptRows | RunRows:
    """Return the rows in a run's folder; if they cannot be read the run has no values, and a caution with the reason."""
    try:
        kept, given = kept_and_rows(Tree(folder))
        tables = {name: _of_run(name, table, kept.run, record.id) for name, table in given.items()}
    except Damaged as error:
        without = read_run(folder, record, key, {}, (), ())
        detail = f"{error}: the kept rows of this run cannot be read, so it has no values"
        without.cautions.append(Caution(Kind.UNREADABLE, detail, record.id))
        return without
    return KeptRows(record, key, tables)


def _of_run(name: str, table: pa.Table, before: str, now: str) -> pa.Table:
    """Return the table with the column ``run``, and with cautions about the run's new id after a merge."""
    if "run" in table.column_names:
        raise Damaged(f"{name} has a column run, which kept rows must not have")
    table = table.add_column(0, "run", pa.repeat(pa.scalar(now), table.num_rows))
    if name not in _SCHEMAS:
        return _checked(name, table)
    try:
        table = _as(table, _SCHEMAS[name])
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise Damaged(f"{name}: {error}") from error
    table = _checked(name, table)
    if name == "cautions" and before != now:
        at = table.column_names.index("subject")
        subject = table["subject"]
        table = table.set_column(at, CAUTIONS.field("subject"), pc.if_else(pc.equal(subject, before), now, subject))
    return table


def _checked(name: str, table: pa.Table) -> pa.Table:
    try:
        check(name, table)
    except WrongTable as error:
        raise Damaged(f"{name} {error}") from error
    return table


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return this twinbed's columns: one that was unknown when the rows were made is null."""
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
