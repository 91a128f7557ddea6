"""Opening results: what is there, what is not results, what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from synthetic_results import planted_response, write_study
from twinbed.model.caution import Kind
from twinbed.model.error import TwinbedError
from twinbed.results.extract import extract
from twinbed.results.store import Store
from twinbed.workloads.planted import planted


@pytest.fixture
def results(tmp_path: Path) -> Path:
    respond = planted_response({"one": 1.0, "two": 1.0}, 0.02, seed=1)
    return write_study(tmp_path / "results", ["one", "two"], {"payload": ["500B"]}, 3, respond, margin=0.2)


def test_what_a_study_says(results: Path) -> None:
    store = Store.open(results)
    assert store.outline.name == "synthetic"
    assert store.outline.testbeds == ("one", "two")
    assert store.outline.reference == "one"
    assert store.outline.margin == 0.2
    assert store.outline.source.startswith("study: synthetic")
    assert [record.position for record in store.records] == [0, 1, 2, 3, 4, 5]
    assert len(store.planned) == 6
    assert store.missing() == ()
    assert store.cautions == ()


def test_testbeds_come_from_the_factor_in_its_order(results: Path) -> None:
    study = json.loads((results / "study.json").read_text())
    del study["testbeds"]
    study["factors"]["testbed"] = ["two", "one"]
    (results / "study.json").write_text(json.dumps(study))
    assert Store.open(results).outline.testbeds == ("two", "one")


def test_runs_without_a_study(results: Path) -> None:
    (results / "study.json").unlink()
    store = Store.open(results)
    assert store.outline.testbeds == ("one", "two")
    assert len(store.records) == 6
    assert store.planned == ()


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_text("")])
def test_not_a_results_folder(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "x")
    with pytest.raises(TwinbedError, match="x") as caught:
        Store.open(tmp_path / "x")
    assert caught.value.exit_code == 2
    assert caught.value.advice


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 99}', '{"format": 1, "id": "a"}', "null"])
def test_an_unreadable_record_is_named_and_the_others_go_on(results: Path, text: str) -> None:
    broken = Store.open(results).records[2].id
    (results / "runs" / broken / "run.json").write_text(text)
    store = Store.open(results)
    assert len(store.records) == 5
    assert [(caution.kind, caution.subject) for caution in store.cautions] == [(Kind.UNREADABLE, broken)]
    assert [run.id for run in store.missing()] == [broken]


def test_a_run_under_another_name_is_not_taken(results: Path) -> None:
    run = Store.open(results).records[0].id
    (results / "runs" / run).rename(results / "runs" / "elsewhere")
    store = Store.open(results)
    assert len(store.records) == 5
    assert store.cautions[0].subject == "elsewhere"


@pytest.mark.parametrize("path", ["../../../../etc/passwd", "/etc/passwd"])
def test_a_run_that_names_an_artifact_outside_its_folder_is_left_out(results: Path, path: str) -> None:
    file = next(results.glob("runs/*/run.json"))
    file.write_text(file.read_text().replace("artifacts/client/planted.json", path))
    store = Store.open(results)
    assert len(store.records) == 5
    assert [f"{path!r} is outside the run's folder" in caution.detail for caution in store.cautions] == [True]


def test_a_record_with_fields_that_are_no_such_thing_is_left_out(results: Path) -> None:
    file = next(results.glob("runs/*/run.json"))
    file.write_text(json.dumps({**json.loads(file.read_text()), "position": None}))
    assert len(Store.open(results).records) == 5


def test_unfinished_runs_are_not_seen(results: Path) -> None:
    (results / "runs" / ".partial-1").mkdir()
    (results / "runs" / "no-record").mkdir()
    (results / "runs" / "a-file").write_text("")
    store = Store.open(results)
    assert len(store.records) == 6
    assert store.cautions == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        '{"runs": [{"id": "a"}]}',
        '{"runs": [1]}',
        '{"runs": 7}',
        '{"study": 5}',
        '{"testbeds": 3}',
        '{"factors": 9}',
        "[" * 100_000,
    ],
)
def test_an_unreadable_study_is_an_error_with_its_name(results: Path, text: str) -> None:
    (results / "study.json").write_text(text)
    with pytest.raises(TwinbedError, match=r"study\.json"):
        Store.open(results)


def test_tables(results: Path) -> None:
    assert Store.open(results).table("metrics").num_rows == 0
    assert Store.open(results).names() == ()
    store = extract(results, {"planted": planted}, {})
    assert store.names() == ("applied", "cautions", "facts", "metrics", "runs")
    # Four metrics and two derived ones of each of six runs.
    assert store.table("metrics").num_rows == 36
    assert store.table("no such table").num_columns == 0


def test_a_table_that_is_broken_and_cannot_be_made_again_is_named(results: Path) -> None:
    extract(results, {"planted": planted}, {})
    for part in (results / "tables" / "metrics").iterdir():
        part.write_bytes(b"PAR1")
    with pytest.raises(TwinbedError, match="tables/metrics/part-") as caught:
        Store.open(results).table("metrics")
    assert "get these results from their source again" in caught.value.advice
