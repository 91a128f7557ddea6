"""Tables of which something is lost, was changed or is of another shape: made again, or an error that names the part."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from listed_parts import list_again
from synthetic_results import planted_response, write_study
from twinbed.analyses.compare.cautions import carried
from twinbed.model.caution import Caution, Kind
from twinbed.model.keep import Keep, Word
from twinbed.model.record import Record
from twinbed.results.bucket.address import Address, address_of
from twinbed.results.bucket.objects import BucketError
from twinbed.results.bucket.publish import Publisher
from twinbed.results.extract import extract
from twinbed.results.extract.rows import Readers
from twinbed.results.keep.kept import packed, rows
from twinbed.results.keep.thin import Thinner
from twinbed.results.schema import TABLES, check
from twinbed.results.store import FROZEN, Store, StoreError
from twinbed.tree import Tree
from twinbed.workloads.planted import planted

Harm = Callable[[Path], None]


def opened(folder: Path) -> Store:
    return extract(folder, {"planted": planted}, {})


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = write_study(
        tmp_path / "results",
        ["near", "far"],
        {"payload": ["500B", "1KiB"]},
        2,
        planted_response({"near": 1.0, "far": 0.8}, 0.02, 1),
        cautions=[Caution(Kind.STALL, "2 s")],
    )
    opened(folder)
    return folder


@pytest.fixture
def frozen(results: Path) -> Path:
    (results / FROZEN).write_text("{}")
    for artifacts in results.glob("runs/*/artifacts"):
        shutil.rmtree(artifacts)
    return results


def part(folder: Path, table: str) -> Path:
    (found,) = (folder / "tables" / table).glob("part-*.parquet")
    return found


def lost(file: Path) -> None:
    file.unlink()


def whole_table_lost(file: Path) -> None:
    shutil.rmtree(file.parent)


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)


def no_parquet(file: Path) -> None:
    file.write_bytes(b"strange")


def without_rows(file: Path) -> None:
    pq.write_table(pq.ParquetFile(file).read().slice(0, 0), file)


HARMS = (lost, whole_table_lost, cut_off, flipped, no_parquet, without_rows)
OF_RUNS = (lost, whole_table_lost, cut_off, no_parquet, without_rows)
"""The table of runs has the list, and cannot have its own hash in it: the keys of its runs are looked at."""


@pytest.mark.parametrize(
    ("table", "harm"),
    [*((table, harm) for table in ("metrics", "cautions", "facts") for harm in HARMS), *(("runs", harm) for harm in OF_RUNS)],
)
def test_a_part_that_is_lost_or_changed_is_made_again(results: Path, table: str, harm: Harm) -> None:
    before = opened(results).table(table)
    harm(part(results, table))
    assert opened(results).table(table).equals(before)
    assert opened(results).table("cautions").num_rows == 8


def test_a_change_that_is_seen_only_when_a_table_is_read_is_mended_then(results: Path) -> None:
    store = opened(results)
    before = store.table("metrics")
    flipped(part(results, "metrics"))
    assert store.table("metrics").equals(before)


@pytest.mark.parametrize("table", ["metrics", "cautions"])
def test_a_part_without_a_list_has_the_tables_that_every_part_has(results: Path, table: str) -> None:
    before = opened(results).table(table)
    runs = part(results, "runs")
    pq.write_table(pq.ParquetFile(runs).read().replace_schema_metadata(None), runs)
    part(results, table).unlink()
    assert opened(results).table(table).equals(before)


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("table", ["metrics", "cautions"])
def test_frozen_results_with_a_lost_or_changed_part_are_an_error_that_names_it(frozen: Path, table: str, harm: Harm) -> None:
    name = f"tables/{table}/{part(frozen, table).name}"
    harm(part(frozen, table))
    with pytest.raises(StoreError, match=name):
        opened(frozen).table(table)


def test_frozen_results_without_the_rows_of_a_run_are_an_error(frozen: Path) -> None:
    for file in frozen.glob("tables/*/part-*.parquet"):
        file.unlink()
    with pytest.raises(StoreError, match="no row of run"):
        opened(frozen)


def _column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


@pytest.mark.parametrize(
    ("table", "change", "fault"),
    [
        ("metrics", lambda t: t.drop_columns(["value"]), "no column value"),
        ("metrics", lambda t: _column(t, "value", pa.array(["x"] * t.num_rows)), "column value .* string, expected real"),
        ("metrics", lambda t: _column(t, "value", pa.array([float("nan")] * t.num_rows)), "column value .* not finite"),
        ("metrics", lambda t: _column(t, "run", pa.nulls(t.num_rows, pa.string())), "column run .* missing"),
        ("metrics", lambda t: _column(t, "scale", pa.array(["odd"] * t.num_rows)), "column scale .* 'odd'"),
        ("metrics", lambda t: t.rename_columns([*t.column_names[:-1], "low"]), "column low twice"),
        ("cautions", lambda t: _column(t, "detail", pa.array([[1]] * t.num_rows)), "column detail .* list"),
        ("runs", lambda t: pa.concat_tables([t, t]), "a run twice"),
    ],
)
def test_a_column_of_another_kind_is_an_error_that_names_it(
    frozen: Path, table: str, change: Callable[[pa.Table], pa.Table], fault: str
) -> None:
    file = part(frozen, table)
    before = pq.ParquetFile(file).read()
    pq.write_table(change(before).replace_schema_metadata(before.schema.metadata), file)
    list_again(frozen / "tables", file.name)
    with pytest.raises(StoreError, match=f"tables/{table}.*{fault}"):
        opened(frozen).table(table)


def test_what_is_listed_so_and_is_of_another_kind_is_made_again(results: Path) -> None:
    before = opened(results).table("metrics")
    file = part(results, "metrics")
    pq.write_table(pq.ParquetFile(file).read().drop_columns(["value"]), file)
    list_again(results / "tables", file.name)
    assert opened(results).table("metrics").equals(before)


def test_a_caution_of_another_version_is_shown(frozen: Path) -> None:
    file = part(frozen, "cautions")
    table = pq.ParquetFile(file).read()
    pq.write_table(_column(table, "kind", pa.array(["of_tomorrow"] * table.num_rows)), file)
    list_again(frozen / "tables", file.name)
    kinds = {each for of_run in carried(opened(frozen)).values() for each in of_run}
    assert kinds == {(Kind.UNKNOWN, "of_tomorrow: 2 s")}


def test_published_results_without_cautions_are_an_error(results: Path, tmp_path: Path) -> None:
    address = address_of(Path(f"file://{tmp_path}/bucket"))
    assert isinstance(address, Address)
    Publisher(opened(results), address, "1", raw=False).publish()
    (snapshot,) = (tmp_path / "bucket" / "snapshots").glob("*.json")
    data = json.loads(snapshot.read_text())
    del data["batches"][0]["tables"]["cautions"]
    snapshot.write_text(json.dumps(data))
    with pytest.raises(BucketError, match="batch 1 has no table cautions"):
        Store.open(Path(str(address)))


def test_rows_that_were_kept_without_the_cautions_are_not_believed(results: Path) -> None:
    record = opened(results).records[0]
    run = results / "runs" / record.id
    Thinner(results, Keep(Word.TABLES, {}), Readers({"planted": planted}, {}), "1").thin(record)
    assert opened(results).table("cautions").num_rows == 8
    tables = rows(Tree(run))
    del tables["cautions"]
    (run / "rows.zip").write_bytes(packed(tables))
    details = opened(results).table("cautions").filter(pa.compute.field("run") == record.id)["detail"].to_pylist()
    assert any("rows.zip: only 0 of 1 rows of the table cautions" in each for each in details)


STRANGE: dict[str, Callable[[dict], object]] = {  # type: ignore[type-arg]
    "settings: topology: strange": lambda run: run["settings"]["topology"].update(strange=1),
    "settings: topology: pairs": lambda run: run["settings"]["topology"].update(pairs="2"),
    "settings: workload: kind is missing": lambda run: run["settings"]["workload"].pop("kind"),
    "settings: testbed: name": lambda run: run["settings"]["testbed"].update(name=7),
    "settings: instruments: ": lambda run: run["settings"].update(instruments=[]),
    "settings: of_tomorrow": lambda run: run["settings"].update(of_tomorrow={}),
    "of_tomorrow": lambda run: run.update(of_tomorrow=1),
    "cell is missing": lambda run: run.pop("cell"),
    "levels: payload": lambda run: run["levels"].update(payload=[1]),
    "replicate": lambda run: run.update(replicate=2**70),
    "started_s": lambda run: run.update(started_s="now"),
    "status": lambda run: run.update(status="begun"),
    "phases: up": lambda run: run["phases"].update(up=None),
    "artifacts: bytes is missing": lambda run: run["artifacts"][0].pop("bytes"),
    "settings.workload: rate": lambda run: run["settings"]["workload"].update(rate=-1),
    "settings.workload: strange": lambda run: run["settings"]["workload"].update(strange=1),
}


@pytest.mark.parametrize("key", STRANGE)
def test_a_run_of_another_version_is_left_out_with_the_key(results: Path, key: str) -> None:
    file = sorted(results.glob("runs/*/run.json"))[0]
    run = json.loads(file.read_text())
    STRANGE[key](run)
    file.write_text(json.dumps(run))
    store = opened(results)
    assert len(store.records) == 7
    (caution,) = store.cautions
    assert caution.kind is Kind.UNREADABLE
    assert caution.detail.startswith(f"runs/{file.parent.name}/run.json: {key}")
    assert caution.detail.endswith("; this run is left out")


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": 1e400}', '{"a": "\\ud800"}', "[" * 5000 + "]" * 5000, "[]", "", '{"a":'])
def test_what_is_no_run_at_all_is_left_out(results: Path, text: str) -> None:
    sorted(results.glob("runs/*/run.json"))[0].write_text(text)
    assert len(opened(results).records) == 7


def test_every_run_that_is_written_is_read_again(results: Path) -> None:
    for record in Store.open(results).records:
        assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_every_table_that_plugins_write_is_as_declared() -> None:
    """Rows of many tables that were measured, by this version and by older ones."""
    root = Path(__file__).parents[3]
    names = set()
    for file in [*root.glob("docs/measured/*.zip"), root / "tests/golden/results/quickstart.zip"]:
        with zipfile.ZipFile(file) as archive:
            for name in (each for each in archive.namelist() if each.startswith("tables/")):
                table = name.split("/")[1]
                check(table, pq.read_table(pa.BufferReader(archive.read(name))))
                names.add(table)
    assert len(names & TABLES.keys()) > 15
