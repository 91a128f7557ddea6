"""What the workload ``http`` reads from real outputs of ab and wrk; expected values were read from the files by eye."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from twinbed.contracts.extracted import Extracted
from twinbed.model.caution import Kind
from twinbed.workloads.http import HttpParams, http

GOLDEN = Path(__file__).parents[2] / "golden" / "http"

CAP = HttpParams(max_requests=200, threads=2, duration=20)
PAIRS = HttpParams(max_requests=60, keep_alive=True, https=True, duration=20)
TIME = HttpParams(payload=30000, threads=3, duration=3)
REFUSED = HttpParams(max_requests=20, duration=5)
WRK = HttpParams(tool="wrk", threads=2, duration=1)


def numbers(extracted: Extracted, host: str = "") -> dict[str, float | None]:
    return {value.metric: value.value for value in extracted.values if value.host == host}


def kinds(extracted: Extracted) -> list[Kind]:
    return [caution.kind for caution in extracted.cautions]


def test_every_number_of_a_report_of_ab():
    found = numbers(http.parse(CAP, GOLDEN / "cap"))
    # "Time taken for tests: 0.042 seconds", "Complete requests: 200", "HTML transferred: 100000 bytes",
    # "Transfer rate: 3498.50 [Kbytes/sec]" of 1024 bytes.
    expected = {
        "requests": 200,
        "requests_per_second": 4789.39,
        "goodput": 8 * 100000 / 0.042,
        "transfer_rate": 3498.50 * 1024,
        "time_taken": 0.042,
        "transferred_bytes": 149600,
        "document_transferred_bytes": 100000,
        "document_bytes": 500,
        "concurrency": 2,
        "time_per_request": 2 * 0.042 / 200,
        "time_between_requests": 0.042 / 200,
        "failed_requests": 0,
        "non_2xx": 0,
        "processing_time_sd": 0.0008,
        "processing_time_max": 0.004,
        "total_time_min": 0,
        "total_time_max": 0.004,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert found["keep_alive_requests"] is None, "ab says nothing of it without -k"


def test_percentiles_have_the_microseconds_of_the_csv_file():
    found = numbers(http.parse(CAP, GOLDEN / "cap"))
    rows = (GOLDEN / "cap/client/ab.csv").read_text().splitlines()
    assert "50,0.120" in rows and "99,3.589" in rows and "100,3.642" in rows
    assert found["total_time_p50"] == pytest.approx(0.000120)
    assert found["total_time_p99"] == pytest.approx(0.003589)
    assert found["total_time_p100"] == pytest.approx(0.003642)


def test_percentiles_that_ab_looks_up_past_the_last_request_are_the_longest_time():
    """7 requests: place floor(7 x 0.95 + 0.5) = 7 is past the last, 6; ab writes 0.000 there, tells 1014 ms in its report."""
    rows = (GOLDEN / "time/client/ab.csv").read_text().splitlines()
    assert "95,0.000" in rows and "99,0.000" in rows and "100,1014.170" in rows
    found = numbers(http.parse(TIME, GOLDEN / "time"))
    assert found["total_time_p95"] == found["total_time_p99"] == found["total_time_p100"] == pytest.approx(1.01417)


def test_a_run_that_its_time_ended_has_no_caution():
    extracted = http.parse(TIME, GOLDEN / "time")
    assert kinds(extracted) == []
    assert numbers(extracted)["requests"] == 7
    assert numbers(extracted)["time_per_request"] == pytest.approx(1.303819, abs=2e-4), "Time per request: 1303.819 [ms]"


def test_a_run_that_its_cap_ended_says_so():
    extracted = http.parse(CAP, GOLDEN / "cap")
    assert kinds(extracted) == [Kind.REQUEST_CAP]
    assert extracted.cautions[0].detail == "200 requests after 0.042 s of 20 s"


def test_every_request_is_a_row():
    table = http.parse(CAP, GOLDEN / "cap").tables["requests"]
    assert table.column_names == ["host", "start_s", "connect_s", "processing_s", "total_s", "waiting_s"]
    assert table.num_rows == 200
    assert set(table["host"].to_pylist()) == {"client"}
    assert max(table["total_s"].to_pylist()) == pytest.approx(0.004)


def test_several_clients_are_told_apart_and_added_up():
    extracted = http.parse(PAIRS, GOLDEN / "pairs")
    first, second, run = (numbers(extracted, host) for host in ("client1", "client2", ""))
    assert (first["requests"], second["requests"], run["requests"]) == (60, 40, 100)
    assert (first["requests_per_second"], second["requests_per_second"]) == (2598.08, 2452.48)
    assert run["requests_per_second"] == pytest.approx(2598.08 + 2452.48)
    # "Time taken for tests": 0.023 and 0.016 s, one request at a time.
    assert run["time_per_request"] == pytest.approx((0.023 + 0.016) / 100)
    assert run["goodput"] == pytest.approx(8 * 30000 / 0.023 + 8 * 20000 / 0.016)
    assert run["keep_alive_requests"] == 100
    assert "total_time_p50" not in run, "percentiles of two clients have no sum"
    assert extracted.tables["requests"]["host"].to_pylist().count("client2") == 40


def test_a_rate_of_failures_alone_is_missing_whatever_ab_prints():
    assert "Requests per second:    40241.45" in (GOLDEN / "refused/client/ab.txt").read_text()
    extracted = http.parse(REFUSED, GOLDEN / "refused")
    found = numbers(extracted)
    missing = ("requests", "requests_per_second", "goodput", "time_per_request", "total_time_mean", "total_time_p50")
    assert {found[name] for name in missing} == {None}
    assert (found["failed_requests"], found["failed_receive"], found["failed_exceptions"]) == (30, 20, 10)
    assert Kind.FAILED_REQUESTS in kinds(extracted)
    assert any(caution.detail == "30 failures of 20 requests: receive 20, exceptions 10" for caution in extracted.cautions)


@pytest.mark.parametrize(
    ("case", "params", "answers"),
    [("missing", REFUSED, 20), ("wrk-missing", HttpParams(tool="wrk", keep_alive=True, duration=1), 12410)],
)
def test_answers_other_than_2xx_are_counted_and_a_caution(case, params, answers):
    extracted = http.parse(params, GOLDEN / case)
    assert numbers(extracted)["non_2xx"] == answers
    assert Kind.NON_2XX in kinds(extracted)


def test_every_number_of_a_report_of_wrk():
    extracted = http.parse(WRK, GOLDEN / "wrk")
    # "16531 requests in 1.10s, 11.79MB read", "Requests/sec:  15029.34", "Transfer/sec:     10.72MB" of 2^20 bytes.
    expected = {
        "requests": 16531,
        "requests_per_second": 15029.34,
        "goodput": 8 * 500 * 16531 / 1.10,
        "transfer_rate": 10.72 * 2**20,
        "time_taken": 1.10,
        "transferred_bytes": 11.79 * 2**20,
        "concurrency": 2,
        "failed_requests": 0,
        "non_2xx": 0,
        "total_time_mean": 92.23e-6,
        "total_time_sd": 187.09e-6,
        "total_time_max": 4.38e-3,
        "total_time_p50": 67e-6,
        "total_time_p75": 88e-6,
        "total_time_p90": 117e-6,
        "total_time_p99": 415e-6,
    }
    found = numbers(extracted)
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert kinds(extracted) == [] and "requests" not in extracted.tables


def test_failures_of_wrk_are_counted_by_kind(tmp_path):
    """As wrk.c prints them."""
    text = (GOLDEN / "wrk/client/wrk.txt").read_text()
    errors = "  Socket errors: connect 1, read 2, write 3, timeout 4\nRequests/sec:"
    (tmp_path / "client").mkdir()
    (tmp_path / "client/wrk.txt").write_text(text.replace("Requests/sec:", errors))
    extracted = http.parse(WRK, tmp_path)
    found = numbers(extracted)
    assert [found[f"failed_{kind}"] for kind in ("requests", "connect", "receive", "write", "timeout")] == [10, 1, 2, 3, 4]
    assert kinds(extracted) == [Kind.FAILED_REQUESTS]


def test_a_document_of_another_size_than_asked_for_is_an_error():
    with pytest.raises(ValueError, match="a document of 500 bytes; it should have 1000"):
        http.parse(CAP.model_copy(update={"payload": 1000}), GOLDEN / "cap")


def test_a_warm_up_that_was_skipped_or_failed_is_a_caution(tmp_path):
    extracted = http.parse(TIME.model_copy(update={"warm_up_requests": 0}), GOLDEN / "time")
    assert [(caution.kind, caution.detail) for caution in extracted.cautions] == [(Kind.WARM_UP, "warm_up_requests is 0")]

    shutil.copytree(GOLDEN / "time", tmp_path / "run")
    shutil.copy(GOLDEN / "missing/client/ab.txt", tmp_path / "run/client/warm-up.txt")
    extracted = http.parse(TIME.model_copy(update={"warm_up_requests": 20}), tmp_path / "run")
    assert [(caution.kind, caution.detail) for caution in extracted.cautions] == [(Kind.WARM_UP, "20 of 20 requests")]


@pytest.mark.parametrize("artifact", ["ab.txt", "ab.csv", "ab.tsv"])
def test_an_artifact_that_is_missing_or_no_such_thing_is_an_error(artifact, tmp_path):
    shutil.copytree(GOLDEN / "cap", tmp_path / "run")
    (tmp_path / "run/client" / artifact).write_text("Segmentation fault\n")
    with pytest.raises(ValueError):
        http.parse(CAP, tmp_path / "run")
    (tmp_path / "run/client" / artifact).unlink()
    with pytest.raises(FileNotFoundError):
        http.parse(CAP, tmp_path / "run")


@pytest.mark.parametrize(("case", "params"), [("cap", CAP), ("pairs", PAIRS), ("refused", REFUSED), ("wrk", WRK)])
def test_every_value_is_declared_in_its_unit_and_given_once(case, params):
    extracted = http.parse(params, GOLDEN / case)
    declared = {metric.name: metric.unit for metric in http.metrics}
    assert all(declared[value.metric] == value.unit for value in extracted.values)
    places = [(value.metric, value.host, value.direction) for value in extracted.values]
    assert len(places) == len(set(places))
    assert http.work in declared
