"""Rows that a run was left with, maybe by a stranger: what is wrong with them is said, and nothing else happens."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinbed.model.caution import Kind
from twinbed.model.record import Record
from twinbed.results.extract.kept import kept_rows
from twinbed.results.extract.parts import METRICS, part_of, tables_of
from twinbed.results.extract.rows import KeptRows, RunRows
from twinbed.results.keep import kept
from twinbed.results.store import Store

METRIC = {"host": [""], "direction": [""], "metric": ["requests"], "unit": ["1"], "layer": ["application"], "scale": ["ratio"]}
TABLES = {
    "metrics": pa.table({**METRIC, "value": [7.0]}),
    "cautions": pa.table({"kind": ["capture_drops", "stall"], "detail": ["one", "two"], "subject": ["before", "other"]}),
    "wires": pa.table({"link": ["client"], "packets": pa.array([3], pa.int64())}),
}
LISTED = {"format": 1, "run": "before", "keep": "tables", "twinbed": "0.1.0", "files": []}


@pytest.fixture
def record(results: Path) -> Record:
    return Store.open(results).records[0]


@pytest.fixture
def run(results: Path, record: Record) -> Path:
    run = results / "runs" / record.id
    (run / "kept.json").write_text(json.dumps(LISTED))
    (run / "rows.zip").write_bytes(kept.packed(TABLES))
    return run


def test_rows_are_of_the_run_as_it_is_called_now(run: Path, record: Record) -> None:
    rows = kept_rows(run, record, "key")
    assert isinstance(rows, KeptRows)
    assert rows.tables["wires"].to_pylist() == [{"run": record.id, "link": "client", "packets": 3}]
    assert [row["subject"] for row in rows.tables["cautions"].to_pylist()] == [record.id, "other"]
    (metric,) = rows.tables["metrics"].to_pylist()
    assert rows.tables["metrics"].schema == METRICS, "a column that was not known then is null"
    assert (metric["value"], metric["margin"], metric["headline"]) == (7.0, None, None)


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def zipped(*members: tuple[str, bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", how) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return sink.getvalue()


ONE = parquet(TABLES["wires"])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "rows.zip"),
        (b"no zip", "rows.zip"),
        (kept.packed(TABLES)[:-200], "rows.zip"),
        (kept.packed(TABLES).replace(b"PAR1", b"PAR2"), "rows.zip"),
        (zipped(("../../x.parquet", ONE)), "is not the name of a table"),
        (zipped(("a/b.parquet", ONE)), "is not the name of a table"),
        (zipped(("wires.txt", ONE)), "is not the name of a table"),
        (zipped(("wires.parquet", ONE), ("flowz.parquet", ONE)).replace(b"flowz", b"wires"), "occurs twice"),
        (zipped(("wires.parquet", ONE), how=zipfile.ZIP_DEFLATED), "packed in another way"),
        (zipped(*((f"t{number}.parquet", ONE) for number in range(kept.MOST_TABLES + 1))), "more than 1000"),
        (zipped(("wires.parquet", parquet(pa.table({"run": ["x"]})))), "has a column run"),
        (zipped(("metrics.parquet", parquet(pa.table({**METRIC, "value": ["much"]})))), "metrics"),
    ],
)
def test_damaged_rows_cost_the_run_its_values(run: Path, record: Record, content: bytes, says: str) -> None:
    (run / "rows.zip").write_bytes(content)
    rows = kept_rows(run, record, "key")
    assert isinstance(rows, RunRows) and not rows.values and not rows.tables and rows.facts
    (caution,) = rows.cautions
    assert caution.kind is Kind.UNREADABLE and caution.subject == record.id
    assert says in caution.detail and str(run) not in caution.detail
    part_of([rows])


def test_rows_that_would_take_too_much_memory_are_not_unpacked(run: Path, record: Record) -> None:
    """A million texts of 10 KB are 2 KB of Parquet, and 10 GB in memory."""
    numbers = pa.repeat(pa.scalar(0, pa.int32()), 10**6)
    for text, fits in (("x", True), ("x" * 10_000, False)):
        column = pa.DictionaryArray.from_arrays(numbers, pa.array([text]))
        (run / "rows.zip").write_bytes(kept.packed({"texts": pa.table({"text": column})}))
        assert (run / "rows.zip").stat().st_size < 5000
        rows = kept_rows(run, record, "key")
        if fits:
            assert isinstance(rows, KeptRows)
        else:
            assert isinstance(rows, RunRows) and "bytes of memory for" in rows.cautions[0].detail


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"run": None},
        {"files": [{"path": "../x", "bytes": 1, "sha256": None, "kept_as": None, "kept_bytes": 0}]},
        {"files": [{"path": "artifacts/../../x", "bytes": 1, "sha256": None, "kept_as": None, "kept_bytes": 0}]},
        {"files": [{"path": "artifacts/a/b", "bytes": 1, "sha256": None, "kept_as": "run.json", "kept_bytes": 0}]},
        {"files": [{"path": "artifacts/a/b"}]},
        {"files": {}},
    ],
)
def test_a_list_that_is_none(run: Path, record: Record, change: dict[str, Any]) -> None:
    (run / "kept.json").write_text(json.dumps({**LISTED, **change}))
    rows = kept_rows(run, record, "key")
    assert isinstance(rows, RunRows) and rows.cautions[0].detail.startswith("kept.json: ")


@pytest.mark.parametrize("name", ["kept.json", "rows.zip"])
@pytest.mark.parametrize("make", [lambda file: file.symlink_to("/etc/passwd"), os.mkfifo, os.mkdir, lambda file: None])
def test_what_is_no_plain_file_is_not_read(run: Path, record: Record, name: str, make: Callable[[Path], None]) -> None:
    (run / name).unlink()
    make(run / name)
    rows = kept_rows(run, record, "key")
    assert isinstance(rows, RunRows) and rows.cautions[0].detail.startswith(f"{name}: ")


def test_rows_that_do_not_go_with_others_are_left_out(record: Record) -> None:
    def of(id: str, value: pa.Array) -> KeptRows:
        of_run = Record.from_json({**record.to_json(), "id": id})
        return KeptRows(of_run, "key", {"wires": pa.table({"run": [id], "value": value})})

    number = pa.array([1.0])
    joined = tables_of([of("a", number), of("b", pa.array(["text"])), of("c", pa.array([2], pa.int64()))])
    assert joined["wires"].to_pylist() == [{"run": "a", "value": 1.0}, {"run": "c", "value": 2.0}]
    (caution,) = joined["cautions"].to_pylist()
    assert (caution["run"], caution["kind"]) == ("b", "unreadable")
