"""Buckets that strangers write: each change ends in one error that names the object and the address, within 512 MiB."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.fuzz import buckets

from command import twinbed
from synthetic_results import planted_response, write_study
from twinbed.cli.main import run
from twinbed.results.bucket import keeper, remote
from twinbed.results.bucket.address import Address, address_of
from twinbed.results.bucket.objects import BucketError, Objects, Stored
from twinbed.results.bucket.snapshot import latest
from twinbed.results.parquet import FREE_BYTES, Room, Unreadable
from twinbed.results.store import Store

CASES = int(os.environ.get("TWINBED_BUCKET_CASES", "15"))
SEED = int(os.environ.get("TWINBED_BUCKET_SEED", "0"))
RATIOS = {"physical": 1.0, "slow": 0.5}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket of two snapshots, the second of which has two batches."""
    home = tmp_path_factory.mktemp("published")
    results = write_study(home / "study", list(RATIOS), {}, 5, planted_response(RATIOS, 0.01, seed=3))
    (home / "aside").mkdir()
    for made in sorted((results / "runs").iterdir())[6:]:
        made.rename(home / "aside" / made.name)
    assert run(["publish", str(results), f"file://{home}/bucket"]) == 0
    for made in (home / "aside").iterdir():
        made.rename(results / "runs" / made.name)
    assert run(["publish", str(results), f"file://{home}/bucket"]) == 0
    return home / "bucket"


@pytest.fixture
def bucket(published: Path, tmp_path: Path) -> Path:
    return shutil.copytree(published, tmp_path / "bucket")


def address(bucket: Path) -> Address:
    found = address_of(f"file://{bucket}")
    assert found
    return found


def table_object(bucket: Path, table: str = "metrics") -> Stored:
    snapshot = latest(Objects(address(bucket)))
    assert snapshot and len(snapshot.batches) == 2
    return snapshot.batches[0].tables[table][0]


def compared(bucket: Path) -> tuple[int, str, int]:
    """Exit code, what was written, and the most memory of a process of its own, in bytes."""
    code = "import sys; from twinbed.cli.main import run; code = run(sys.argv[1:]); "
    code += "from tests.hostile_streams import peak_bytes; print(peak_bytes(), file=sys.stderr); sys.exit(code)"
    command = [sys.executable, "-c", code, "compare", f"file://{bucket}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    text, _, memory = done.stderr.rstrip().rpartition("\n")
    return done.returncode, done.stdout + text, int(memory)


def said_of(bucket: Path) -> tuple[int, str]:
    done = twinbed("compare", f"file://{bucket}")
    return done.returncode, done.stdout + done.stderr


def pipe(file: Path) -> None:
    os.mkfifo(file)


def device(file: Path) -> None:
    os.mknod(file, 0o020666, os.makedev(1, 5))


def secret(file: Path) -> None:
    (file.parent.parent.parent / "secret").write_text(buckets.SECRET)
    file.symlink_to(file.parent.parent.parent / "secret")


def grown(file: Path) -> None:
    with file.open("wb") as sink:
        sink.truncate(60 * 10**9)


KINDS: list[tuple[Callable[[Path], None], str]] = [
    (pipe, "is a named pipe, where a file belongs"),
    (secret, "is a symbolic link, where a file belongs"),
    (Path.mkdir, "is a folder, where a file belongs"),
    (grown, "has 60,000,000,000 bytes, more than the"),
]
if os.geteuid() == 0:
    KINDS.append((device, "is a device, where a file belongs"))


@pytest.mark.parametrize(("made", "said"), KINDS, ids=lambda each: getattr(each, "__name__", ""))
@pytest.mark.parametrize("which", ["object", "snapshot"])
def test_only_plain_files_of_known_size_are_read(bucket: Path, made: Callable[[Path], None], said: str, which: str) -> None:
    name = table_object(bucket).name if which == "object" else "snapshots/0000000002.json"
    (bucket / name).unlink()
    made(bucket / name)
    code, text = said_of(bucket)
    assert code == 2
    assert f"file://{bucket}: {name} {said}" in text
    assert buckets.SECRET not in text
    if made is grown:
        assert compared(bucket)[2] < buckets.MOST_MEMORY_BYTES


@pytest.mark.parametrize("name", ["objects", "snapshots"])
def test_a_folder_of_a_bucket_that_is_a_link_is_neither_read_nor_written(bucket: Path, tmp_path: Path, name: str) -> None:
    (bucket / name).rename(tmp_path / "elsewhere")
    (bucket / name).symlink_to(tmp_path / "elsewhere")
    there = sorted((tmp_path / "elsewhere").iterdir())
    with pytest.raises(BucketError, match="is a symbolic link, where a folder belongs"):
        Store.open(address(bucket))
    with pytest.raises(BucketError, match="is a symbolic link, where a folder belongs"):
        Objects(address(bucket)).put(b"x") if name == "objects" else Objects(address(bucket)).create(f"{name}/x", b"x")
    assert sorted((tmp_path / "elsewhere").iterdir()) == there


def test_an_object_that_grows_while_it_is_read(bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size was looked at before: what comes is counted too."""
    (bucket / "objects" / "grown").write_bytes(b"0123456789")
    monkeypatch.setattr(keeper, "_size", lambda _: 4)
    with pytest.raises(BucketError, match="objects/grown has 10 bytes, more than the allowed 5"):
        Objects(address(bucket)).read("objects/grown", 5)


def changed(bucket: Path, change: Callable[[buckets.Object], None]) -> None:
    snapshot = buckets._snapshot(bucket)
    change(snapshot)
    buckets._put_snapshot(bucket, snapshot)


def test_a_batch_counts_once(bucket: Path) -> None:
    """Listed a thousand times it was as many runs, and turned the verdict."""
    changed(bucket, lambda snapshot: snapshot.update(batches=[snapshot["batches"][0]] * 1000))  # type: ignore[index]
    code, text = said_of(bucket)
    assert code == 2 and "its batch 2 is listed twice" in text


def test_a_run_counts_once(bucket: Path) -> None:
    """The same rows in a file of other bytes are another object."""
    snapshot = latest(Objects(address(bucket)))
    assert snapshot
    batch = snapshot.batches[0]
    table = pq.read_table(bucket / batch.catalogue.name)
    first = table["run"][0].as_py()
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="gzip")
    again = Objects(address(bucket)).put(sink.getvalue().to_pybytes())
    changed(bucket, lambda content: content["batches"].append({**batch.to_json(), "catalogue": again.to_json()}))  # type: ignore[union-attr,arg-type]
    with pytest.raises(BucketError, match=r"snapshot 2 cannot be read: it lists the run \w{12} 2 times") as refused:
        Store.open(address(bucket))
    assert str(refused.value).count(str(bucket)) == 1 and first


def test_rows_are_of_their_batch(bucket: Path) -> None:
    def change(content: buckets.Object) -> None:
        one, other = (each["tables"]["metrics"] for each in content["batches"])  # type: ignore[index,union-attr,call-overload]
        one += other  # type: ignore[operator]

    changed(bucket, change)
    with pytest.raises(BucketError, match=r"the table metrics in objects/\w+ cannot be read: it has rows of runs that are not"):
        Store.open(address(bucket)).table("metrics")


def test_the_number_of_runs_is_that_of_the_snapshot(bucket: Path) -> None:
    changed(bucket, lambda content: content["batches"][0].update(runs=5))  # type: ignore[index,union-attr,call-overload]
    with pytest.raises(BucketError, match="has 6 runs; the snapshot says 5"):
        Store.open(address(bucket))


@pytest.mark.parametrize("table", ["cautions", "metrics", "runs"])
def test_a_batch_without_a_table_is_no_batch(bucket: Path, table: str) -> None:
    """Without its cautions a verdict would be free of them."""
    changed(bucket, lambda content: content["batches"][1]["tables"].pop(table))  # type: ignore[index,union-attr,call-overload]
    with pytest.raises(BucketError, match=f"its batch 2 has no table {table}"):
        Store.open(address(bucket))


@pytest.mark.parametrize("table", ["catalogue", "metrics"])
def test_a_bomb_with_the_right_hash(bucket: Path, table: str) -> None:
    """A million texts of 10 KB each are 10 GB in memory."""
    snapshot = latest(Objects(address(bucket)))
    assert snapshot
    batch = snapshot.batches[0]
    stored = batch.catalogue if table == "catalogue" else batch.tables[table][0]
    rows = pq.read_table(bucket / stored.name)
    zeros = pa.repeat(pa.scalar(0, pa.int32()), 10**6)
    columns = {name: pa.DictionaryArray.from_arrays(zeros, rows[name].drop_null()[:1].combine_chunks()) for name in ("run",)}
    others = {name: rows[name].type for name in rows.column_names if name != "run"}
    columns |= {
        name: pa.DictionaryArray.from_arrays(zeros, pa.array(["y" * 10_000])) if kind == pa.string() else pa.nulls(10**6, kind)
        for name, kind in others.items()
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, compression="zstd", store_schema=False)
    assert sink.tell() < 200_000
    buckets._replace(bucket, stored.name, sink.getvalue().to_pybytes())
    code, text, memory = compared(bucket)
    assert code == 2 and "bytes of memory for" in " ".join(text.split())
    assert f"{bucket}" in text
    assert memory < buckets.MOST_MEMORY_BYTES


def parquet(table: pa.Table, **how: object) -> pa.BufferReader:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", **how)
    return pa.BufferReader(sink.getvalue())


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (lambda: parquet(pa.table({"x": ["z" * 150_000_000]}), use_dictionary=False), "1 rows needs 150,"),
        (lambda: parquet(pa.table({"x": pa.nulls(20_000_000, pa.float64())})), "bytes of memory for"),
        (
            lambda: parquet(pa.table({"x": ["z" * 10**6] * 9}), use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY"),
            "encoding 7",
        ),
        (
            lambda: parquet(pa.table({"x": pa.ListArray.from_arrays([0, 2 * 10**7], pa.nulls(2 * 10**7, pa.int64()))})),
            "bytes of memory",
        ),
        (lambda: parquet(pa.table({str(each): [1] for each in range(1001)})), "it has 1,001 columns"),
    ],
    ids=["page", "nulls", "repeated text", "lists", "columns"],
)
def test_how_parquet_packs(file: Callable[[], pa.BufferReader], said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        Room().opened(file())


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_what_is_honest_is_read(version: str, dictionary: bool) -> None:
    """Many row groups, pages, nulls and kinds; each text once, or all alike."""
    rows = 50_000
    table = pa.table(
        {
            "alike": ["a text of some length"] * rows,
            "each": [f"{number:012}" for number in range(rows)],
            "whole": pa.array(range(rows)),
            "real": pa.array([None, 1.5] * (rows // 2)),
            "flag": pa.array([True, None] * (rows // 2)),
            "empty": pa.nulls(rows, pa.string()),
            "list": pa.array([["a", "b"], []] * (rows // 2)),
            "struct": pa.array([{"a": "b"}] * rows),
            "decimal": pa.array(range(rows)).cast(pa.decimal128(30, 2)),
        }
    )
    how = {"data_page_version": version, "use_dictionary": dictionary, "row_group_size": 7_000, "data_page_size": 10_000}
    for each in (table, table.slice(0, 0)):
        assert Room().opened(parquet(each, **how)).read().equals(each)


def test_tables_share_one_room() -> None:
    room = Room()
    with pytest.raises(Unreadable, match=r"bytes of memory for"):
        for _ in range(100):
            room.opened(parquet(pa.table({"x": pa.nulls(1_000_000, pa.float64())})))
    assert room._taken < 128 * 2**20


def test_a_snapshot_is_short(bucket: Path) -> None:
    file = bucket / "snapshots" / "0000000002.json"
    file.write_text(json.dumps(["x" * 17 * 2**20]))
    with pytest.raises(BucketError, match=r"0000000002\.json has 17,825,796 bytes, more than the allowed 16,777,216"):
        Store.open(address(bucket))


@pytest.fixture(scope="module")
def outcomes(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[buckets.Fault | str]]:
    yield list(buckets.faults(published, CASES, SEED, tmp_path_factory.mktemp("scratch")))


def test_fuzzed(outcomes: list[buckets.Fault | str]) -> None:
    """The long form is ``python -m benchmarks.fuzz.buckets 10000``."""
    assert [each for each in outcomes if isinstance(each, buckets.Fault)] == []
    assert outcomes.count("refused") > CASES // 2 and outcomes.count("equal") > CASES // 12
    assert remote.DEADLINE_S >= 60


def test_many_columns_of_texts_one_of_which_is_long_are_read() -> None:
    """The quickstart's 11,040 rows were refused: each text of every column was taken to be as long as its longest."""
    texts = ["short"] * 11_039 + ["long " * 400]
    table = pa.table({f"column {number}": texts for number in range(20)})
    assert 20 * 11_040 * len(texts[-1]) > 3 * FREE_BYTES
    assert Room().opened(parquet(table)).read().equals(table)
