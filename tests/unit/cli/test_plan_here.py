"""What a plan says of this machine and of the results that there are. Runs are of the fake testbed, which takes no time."""

from __future__ import annotations

import json
import platform
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from twinbed.cli.main import run
from twinbed.contracts import exit_codes as codes
from twinbed.contracts.check import Check
from twinbed.image import probe
from twinbed.image.failure import ImageFailed
from twinbed.lab import needs, preflight

STUDY = """
study: here
testbeds: {one: {driver: fake, seed: 1}, two: {driver: fake, seed: 2}}
workload: {kind: planted}
instruments: []
factors: {testbed: [one, two]}
replicates: 3
profiles: {quick: {replicates: 2}}
"""
ELSEWHERE = """
study: there
testbeds: {real: {driver: remote, hosts: {client: root@192.0.2.1, server: root@192.0.2.2}}, model: {driver: model}}
workload: {kind: http, duration: 1s}
instruments: []
factors: {testbed: [real, model]}
replicates: 3
"""
LACKING = Check("flux", False, "there is no flux", "apt-get install flux-capacitor")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that is busy tries all the same."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(needs, "QUICK_S", 300.0)
    (tmp_path / "s.yaml").write_text(STUDY)
    return tmp_path


def planned(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert run(["plan", "s.yaml", *words]) == codes.DONE
    return capsys.readouterr().out.splitlines()


def standing(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the line about runs that exist, which follows the lines about the machine."""
    lines = planned(capsys, *words)
    return lines[lines.index("") - 1]


def as_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    return json.loads("\n".join(planned(capsys, "--format", "json", *words)))


def test_the_runs_that_are_there_are_counted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert standing(capsys) == "No runs are in results/here yet."
    assert not (place / "results").exists(), "planning makes nothing"
    assert run(["run", "s.yaml", "--no-report", "--only", "testbed=one"]) == codes.DONE
    capsys.readouterr()
    assert standing(capsys) == "3 of 6 runs are in results/here; `twinbed run` makes the other 3."
    assert standing(capsys, "-s", "replicates=5") == "3 of 10 runs are in results/here; `twinbed run` makes the other 7."
    fewer = standing(capsys, "-s", "replicates=2")
    assert fewer.endswith("makes the other 2. 1 run there used other settings; they are kept but not compared.")
    assert standing(capsys, "--profile", "quick") == "No runs are in results/here-quick yet."
    assert standing(capsys, "-o", "elsewhere") == "No runs are in elsewhere yet."
    options = ("--profile", "quick", "-s", "factors.testbed=[one, two]", "-o", "else where")
    assert planned(capsys, *options)[-1] == (
        "Next: twinbed run s.yaml --profile quick -s 'factors.testbed=[one, two]' -o 'else where'"
    )
    counts = {"planned": 6, "complete": 3, "failed": 0, "due": 3, "of_other_settings": 0}
    assert as_json(capsys)["results"] == {"folder": "results/here", **counts}


def test_what_it_counts_as_due_is_what_run_makes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["run", "s.yaml", "--no-report", "--only", "testbed=two"])
    (record, *_) = sorted((place / "results/here/runs").glob("*/run.json"))
    record.write_text(record.read_text().replace('"status": "complete"', '"status": "failed"'))
    capsys.readouterr()
    text = standing(capsys)
    assert text == "3 of 6 runs are in results/here (1 failed; --retry-failed repeats them); `twinbed run` makes the other 3."
    before = len(list((place / "results/here/runs").iterdir()))
    run(["run", "s.yaml", "--no-report"])
    assert len(list((place / "results/here/runs").iterdir())) - before == 3
    capsys.readouterr()
    assert standing(capsys) == "All 6 runs are in results/here (1 failed; --retry-failed repeats them); nothing to run."


def test_what_check_refuses_is_a_line_with_its_mend(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "This machine is ready for the study." in planned(capsys)
    optional = Check("wings", False, "none", required=False)
    monkeypatch.setattr(preflight, "study", lambda _: [LACKING, optional])
    lines = planned(capsys)
    assert "Not ready: flux: there is no flux; fix: apt-get install flux-capacitor" in lines
    assert not [line for line in lines if "wings" in line or "is ready" in line]
    assert as_json(capsys)["refused"] == [{"what": "flux", "found": "there is no flux", "mend": LACKING.mend}]
    assert run(["check", "s.yaml"]) == codes.PREFLIGHT
    assert run(["run", "s.yaml"]) == codes.PREFLIGHT


def test_a_machine_that_can_have_no_hosts_plans_all_the_same(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the wheel for analyses is: on aarch64, without the programs for hosts."""
    monkeypatch.setattr(platform, "uname", lambda: SimpleNamespace(system="Linux", release="6.1.0", machine="aarch64"))
    monkeypatch.setattr(probe, "__file__", str(place / "twinbed/image/probe.py"))
    assert run(["plan", "offload", "--format", "json"]) == codes.DONE
    refused = json.loads(capsys.readouterr().out)["refused"]
    assert [(each["what"], each["found"]) for each in refused] == [
        ("system", "Linux 6.1.0 aarch64"),
        ("switches", "the programs for hosts need x86_64, and this machine is aarch64"),
    ]
    assert run(["check", "offload"]) == codes.PREFLIGHT
    monkeypatch.setattr(platform, "uname", lambda: SimpleNamespace(system="Linux", release="6.1.0", machine="x86_64"))
    with pytest.raises(ImageFailed, match="has not been built"):
        probe.probe_path()


def test_other_machines_are_not_asked(place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "s.yaml").write_text(ELSEWHERE)
    asked = []
    monkeypatch.setattr(preflight, "study", lambda testbeds: asked.append([name for name, _, _ in testbeds]) or [])
    lines = planned(capsys)
    assert "Not tested: hosts of real, which are not on this machine (`twinbed check` tests them)" in lines
    assert asked == [["model"]]


def test_it_takes_no_longer_than_a_few_seconds(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def slow(**_: object) -> list[Check]:
        now[0] += needs.QUICK_S + 1
        return [LACKING]

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(preflight, "machine", slow)
    here = as_json(capsys)
    assert [each["what"] for each in here["refused"]] == ["flux"]
    assert here["untried"][0] == "testbeds, for lack of time"
    assert here["untried"][-1] == "programs of instruments, for lack of time"
