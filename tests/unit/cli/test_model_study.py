"""A study of models alone, from the file to the page: it needs neither image nor lab, and says that nothing was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import twinbed as tb
from twinbed.cli import run_study
from twinbed.cli.main import run
from twinbed.lab import preflight

STUDY = """
study: models
testbeds:
  slow: {driver: model, client_request: 60us}
  fast: {driver: model}
reference: slow
workload: {kind: http, duration: 1s}
factors: {testbed: [slow, fast], payload: [500B, 1MiB]}
topology: {link: {rate: 100mbit}}
instruments: [packets, counters]
replicates: 2
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Made on a machine that has no image, builds none, and opens no lab; nor does anything that the tests run beside it."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a model needs none of this")

    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(run_study, "find", lambda: None)
        patch.setattr(preflight, "find", lambda: None)
        patch.setattr(run_study, "build", refused)
        patch.setattr(preflight, "open_lab", refused)
        Path("models.yaml").write_text(STUDY)
        assert run(["run", "models.yaml", "--output", "models"]) == 0
        yield folder / "models"


def test_tables_and_verdicts_are_those_of_any_testbed(results: Path) -> None:
    opened = tb.open(results)
    rows = opened.metrics("requests_per_second").to_pylist()
    rates = {(row["testbed"], row["payload"]): row["value"] for row in rows}
    # 100 Mbit/s carry 95.6 of data; the CPU that is slower shows only where the line does not limit.
    for testbed in ("slow", "fast"):
        assert rates[testbed, "1MiB"] * 2**20 * 8 == pytest.approx(95.6e6, rel=0.02)
    assert rates["fast", "500B"] > 1.1 * rates["slow", "500B"]
    verdicts = {row["payload"]: row["verdict"] for row in opened.compare(headlines=True).to_pylist()}
    assert verdicts["1MiB"] == "equivalent"
    requests = opened.table("requests")
    assert requests.num_rows > 1000
    assert set(requests["host"].to_pylist()) == {"client"}


def test_it_says_that_nothing_was_measured(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Instruments that the study has are put nowhere, which is no fault of a run."""
    kinds = {row["kind"] for row in tb.open(results).table("cautions").to_pylist()}
    assert "modelled" in kinds
    assert "unreadable" not in kinds
    capsys.readouterr()
    run(["compare", str(results)])
    assert "nothing was measured" in capsys.readouterr().out
    (passport, *_) = sorted((results / "runs").glob("*/passport.json"))
    places = json.loads(passport.read_text())
    assert set(places) == {"machine", "client", "server"}, "no image is part of it"
    assert (results / "report.html").exists()


def test_a_check_asks_the_machine_for_nothing(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["check", "models.yaml"]) == 0
    said = capsys.readouterr().out
    assert "FAILS" not in said
    assert "lab" not in said.split()


@pytest.mark.parametrize("load", ["{kind: traffic, tcp: 1}", "{kind: stress, cpu: 1}", "{kind: stress, io: 1, where: hosts}"])
def test_background_loads_are_refused_before_anything_runs(
    results: Path, load: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("loaded.yaml").write_text(f"{STUDY}background: {load}\n")
    capsys.readouterr()
    assert run(["run", "loaded.yaml", "--output", "loaded"]) == 3
    said = capsys.readouterr()
    assert "model: background" in said.err + said.out
    assert "no background load" in said.err + said.out


def test_what_is_not_modelled_is_refused_before_anything_runs(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["run", "models.yaml", "--output", "other", "-s", "workload.tool=wrk", "-s", "topology.routers=1"]) == 3
    said = capsys.readouterr()
    assert "tool: wrk" in said.err + said.out
    assert "routers: 1" in said.err + said.out
    assert not Path("other/runs").exists() or not list(Path("other/runs").iterdir())
