"""Machines of a fleet, and a scheduler, that send what would run a program in the controller: it costs them their part."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.machines import Fleet

from fleet.test_fleet import FAKE, machines_of_blocks, run, written
from twinbed.cli.main import run as main
from unit.executor import test_hostile
from unit.executor.hostile import WORKER, Canary, Script, scheduler

pytestmark = pytest.mark.privileged

HOSTILE = """
import twinbed.executor.answers as answers


class Canary(Exception):
    def __reduce__(self):
        # Workers and the scheduler unpickle what they send, too: this is about the controller.
        return exec, ("import sys; 'twinbed.fleet.controller' in sys.modules and open(FILE, 'w').close()",)


def hostile(own, function, argument):
    BODY


answers.carried_out = hostile
"""
BODIES = {
    "m2": "return Canary()",
    "m3": "raise Canary()",
    "m4": "return b'V[[1]]'",
    "m5": "return bytes(2**22)",
}


BROKEN = """
from twinbed.testbeds.fake import FakeHost


def endless(self, arguments):
    return endless(self, arguments)


FakeHost._respond = endless
"""
"""This exception is one that dask cannot send."""


def test_what_is_no_answer_costs_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinbed.fleet.controller.AWAY_S", 0.5)
    monkeypatch.setattr("twinbed.executor.data_only.MESSAGE_BYTES", 2**20)
    canary = tmp_path / "canary"
    modules = {name: HOSTILE.replace("BODY", body).replace("FILE", repr(str(canary))) for name, body in BODIES.items()}
    modules["m6"] = BROKEN
    one = Fleet(tmp_path)
    study, results = written(tmp_path, "0.2s", FAKE), tmp_path / "results"
    try:
        one.scheduler()
        one.machine("m1", image=False)
        for name, text in modules.items():
            module = tmp_path / f"{name}.py"
            module.write_text(text)
            one.machine(name, image=False, preload=module)
        one.wait_for(6)
        assert run(study, results, one) == 0
    finally:
        one.end()
    assert set().union(*machines_of_blocks(results).values()) == {"m1"}
    assert not canary.exists()
    machines = json.loads((results / "fleet.json").read_text())["machines"]
    reasons = "\n".join(about["left out"] for about in machines.values() if "left out" in about)
    assert sum("left out" in about for about in machines.values()) == len(modules), machines
    assert machines["m6"]["left out"] == "RecursionError: maximum recursion depth exceeded"
    assert all(text in reasons for text in ("not with bytes", "Canary()", "sends an invalid answer", "at most"))


@pytest.mark.parametrize(
    "put", [test_hostile.result, test_hostile.exception, test_hostile.report], ids=lambda put: put.__name__
)
def test_a_hostile_scheduler_ends_the_command(
    put: Callable[[Script, bytes], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("twinbed.fleet.controller.ANSWER_S", 1.0)
    monkeypatch.setattr("twinbed.fleet.controller.AWAY_S", 0.5)
    monkeypatch.setattr("twinbed.executor.cluster.ANSWER_S", 3.0)
    script, canary = Script(), tmp_path / "canary"
    script.replies["identity"] = {"workers": {WORKER: {"status": "running", "resources": {"lab": 1.0}, "nthreads": 1}}}
    put(script, pickle.dumps(Canary(canary)))
    with scheduler(script) as address:
        argv = ["run", written(tmp_path), "-o", str(tmp_path / "results"), "--on", address, "--no-report", "-q"]
        assert main(argv) in (1, 3)
    said = capsys.readouterr().err
    assert "no machine of the fleet" in said or "was lost" in said
    assert not canary.exists()
