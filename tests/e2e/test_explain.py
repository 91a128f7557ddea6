"""``explain`` on containers: a planted cause is named first, its study is written, and nothing is named between testbeds that
are alike."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

STUDY = """
study: planted
testbeds:
  one: {driver: container, quickack: on}
  same: {driver: container, quickack: on}
  planted: {driver: container}
reference: one
workload: {kind: http, duration: 1s, max_requests: 1000, payload: 500B, keep_alive: on, nagle: on}
instruments: [packets, counters]
replicates: 5
"""
"""nginx writes header and body apart: Nagle's algorithm holds the body back until the header is acknowledged, which waits for
its timer, 40 ms, unless the client's route says otherwise."""


def twinbed(*arguments: object) -> str:
    command = [sys.executable, "-m", "twinbed.cli.main", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 4, 5), done.stderr
    return done.stdout


def explained(*arguments: object) -> dict[str, list[dict[str, Any]]]:
    return dict(json.loads(twinbed("explain", *arguments, "--format", "json")))


def test_what_was_planted_is_named_first(tmp_path: Path, leaves_nothing: None) -> None:
    study, results = tmp_path / "study.yaml", tmp_path / "results"
    study.write_text(STUDY)
    twinbed("run", study, "-o", results, "--no-report")
    causes = explained(results)["causes"]
    assert {row["testbed"] for row in causes} == {"planted"}, "nothing is named where nothing was planted"
    assert [(row["rank"], row["cause"]) for row in causes][:2] == [(1, "delayed_ack"), (2, "nagle")]
    assert (causes[0]["setting"], causes[0]["state"], causes[0]["reference_state"]) == ("quickack", "off", "on")
    proof = tmp_path / "proof.yaml"
    twinbed("explain", results, "--study", proof)
    assert "testbed.quickack" in proof.read_text()
