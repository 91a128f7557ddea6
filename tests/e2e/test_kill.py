"""twinbed killed amid its phases: what was complete stays, the same command goes on, and nothing stays on the machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.command import twinbed
from tests.conftest import lab_remains, stays

STUDY = """
study: killed
testbeds:
  bed: {{driver: {driver}}}
workload: {{kind: http, duration: 5s, max_requests: 20}}
factors: {{testbed: [bed], payload: [{payloads}]}}
instruments: [packets, counters]
replicates: {replicates}
seed: 7
"""
KILLED = """
import os, signal, sys

import twinbed.lab.study
import twinbed.registry
from twinbed.cli.main import main
from twinbed.results.folder import Folder


def lives(method, word, left, when):
    original, left = getattr(Folder, method), int(left)

    def die(at, arguments):
        nonlocal left
        if at == when and word in repr(arguments):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    def watched(*arguments, **named):
        die("before", arguments)
        done = original(*arguments, **named)
        die("after", arguments)
        return done

    setattr(Folder, method, watched)
    main()


for line in sys.stdin:
    child = os.fork()
    if not child:
        os.dup2(2, 1)
        lives(*line.strip().split(","))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Run twinbed in a process of its own for each line of input. The process ends itself by SIGKILL before or after the nth of
calls of a method of its results folder whose arguments have a word. Its exit code is a line of output."""


def words(study: Path, results: Path) -> list[str]:
    return ["run", str(study), "-o", str(results), "--no-report"]


def command(study: Path, results: Path) -> list[str]:
    return [sys.executable, "-m", "twinbed.cli.main", *words(study, results)]


def runs_of(results: Path) -> dict[str, dict]:
    return {path.parent.name: json.loads(path.read_text()) for path in (results / "runs").glob("[0-9a-f]*/run.json")}


def instant(method: str, word: str = "", number: int = 1, when: str = "after") -> str:
    return f"{method},{word},{number},{when}"


BEDS = [
    (
        "container",
        {
            instant("log", "Phase.CONFIGURE:"): 0,
            instant("log", "Phase.WORKLOAD:", 2): 1,
            instant("put", when="before"): 0,
            instant("put", when="after"): 1,
        },
    ),
    ("mixed, client: {driver: qemu, boot: snapshot}, server: {driver: container}", {instant("log", "Phase.WORKLOAD:"): 0}),
]
"""When the program dies, and how many runs it has completed by then. `make soak` kills it and other processes of labs in every
phase."""


@pytest.mark.parametrize(("driver", "instants"), BEDS, ids=["containers", "a guest"])
def test_sigkill(driver: str, instants: dict[str, int], tmp_path: Path) -> None:
    study, results = tmp_path / "study.yaml", tmp_path / "results"
    payloads = ["500B", "20kB"][: len(instants)]
    study.write_text(STUDY.format(driver=driver, payloads=", ".join(payloads), replicates=len(instants) // 2 + 1))
    before = lab_remains()
    argv = [sys.executable, "-c", KILLED, *words(study, results)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as killed:
        for at, completed in instants.items():
            complete = {name: (results / "runs" / name / "run.json").stat().st_mtime_ns for name in runs_of(results)}
            killed.stdin.write(f"{at}\n")
            killed.stdin.flush()
            code = killed.stdout.readline()
            if code.strip() != str(-signal.SIGKILL):
                pytest.fail(f"{at}: {code}{killed.communicate()}")
            kept = {name: (results / "runs" / name / "run.json").stat().st_mtime_ns for name in complete}
            assert kept == complete, "what was complete is never made again"
            assert len(runs_of(results)) == len(complete) + completed, at

    done = twinbed(*words(study, results))
    assert done.returncode == 0, done.stderr

    runs = runs_of(results)
    planned = json.loads((results / "study.json").read_text())["runs"]
    assert sorted(runs) == sorted(run["id"] for run in planned)
    assert len(runs) == len(payloads) * (len(instants) // 2 + 1)
    assert {run["status"] for run in runs.values()} == {"complete"}
    assert len({(json.dumps(run["levels"]), run["replicate"]) for run in runs.values()}) == len(runs)
    assert [path.name for path in (results / "runs").iterdir() if path.name not in runs] == []
    assert stays(before) == set()


def test_interrupt_cleans_up_and_says_how_to_go_on(tmp_path: Path) -> None:
    study, results = tmp_path / "study.yaml", tmp_path / "results"
    study.write_text(STUDY.format(driver="container", payloads="500B", replicates=40))
    before = lab_remains()
    process = subprocess.Popen(command(study, results), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not runs_of(results) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "Continue: twinbed run" in said
    assert "Traceback" not in said
    assert runs_of(results)
    assert stays(before) == set()
