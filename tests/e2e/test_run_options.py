"""`twinbed run` as its users call it: options, going on, the page, exit codes; and a study of two pairs."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.command import twinbed

from twinbed.api import Results
from twinbed.results.store import Store

FAKE = """
study: options
testbeds:
  a: {driver: fake, seed: 1}
  b: {driver: fake, seed: 2}
workload: {kind: planted}
instruments: []
factors: {testbed: [a, b], workload.rate: [1000, 2000]}
replicates: 3
"""
PAIRS = """
study: pairs
testbeds: {bed: {driver: container}}
workload: {kind: http, duration: 30s, max_requests: 60}
instruments: [packets]
replicates: 1
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "options.yaml"
    path.write_text(FAKE)
    return path


def made(results: Path) -> dict[str, int]:
    """Run -> when its record was written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in results.glob("runs/*/run.json")}


def test_a_study_is_run_gone_on_with_and_grown(study: Path, tmp_path: Path) -> None:
    results = tmp_path / "results" / "options"

    part = twinbed("run", study, "-s", "replicates=2", "--only", "testbed=a", "--only", "workload.rate=1000", cwd=tmp_path)
    assert part.returncode == 0, part.stderr
    first = made(results)
    assert len(first) == 2
    assert {json.loads(path.read_text())["levels"]["testbed"] for path in results.glob("runs/*/run.json")} == {"a"}

    whole = twinbed("run", study, "-s", "replicates=2", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    assert "8 runs, 2 of them made earlier" in whole.stderr
    assert first.items() <= made(results).items()
    assert len(made(results)) == 8
    page = results / "report.html"
    assert f"Report: {page.relative_to(tmp_path)}" in whole.stderr

    grown = twinbed("run", study, "--no-report", cwd=tmp_path)
    assert grown.returncode == 0, grown.stderr
    assert "12 runs, 8 of them made earlier" in grown.stderr
    assert "Report" not in grown.stderr
    complete = made(results)
    assert len(complete) == 12

    again = twinbed("run", study, "--no-report", cwd=tmp_path)
    assert again.returncode == 0
    assert [line for line in again.stderr.splitlines() if line] == [
        "Nothing to do: 12 of 12 runs are complete, and nothing changed since the last comparison.",
    ]
    assert made(results) == complete
    assert again.stdout and set(again.stdout.split()) <= set(grown.stdout.split()), "the verdict is the same"

    text = page.read_text(encoding="utf-8")
    assert re.search(r"<title>[^<]*\boptions\b", text)
    assert re.search(r"<h2[^>]*>([^<]*)", text)[1] == "Verdict"  # type: ignore[index]


def test_no_page_where_none_is_wanted(study: Path, tmp_path: Path) -> None:
    done = twinbed("run", study, "-o", tmp_path / "mine", "--no-report", "-s", "replicates=1", cwd=tmp_path)
    assert done.returncode == 0
    assert not (tmp_path / "mine" / "report.html").exists()
    assert not (tmp_path / "results").exists()


def test_failed_runs_are_exit_code_1(tmp_path: Path) -> None:
    """http on a fake testbed: its hosts have no nginx."""
    study = tmp_path / "fails.yaml"
    text = FAKE.replace("{kind: planted}", "{kind: http, duration: 1s}").replace(", workload.rate: [1000, 2000]", "")
    study.write_text(text)
    failed = twinbed("run", study, "--no-report", cwd=tmp_path)
    assert failed.returncode == 1
    assert "6 runs failed; their files are kept. To repeat them: --retry-failed" in failed.stderr
    assert failed.stderr.count("FAILED") == 6
    records = [json.loads(path.read_text()) for path in tmp_path.glob("results/options/runs/*/run.json")]
    assert {(record["status"], record["failed_phase"]) for record in records} == {("failed", "configure")}
    one = twinbed("run", study, "--no-report", "--retry-failed", "--stop-at-failure", cwd=tmp_path)
    assert one.returncode == 1
    assert one.stderr.count("FAILED") == 1
    assert len(list(tmp_path.glob("results/options/failed/*"))) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "testbed=c"], "--only testbed=c: no run of options matches"),
        (["-s", "replicats=2"], "did you mean 'replicates'?"),
        (["-o", "/dev/null"], "twinbed: /dev/null"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(arguments: list[str], said: str, study: Path, tmp_path: Path) -> None:
    done = twinbed("run", study, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_two_pairs_give_values_of_each_and_of_all(tmp_path: Path, leaves_nothing: None) -> None:
    study = tmp_path / "pairs.yaml"
    study.write_text(PAIRS)
    done = twinbed("run", study, "-s", "topology.pairs=2", "--no-report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = Store.open(tmp_path / "results" / "pairs").table("metrics").to_pylist()
    values = {(row["metric"], row["host"]): row["value"] for row in rows if not row["direction"]}
    packets = [
        row["value"] for row in rows if row["metric"] == "packets" and row["host"].startswith("client") and row["direction"]
    ]
    # ab is told to stop after 60 requests.
    assert values["requests", "client1"] == values["requests", "client2"] == 60
    assert values["requests", ""] == 120
    assert values["connections", ""] == 120
    assert len(packets) == 4, "two clients, two directions"
    assert values["packets", ""] == sum(packets)
    for metric in ("requests_per_second", "transferred_bytes"):
        parts = values[metric, "client1"], values[metric, "client2"]
        assert all(part > 0 for part in parts)
        assert values[metric, ""] == pytest.approx(sum(parts))


def test_runs_of_other_settings_are_kept_and_left_out(study: Path, tmp_path: Path) -> None:
    """A planted client twice as fast is another experiment: pooling the two would say that a testbed varies."""
    results = tmp_path / "results" / "options"
    first = twinbed("run", study, cwd=tmp_path)
    verdicts = first.stdout
    assert first.returncode == 0 and "other settings" not in verdicts + first.stderr
    alone = twinbed("compare", results, "--format", "json", cwd=tmp_path).stdout

    other = twinbed("run", study, "-s", "workload.spread=0.2", "-s", "replicates=2", cwd=tmp_path)
    assert f"12 runs in {results.relative_to(tmp_path)} used other settings" in other.stderr
    assert other.stdout.startswith("12 runs here are of other settings: left out (--all-settings takes them in).")
    assert "(12 runs here are of other settings: left out)" in (results / "report.html").read_text()
    assert json.loads(twinbed("compare", results, "--format", "json", cwd=tmp_path).stdout)["left_out"] == {
        "other settings": 12
    }
    page = twinbed("report", results, "--markdown", "-o", "-", cwd=tmp_path).stdout
    assert "12 runs here are of other settings: left out." in page

    def values(*options: str) -> set[int]:
        said = json.loads(twinbed("compare", results, "--format", "json", *options, cwd=tmp_path).stdout)
        return {each["n"] for each in said["comparisons"]}

    assert values() == {2}
    assert values("--all-settings") == {5}
    assert set(twinbed_api(results)) == {2}
    merged = twinbed("merge", results, results, "-o", "both", "--dry-run", cwd=tmp_path)
    assert "12 runs here are of other settings: left out" in merged.stdout + merged.stderr

    fewer = twinbed("run", study, "-s", "replicates=2", cwd=tmp_path)
    assert " made earlier" not in fewer.stderr
    assert values() == {2}
    assert twinbed("run", study, cwd=tmp_path).returncode == 0
    assert (
        json.loads(alone)["comparisons"]
        == json.loads(twinbed("compare", results, "--format", "json", cwd=tmp_path).stdout)["comparisons"]
    )
    assert len(made(results)) == 20, "nothing is thrown away"
    archive = twinbed("archive", results, cwd=tmp_path)
    assert archive.returncode == 0, archive.stderr
    assert twinbed("report", f"{results}.zip", "-o", "-", cwd=tmp_path).stdout == (results / "report.html").read_text()


def twinbed_api(results: Path) -> list[int]:
    """How many runs each testbed and cell has in Python."""
    counts = Counter((row["testbed"], row["workload.rate"]) for row in Results(results).runs().to_pylist())
    return list(counts.values())
