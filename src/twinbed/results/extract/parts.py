"""Writes rows as parts of Parquet tables, and prunes rows that are no longer true.

A part is one file of the same name in several folders below ``tables``; the one in ``tables/runs`` is written last and makes
the part count.  Files appear by rename, so that readers meanwhile see only whole parts.

Columns of our tables are ``RUN_COLUMNS``, ``METRICS``, ``CAUTIONS``, ``FACTS`` and ``APPLIED``; levels are JSON.  Every other
folder is a table of a plugin, with the column ``run`` before its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinbed.executor.packed import packed, unpacked
from twinbed.executor.protocol import BadAnswer
from twinbed.metrics.metric import Metric, Value
from twinbed.model.caution import Kind
from twinbed.results import listed
from twinbed.results.extract.rows import KeptRows, RunRows, finite
from twinbed.results.listed import OURS, RUNS, PartBroken
from twinbed.results.parquet import Room
from twinbed.results.schema import WrongTable, check
from twinbed.tree import Tree

_LOG = logging.getLogger(__name__)
_TEXT = pa.string()
RUN_COLUMNS = pa.schema(
    [
        *((name, _TEXT) for name in ("run", "cell", "testbed", "levels")),
        *((name, pa.int64()) for name in ("replicate", "block", "position")),
        *((name, _TEXT) for name in ("status", "failed_phase", "reason")),
        ("started_s", pa.float64()),
        ("key", _TEXT),
    ]
)
METRICS = pa.schema(
    [
        *((name, _TEXT) for name in ("run", "host", "direction", "metric", "unit", "layer", "scale")),
        ("headline", pa.bool_()),
        ("description", _TEXT),
        ("margin", pa.float64()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
    ]
)
CAUTIONS = pa.schema([(name, _TEXT) for name in ("run", "kind", "detail", "subject")])
FACTS = pa.schema([(name, _TEXT) for name in ("run", "place", "fact", "value")])
APPLIED = pa.schema([(name, _TEXT) for name in ("run", "subject", "setting", "asked", "found", "source")])


@dataclass(frozen=True, slots=True)
class Part:
    """A part that is not written yet: its file name, and its files' contents by table."""

    name: str
    files: Mapping[str, bytes]


def part_of(batch: Sequence[RunRows | KeptRows]) -> Part:
    """Return a batch of runs as one part."""
    return _part(tables_of(batch), _table(RUN_COLUMNS, (_run(rows) for rows in batch)))


def tables_of(batch: Sequence[RunRows | KeptRows]) -> dict[str, pa.Table]:
    """Return table -> the rows of these runs, in their order, without the table of runs."""
    ours = {"metrics": METRICS, "cautions": CAUTIONS, "facts": FACTS, "applied": APPLIED}
    pieces: dict[str, list[tuple[str | None, pa.Table]]]
    """Table -> its parts, each with the run whose kept rows it is."""
    if not any(isinstance(rows, KeptRows) for rows in batch):
        return _made([rows for rows in batch if isinstance(rows, RunRows)])
    pieces = {name: [(None, schema.empty_table())] for name, schema in ours.items()}
    for _, group in groupby(batch, lambda rows: rows.record.id if isinstance(rows, KeptRows) else None):
        some = list(group)
        kept = some[0] if isinstance(some[0], KeptRows) else None
        of_group = kept.tables if kept else _made([rows for rows in some if isinstance(rows, RunRows)])
        for name, table in of_group.items():
            pieces.setdefault(name, []).append((kept.record.id if kept else None, table))
    cautions = pieces.pop("cautions", [])
    joined: dict[str, pa.Table] = {}
    for name, parts in pieces.items():
        joined[name], strange = _joined(parts)
        details = ((run, f"the kept rows of the table {name} do not fit those of other runs") for run in strange)
        cautions.append((None, _table(CAUTIONS, ((run, Kind.UNREADABLE.name.lower(), detail, run) for run, detail in details))))
    return {**joined, "cautions": _joined(cautions)[0]}


def _joined(parts: Sequence[tuple[str | None, pa.Table]]) -> tuple[pa.Table, list[str]]:
    """Join tables; leave out and name the runs whose kept rows have columns of other types."""
    with contextlib.suppress(pa.ArrowException):
        return pa.concat_tables([table for _, table in parts], promote_options="permissive").combine_chunks(), []
    fresh = [table for run, table in parts if run is None]
    whole = pa.concat_tables(fresh or [parts[0][1]], promote_options="permissive")
    strange = []
    for run, table in parts if fresh else parts[1:]:
        if run is not None:
            try:
                whole = pa.concat_tables([whole, table], promote_options="permissive")
            except pa.ArrowException:
                strange.append(run)
    return whole.combine_chunks(), strange


def _made(batch: Sequence[RunRows]) -> dict[str, pa.Table]:
    written: dict[str, pa.Table] = {
        "metrics": _table(METRICS, (_metric(rows, value, metric) for rows in batch for value, metric in rows.values)),
        "cautions": _table(
            CAUTIONS,
            ((rows.record.id, item.kind.name.lower(), item.detail, item.subject) for rows in batch for item in rows.cautions),
        ),
        "facts": _table(FACTS, ((rows.record.id, *fact) for rows in batch for fact in rows.facts)),
        "applied": _table(APPLIED, ((rows.record.id, *item) for rows in batch for item in rows.applied)),
    }
    own: dict[str, list[pa.Table]] = {}
    for rows in batch:
        for name, table in rows.tables:
            if name in OURS:
                raise TypeError(f"a plugin's table cannot be called {name}")
            own.setdefault(name, []).append(table.add_column(0, "run", pa.repeat(pa.scalar(rows.record.id), table.num_rows)))
    return written | {name: pa.concat_tables(parts, promote_options="permissive") for name, parts in own.items()}


def packed_part(part: Part) -> bytes:
    """Pack a part for its way from the reader."""
    return packed(part.files)


def part_from(content: bytes, keys: Mapping[str, str]) -> Part:
    """Return the part that was made of these runs, by their keys. Raises BadAnswer. Its reader may be another machine: its
    tables must have rows of these runs only, and ours our columns. Types are checked when they are read."""
    files = unpacked(content)
    schemas = {RUNS: RUN_COLUMNS, "metrics": METRICS, "cautions": CAUTIONS, "facts": FACTS, "applied": APPLIED}
    ours = {name: schema.names for name, schema in schemas.items()}
    if missing := ours.keys() - files.keys():
        raise BadAnswer(f"a worker's part has no table {', '.join(sorted(missing))}")
    for name, file in files.items():
        try:
            table = pq.ParquetFile(pa.BufferReader(file))
            schema = table.schema_arrow
            rows = table.read(columns=["run", "key"] if name == RUNS else ["run"])
        except (OSError, ValueError, pa.ArrowException) as error:
            raise BadAnswer(f"a worker's table {name} cannot be read: {error}"[:500]) from None
        if schema.names[:1] != ["run"] or schema.field("run").type != _TEXT or set(ours.get(name, ())) - set(schema.names):
            raise BadAnswer(f"a worker's table {name} has other columns than it should have")
        if not set(pc.unique(rows["run"]).to_pylist()) <= keys.keys():
            raise BadAnswer(f"a worker's table {name} has rows of runs that it was not asked to read")
        if name == RUNS and list(zip(*(rows[column].to_pylist() for column in ("run", "key")), strict=True)) != [*keys.items()]:
            raise BadAnswer("a worker's part has other runs than it was asked to read")
    return Part(_name(list(keys), list(keys.values())), files)


def write_part(tables: Tree, part: Part) -> None:
    """Write the part's files, that of the runs last."""
    for name in sorted(part.files, key=lambda name: name == "runs"):
        tables.make(name)
        tables.write(f"{name}/{part.name}", part.files[name])


def read_keys(tables: Tree) -> dict[str, dict[str, str]]:
    """Return part -> run -> key, of all committed parts. An incomplete or unreadable part has no runs. Raises NotPlain."""
    keys = {}
    for part in listed.committed(tables):
        try:
            keys[part] = keys_of(tables, part)
        except PartBroken:
            keys[part] = {}
    return keys


def keys_of(tables: Tree, part: str) -> dict[str, str]:
    """Return run -> key of a part. Raises PartBroken if it is incomplete or cannot be read."""
    table = listed.columns_of_runs(tables, part, ("run", "key"))
    try:
        check(RUNS, table, ("run", "key"))
    except WrongTable as error:
        raise PartBroken(f"{RUNS}/{part}", str(error), part) from error
    return dict(zip(table["run"].to_pylist(), table["key"].to_pylist(), strict=True))


def prune(tables: Tree, part: str, keep: Iterable[str]) -> None:
    """Rewrite a part with the rows of the kept runs only; a changed part is removed as a whole."""
    wanted = pa.array(sorted(keep), _TEXT)
    names = [name for name in _tables(tables) if tables.kind(f"{name}/{part}") is not None]
    if len(wanted):
        try:
            files = {name: file for name in names for file in listed.file_of(tables, name, part)}
            kept = {name: _kept(Room().opened(file).read(), wanted) for name, file in files.items()}
            write_part(tables, _part(kept, kept.pop(RUNS)))
        except (PartBroken, OSError, LookupError, pa.ArrowException) as error:
            _LOG.info("%s: %s: it is made again", part, error)
    for name in sorted(names, key=lambda name: name != RUNS):
        tables.remove(f"{name}/{part}")


def _tables(tables: Tree) -> list[str]:
    return [name for name, kind in tables.entries().items() if kind == "folder"]


def _kept(table: pa.Table, wanted: pa.Array) -> pa.Table:
    return table.filter(pc.is_in(table["run"], wanted))


def remove_orphans(tables: Tree) -> None:
    """Remove files of parts that were never committed, and temporary files of a killed writer."""
    committed = set(listed.committed(tables))
    for table in _tables(tables):
        for name, kind in tables.entries(table).items():
            orphan = (name.startswith("part-") and name not in committed) or name.startswith(".part-")
            if orphan and kind != "folder":
                tables.remove(f"{table}/{name}")


def _part(written: Mapping[str, pa.Table], runs: pa.Table) -> Part:
    files = {name: _parquet(table) for name, table in written.items() if table.num_rows or name in OURS}
    return Part(
        _name(runs["run"].to_pylist(), runs["key"].to_pylist()),
        {**files, RUNS: _parquet(runs.replace_schema_metadata(listed.metadata(files)))},
    )


def _name(runs: Sequence[str], keys: Sequence[str]) -> str:
    identity = json.dumps([runs, keys])
    return f"part-{hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()}.parquet"


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def _table(schema: pa.Schema, rows: Iterator[Sequence[object]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)


def _metric(rows: RunRows, value: Value, metric: Metric) -> Sequence[object]:
    return (
        rows.record.id,
        value.host,
        value.direction,
        value.metric,
        metric.unit,
        str(metric.layer),
        str(metric.scale),
        metric.headline,
        metric.description,
        metric.margin,
        finite(value.value),
        finite(value.low),
        finite(value.high),
    )


def _run(rows: RunRows | KeptRows) -> Sequence[object]:
    record = rows.record
    return (
        record.id,
        record.cell,
        str(record.settings["testbed"]["name"]),
        json.dumps(dict(record.levels), sort_keys=True),
        record.replicate,
        record.block,
        record.position,
        str(record.status),
        record.failed_phase,
        record.reason,
        record.started_s,
        rows.key,
    )
