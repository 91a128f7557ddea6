"""Artifacts to tables: derived metrics, what is broken, what is read again and what is not."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deaths import die_once
from synthetic_results import planted_response, write_run, write_study
from twinbed.cli.main import run as main
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.params import InstrumentParams
from twinbed.executor.local import Processes
from twinbed.metrics.metric import Layer, Metric, Value
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.registry import PLUGINS
from twinbed.results.extract import extract
from twinbed.results.extract.derived import derive, fairness, work_done
from twinbed.results.store import Store
from twinbed.workloads.planted import planted

ANSWER = {"requests": 100, "requests_per_second": 50.0, "packets": 1000, "bytes": 64000}


def values(store: Store) -> dict[tuple[str, str, str], float | None]:
    table = store.table("metrics")
    keys = zip(*(table[name].to_pylist() for name in ("run", "metric", "host")), strict=True)
    return dict(zip(keys, table["value"].to_pylist(), strict=True))


@dataclass
class Counting(type(planted)):  # type: ignore[misc]
    """Planted, but counts how often it reads."""

    reads: list[str] = field(default_factory=list)
    name: str = "planted"
    params: type = planted.params
    metrics: Any = planted.metrics
    work: str = "requests"
    rate: str = "requests_per_second"

    def parse(self, params: Any, artifacts: Path) -> Extracted:
        self.reads.append(artifacts.parent.name)
        return planted.parse(params, artifacts)


class NoParams(InstrumentParams):
    pass


@dataclass
class Wires:
    """An instrument with a table, values of two hosts and directions, and a caution."""

    name: str = "wires"
    params: type = NoParams
    metrics: Any = (
        Metric("segments", "1", Layer.NETWORK, "segments", extensive=True, headline=True),
        Metric("load", "1", Layer.HOST, "share of a CPU"),
    )
    values: Any = (
        Value("segments", 500, "1", "client", "client_to_server"),
        Value("segments", None, "1", "client", "server_to_client"),
        Value("load", float("nan"), "1", "machine"),
    )

    def extract_of(self, params: Any, artifacts: Path, services: Any) -> Extracted:
        return self.extract(params, artifacts)

    def extract(self, params: Any, artifacts: Path) -> Extracted:
        table = pa.table({"port": [80, 81]})
        return Extracted(self.values, {"wires": table}, [Caution(Kind.CAPTURE_DROPS, "3 packets")])


def with_instrument(folder: Path, run: str) -> None:
    """Puts the instrument into a run's settings."""
    file = folder / "runs" / run / "run.json"
    record = json.loads(file.read_text())
    record["settings"]["instruments"] = {"wires": {"kind": "wires"}}
    file.write_text(json.dumps(record))


def test_extensive_metrics_are_divided_by_the_work(tmp_path: Path) -> None:
    run = write_run(tmp_path, "one", {"testbed": "one"}, 0, ANSWER)
    store = extract(tmp_path, {"planted": planted}, {})
    found = values(store)
    assert found[run, "packets_per_request", ""] == 10
    assert found[run, "bytes_per_request", ""] == 640
    assert (run, "requests_per_request", "") not in found
    table = store.table("metrics").to_pylist()
    about = {row["metric"]: (row["unit"], row["layer"], row["scale"], row["headline"]) for row in table}
    assert about["bytes_per_request"] == ("bytes/request", "network", "ratio", True)
    assert about["bytes"] == ("bytes", "network", "ratio", False)


@pytest.mark.parametrize("requests", [None, 0])
def test_no_work_makes_null_never_zero(tmp_path: Path, requests: int | None) -> None:
    run = write_run(tmp_path, "one", {}, 0, {**ANSWER, "requests": requests})
    found = values(extract(tmp_path, {"planted": planted}, {}))
    assert found[run, "packets_per_request", ""] is None
    assert found[run, "packets", ""] == 1000
    assert found[run, "requests", ""] == requests


def test_work_is_that_of_the_run_or_the_sum_over_hosts() -> None:
    a, b, whole = Value("requests", 10, "1", "client1"), Value("requests", 30, "1", "client2"), Value("requests", 41, "1")
    assert work_done([a, b], "requests") == 40
    assert work_done([a, b, whole], "requests") == 41
    assert work_done([a, Value("requests", None, "1", "client2")], "requests") is None
    assert work_done([], "requests") is None
    metric = Metric("packets", "1", Layer.NETWORK, "packets", extensive=True)
    [derived] = derive([Value("packets", 80, "1", "server", "client_to_server")], {"packets": metric}, "requests", 40)
    assert derived == Value("packets_per_request", 2.0, "1/request", "server", "client_to_server")


def rates(*of: float | None) -> list[Value]:
    clients = [Value("rate", rate, "1/s", f"client{at}") for at, rate in enumerate(of, 1)]
    return [*clients, Value("rate", 1e9, "1/s"), Value("other", 7, "1", "client1")]


@pytest.mark.parametrize(
    ("of", "index"),
    [
        ((3.0, 1.0), 16 / 20),
        ((1.0, 2.0, 3.0), 36 / 42),
        ((7.3, 7.3, 7.3, 7.3, 7.3), 1.0),
        ((0.0, 5.0, 0.0, 0.0), 1 / 4),
        ((5.0, None), None),
        ((5.0, float("nan")), None),
        ((0.0, 0.0), None),
    ],
)
def test_fairness_is_jains_index_of_the_clients_rates(of: tuple[float | None, ...], index: float | None) -> None:
    [found] = fairness(rates(*of), "rate", len(of))
    assert found == Value("fairness", pytest.approx(index) if index is not None else None, "1")


def test_fairness_is_missing_where_a_client_is_and_not_asked_of_one_pair() -> None:
    assert [value.value for value in fairness(rates(5.0, 5.0), "rate", 3)] == [None]
    assert [value.value for value in fairness([Value("rate", 9.0, "1/s")], "rate", 2)] == [None]
    assert list(fairness(rates(5.0), "rate", 1)) == []


def test_a_run_with_two_pairs_has_fairness_among_its_headlines(tmp_path: Path) -> None:
    run = write_run(tmp_path, "one", {}, 0, {**ANSWER, "requests_per_second": 30.0})
    home = tmp_path / "runs" / run
    (home / "artifacts" / "client2").mkdir()
    (home / "artifacts" / "client2" / "planted.json").write_text(json.dumps({**ANSWER, "requests_per_second": 10.0}))
    record = json.loads((home / "run.json").read_text())
    record["settings"]["topology"]["pairs"] = 2
    (home / "run.json").write_text(json.dumps(record))
    rows = extract(tmp_path, {"planted": planted}, {}).table("metrics").to_pylist()
    [found] = [row for row in rows if row["metric"] == "fairness"]
    assert found["value"] == pytest.approx(0.8)
    about = ("host", "direction", "unit", "layer", "scale", "headline")
    assert [found[name] for name in about] == ["", "", "1", "application", "ratio", True]
    assert {row["host"]: row["value"] for row in rows if row["metric"] == "requests_per_second"} == {
        "": 40.0,
        "client": 30.0,
        "client2": 10.0,
    }


def test_instruments_share_the_workloads_work(tmp_path: Path) -> None:
    run = write_run(tmp_path, "one", {}, 0, ANSWER)
    with_instrument(tmp_path, run)
    store = extract(tmp_path, {"planted": planted}, {"wires": Wires()})
    rows = [row for row in store.table("metrics").to_pylist() if row["metric"] == "segments_per_request"]
    assert {(row["host"], row["direction"]): row["value"] for row in rows} == {
        ("client", "client_to_server"): 5.0,
        ("client", "server_to_client"): None,
    }
    assert values(store)[run, "load", "machine"] is None
    assert store.table("wires").to_pylist() == [{"run": run, "port": 80}, {"run": run, "port": 81}]
    assert [row["kind"] for row in store.table("cautions").to_pylist()] == ["capture_drops"]


@pytest.mark.parametrize(
    "wrong", [(Value("nonsense", 1, "1"),), (Value("load", 1, "1", "client"), Value("load", 2, "1", "client"))]
)
def test_a_plugin_that_breaks_its_word_is_a_bug(tmp_path: Path, wrong: tuple[Value, ...]) -> None:
    with_instrument(tmp_path, write_run(tmp_path, "one", {}, 0, ANSWER))
    with pytest.raises(TypeError, match="wires"):
        extract(tmp_path, {"planted": planted}, {"wires": Wires(values=wrong)})


def test_what_a_background_load_did_is_read_as_an_instrument_is(tmp_path: Path) -> None:
    run = write_run(tmp_path, "one", {}, 0, ANSWER)
    file = tmp_path / "runs" / run / "run.json"
    record = json.loads(file.read_text())
    record["settings"]["background"] = {"wires": {"kind": "wires"}}
    file.write_text(json.dumps(record))
    rows = extract(tmp_path, {"planted": planted}, {"wires": Wires()}).table("metrics").to_pylist()
    assert ("segments", "client_to_server", 500) in {(row["metric"], row["direction"], row["value"]) for row in rows}
    said = extract(tmp_path, {"planted": planted}, {}).table("cautions").to_pylist()
    assert "this twinbed has no background load wires" in [row["detail"] for row in said]


def test_a_broken_artifact_makes_null_and_a_caution_and_the_rest_goes_on(tmp_path: Path) -> None:
    good = write_run(tmp_path, "one", {}, 0, ANSWER)
    broken = write_run(tmp_path, "one", {}, 1, ANSWER)
    gone = write_run(tmp_path, "one", {}, 2, ANSWER)
    (tmp_path / "runs" / broken / "artifacts" / "client" / "planted.json").write_text('{"requests": 1')
    (tmp_path / "runs" / gone / "artifacts" / "client" / "planted.json").unlink()
    store = extract(tmp_path, {"planted": planted}, {})
    found = values(store)
    assert found[good, "requests_per_second", ""] == 50.0
    assert found[broken, "requests_per_second", ""] is None
    assert found[gone, "packets", ""] is None
    cautions = store.table("cautions").to_pylist()
    assert {row["kind"] for row in cautions} == {"unreadable"}
    details = " ".join(row["detail"] for row in cautions)
    assert "has 14 bytes" in details and "is missing" in details
    assert str(tmp_path) not in details


@pytest.mark.parametrize("unit", [1e160, -1e300, 1e-170, 1e-310])
def test_what_no_measurement_is_makes_null_and_a_caution_and_no_verdict(
    tmp_path: Path, unit: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """A double has 1e308, and squares of 1e155 are more; 1e-170 squared is 0."""

    def respond(testbed: str, _levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        rate = {"one": 1.0, "two": 1.2}[testbed] + replicate / 100
        return {"requests": 1000, "requests_per_second": rate * unit, "packets": 10 + replicate, "bytes": 0.0}

    results = write_study(tmp_path / "results", ["one", "two"], {}, 6, respond)
    store = extract(results, {"planted": planted}, {})
    found = values(store)
    run = store.records[0].id
    assert found[run, "requests_per_second", ""] is None
    assert found[run, "bytes", ""] == 0 and found[run, "packets", ""] == 10
    (caution,) = [each for each in store.table("cautions").to_pylist() if each["run"] == run]
    assert caution["kind"] == "unreadable"
    assert caution["detail"] == f"requests_per_second is {unit:.3g}: no measurement is above 1e+60 or below 1e-60"
    assert main(["compare", str(results), "--format", "json"]) in (0, 4, 5)
    comparisons = json.loads(capsys.readouterr().out)["comparisons"]
    assert {"packets_per_request"} <= {row["metric"] for row in comparisons if row["verdict"]}
    assert not any(row["n"] for row in comparisons if row["metric"] == "requests_per_second")
    assert main(["report", str(results)]) == 0


def test_a_failed_run_has_a_row_and_no_values(tmp_path: Path) -> None:
    run = write_run(tmp_path, "one", {"testbed": "one"}, 0, ANSWER, failed="the guest hung")
    store = extract(tmp_path, {"planted": planted}, {})
    assert store.table("metrics").num_rows == 0
    [row] = store.table("runs").to_pylist()
    assert (row["run"], row["status"], row["failed_phase"], row["reason"]) == (run, "failed", "workload", "the guest hung")


def test_an_unknown_workload_is_a_caution(tmp_path: Path) -> None:
    run = write_run(tmp_path, "one", {}, 0, ANSWER)
    store = extract(tmp_path, {}, {})
    assert store.table("metrics").num_rows == 0
    [row] = store.table("cautions").to_pylist()
    assert row["run"] == run and "planted" in row["detail"]


def test_facts_and_settings(tmp_path: Path) -> None:
    applied = [{"subject": "s1", "setting": "rate_bit_s", "asked": 10**9, "found": 10**9, "source": "tc qdisc show"}]
    passport = {"client": {"kernel": "6.1", "offloads": {"tso": True}}}
    run = write_run(tmp_path, "one", {}, 0, ANSWER, passport=passport, applied=applied)
    store = extract(tmp_path, {"planted": planted}, {})
    assert [tuple(row.values()) for row in store.table("facts").to_pylist()] == [
        (run, "client", "kernel", "6.1"),
        (run, "client", "offloads.tso", "true"),
    ]
    assert [tuple(row.values()) for row in store.table("applied").to_pylist()] == [
        (run, "s1", "rate_bit_s", "1000000000", "1000000000", "tc qdisc show")
    ]


def study(folder: Path, replicates: int = 4) -> Path:
    return write_study(folder, ["one"], {}, replicates, planted_response({"one": 1.0}, 0.02, seed=1))


def test_doing_it_again_does_nothing(tmp_path: Path) -> None:
    study(tmp_path)
    workload = Counting()
    extract(tmp_path, {"planted": workload}, {})
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "tables").rglob("*.parquet")}
    extract(tmp_path, {"planted": workload}, {})
    assert len(workload.reads) == 4
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "tables").rglob("*.parquet")} == before


def test_new_runs_are_read_and_old_ones_are_not(tmp_path: Path) -> None:
    study(tmp_path)
    workload = Counting()
    extract(tmp_path, {"planted": workload}, {})
    new = write_run(tmp_path, "one", {"testbed": "one"}, 9, ANSWER)
    store = extract(tmp_path, {"planted": workload}, {})
    assert workload.reads[4:] == [new]
    assert store.table("metrics").num_rows == 5 * 6


def test_a_changed_run_is_read_again_alone(tmp_path: Path) -> None:
    study(tmp_path)
    workload = Counting()
    store = extract(tmp_path, {"planted": workload}, {})
    run = store.records[1].id
    (tmp_path / "runs" / run / "artifacts" / "client" / "planted.json").write_text(json.dumps({**ANSWER, "requests": None}))
    store = extract(tmp_path, {"planted": workload}, {})
    assert workload.reads[4:] == [run]
    assert values(store)[run, "requests", ""] is None
    assert sorted(store.table("runs")["run"].to_pylist()) == sorted(record.id for record in store.records)


def test_a_run_that_is_gone_leaves_the_tables(tmp_path: Path) -> None:
    study(tmp_path)
    store = extract(tmp_path, {"planted": planted}, {})
    (tmp_path / "runs" / store.records[0].id).rename(tmp_path / "away")
    store = extract(tmp_path, {"planted": planted}, {})
    assert store.table("runs").num_rows == 3
    assert store.table("metrics").num_rows == 18


def test_changed_code_rebuilds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study(tmp_path)
    workload = Counting()
    extract(tmp_path, {"planted": workload}, {})
    monkeypatch.setattr("twinbed.results.extract.code_key", lambda plugins: "another")
    store = extract(tmp_path, {"planted": workload}, {})
    assert len(workload.reads) == 8
    assert store.table("runs").num_rows == 4


@pytest.mark.parametrize("table", ["runs", "metrics", "cautions"])
def test_what_a_killed_writer_leaves_is_cleared_away(tmp_path: Path, table: str) -> None:
    """A part is there only when it is in ``runs``, whatever else was written before the end."""
    study(tmp_path)
    store = extract(tmp_path, {"planted": planted}, {})
    expected = values(store)
    tables = tmp_path / "tables"
    [part] = (tables / "runs").iterdir()
    if table == "runs":
        part.unlink()
    else:
        (tables / table / "part-0000000000000000.parquet").write_bytes(b"half")
        (tables / table / ".part-0000000000000000.parquet.123").write_bytes(b"half")
    assert values(extract(tmp_path, {"planted": planted}, {})) == expected
    write_run(tmp_path, "one", {"testbed": "one"}, 9, ANSWER)
    store = extract(tmp_path, {"planted": planted}, {})
    assert expected.items() < values(store).items()
    assert {file.name for file in tables.rglob("*") if file.is_file()} == {
        ".lock",
        *(part.name for part in (tables / "runs").iterdir()),
    }


def test_a_part_that_is_cut_short_is_read_anew(tmp_path: Path) -> None:
    study(tmp_path)
    store = extract(tmp_path, {"planted": planted}, {})
    [part] = (tmp_path / "tables" / "runs").iterdir()
    part.write_bytes(part.read_bytes()[:-7])
    assert values(extract(tmp_path, {"planted": planted}, {})) == values(store)


def test_batches_and_threads_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, many = study(tmp_path / "one", 7), study(tmp_path / "many", 7)
    expected = values(extract(one, {"planted": planted}, {}))
    monkeypatch.setattr("twinbed.results.extract.BATCH_RUNS", range(3, 4))
    monkeypatch.setattr("twinbed.results.extract.THREADS_FROM_BYTES", 0)
    steps: list[tuple[int, int]] = []
    store = extract(many, {"planted": planted}, {}, lambda done, total: steps.append((done, total)))
    assert values(store) == expected
    assert steps == [(3, 7), (6, 7), (7, 7)]
    assert len(list(store.source.parts("runs"))) == 3


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study(tmp_path)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("pyarrow.parquet.write_table", full)
        with pytest.raises(TwinbedError, match="No space left"):
            extract(tmp_path, {"planted": planted}, {})
    assert extract(tmp_path, {"planted": planted}, {}).table("runs").num_rows == 4


def test_tables_that_are_complete_need_no_right_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study(tmp_path)
    extract(tmp_path, {"planted": planted}, {})
    monkeypatch.setattr("twinbed.results.extract._locked", lambda tables: pytest.fail("wanted to write"))
    assert extract(tmp_path, {"planted": planted}, {}).table("runs").num_rows == 4


@pytest.mark.parametrize("kind", ["link", "linked folder", "pipe"])
def test_runs_of_strangers_lead_nowhere_else(kind: str, tmp_path: Path) -> None:
    (folder := tmp_path / "results").mkdir()
    study(folder)
    (secret := tmp_path / "secret").mkdir()
    planted_there = next(folder.glob("runs/*/artifacts"))
    if kind == "pipe":
        os.mkfifo(planted_there / "ab.out")
    else:
        (planted_there / "ab.out").symlink_to(secret if kind == "linked folder" else "/dev/zero")
    with pytest.raises(TwinbedError, match=r"artifacts/ab\.out is a (symbolic link|named pipe)"):
        extract(folder, {"planted": Counting()}, {})


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_the_record_of_a_run_is_a_plain_file(kind: str, tmp_path: Path) -> None:
    (folder := tmp_path / "results").mkdir()
    study(folder)
    record = next(folder.glob("runs/*/run.json"))
    record.rename(tmp_path / "moved.json")
    if kind == "pipe":
        os.mkfifo(record)
    else:
        record.symlink_to(tmp_path / "moved.json")
    store = Store.open(folder)
    assert [caution.kind for caution in store.cautions] == [Kind.UNREADABLE]
    assert record.parent.name not in {each.id for each in store.records}


@dataclass
class Deadly(Counting):
    """Planted, but whoever reads one of the runs for the first time dies of it."""

    marks: Path = Path()
    runs: frozenset[str] = frozenset()

    def parse(self, params: Any, artifacts: Path) -> Extracted:
        mark = self.marks / artifacts.parent.name
        if mark.name in self.runs:
            die_once(mark)
        return super().parse(params, artifacts)


def test_tables_are_the_same_bytes_whatever_reads_them_and_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinbed.results.extract.BATCH_RUNS", range(10, 11))
    one, many = (study(tmp_path / name, 80) for name in ("one", "many"))
    extract(one, {"planted": Deadly()}, {})
    (marks := tmp_path / "marks").mkdir()
    first, *_, last = sorted(path.name for path in (many / "runs").iterdir())
    extract(many, {"planted": Deadly(marks=marks, runs=frozenset({first, last}))}, {}, executor=Processes(2))
    assert len(list(marks.iterdir())) == 2
    assert files_below(one / "tables") == files_below(many / "tables")
    assert len(list(extract(many, {"planted": Deadly()}, {}).source.parts("runs"))) == 8


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.parquet"))}


def test_every_plugin_goes_to_other_processes() -> None:
    for name, plugin in {**PLUGINS.read, **PLUGINS.accompanying}.items():
        assert type(pickle.loads(pickle.dumps(plugin))) is type(plugin), name
