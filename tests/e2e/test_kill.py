"""twinbed killed at any instant: what was complete stays, the same command goes on, and nothing stays on the machine."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import lab_remains, stays

STUDY = """
study: killed
testbeds:
  bed: {{driver: {driver}}}
workload: {{kind: http, duration: 5s, max_requests: 60}}
topology: {{link: {{rate: 1gbit}}}}
factors: {{testbed: [bed], payload: [500B, 20kB]}}
instruments: [packets, counters]
replicates: {replicates}
seed: 7
"""


def command(study: Path, results: Path) -> list[str]:
    return [sys.executable, "-m", "twinbed.cli.main", "run", str(study), "-o", str(results), "--no-report"]


def runs_of(results: Path) -> dict[str, dict]:
    return {path.parent.name: json.loads(path.read_text()) for path in (results / "runs").glob("[0-9a-f]*/run.json")}


BEDS = [
    ("container", 8, 9, 2.5),
    ("mixed, client: {driver: qemu}, server: {driver: container}", 1, 2, 6.0),
]


@pytest.mark.parametrize(("driver", "replicates", "kills", "longest_s"), BEDS, ids=["containers", "a guest"])
def test_sigkill_at_random_instants(driver: str, replicates: int, kills: int, longest_s: float, tmp_path: Path) -> None:
    study, results = tmp_path / "study.yaml", tmp_path / "results"
    study.write_text(STUDY.format(driver=driver, replicates=replicates))
    before = lab_remains()
    instants = random.Random(20190221)
    killed_in_flight = 0
    for _ in range(kills):
        complete = {name: (results / "runs" / name / "run.json").stat().st_mtime_ns for name in runs_of(results)}
        process = subprocess.Popen(command(study, results), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(instants.uniform(0.2, longest_s))
        killed_in_flight += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept = {name: (results / "runs" / name / "run.json").stat().st_mtime_ns for name in complete}
        assert kept == complete, "what was complete is never made again"
    assert killed_in_flight > kills / 2, "most kills hit a study in flight"

    done = subprocess.run(command(study, results), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr

    runs = runs_of(results)
    planned = json.loads((results / "study.json").read_text())["runs"]
    assert sorted(runs) == sorted(run["id"] for run in planned)
    assert len(runs) == 2 * replicates
    assert {run["status"] for run in runs.values()} == {"complete"}
    assert len({(json.dumps(run["levels"]), run["replicate"]) for run in runs.values()}) == len(runs)
    assert [path.name for path in (results / "runs").iterdir() if path.name not in runs] == []
    assert stays(before) == set()


def test_interrupt_cleans_up_and_says_how_to_go_on(tmp_path: Path) -> None:
    study, results = tmp_path / "study.yaml", tmp_path / "results"
    study.write_text(STUDY.format(driver="container", replicates=20))
    before = lab_remains()
    process = subprocess.Popen(command(study, results), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not runs_of(results) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "Go on with: twinbed run" in said
    assert "Traceback" not in said
    assert runs_of(results)
    assert stays(before) == set()
