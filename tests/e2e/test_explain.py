"""``explain`` on containers: a planted cause is named first, its study is written, and nothing is named between testbeds that
are alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.command import twinbed

STUDY = """
study: planted
testbeds:
  one: {driver: container, quickack: on}
  same: {driver: container, quickack: on}
  planted: {driver: container}
reference: one
workload: {kind: http, duration: 1s, max_requests: 300, payload: 500B, keep_alive: on, nagle: on}
instruments: [packets, counters]
replicates: 6
"""
"""nginx writes header and body apart: Nagle's algorithm holds the body back until the header is acknowledged, which waits for
its timer, 40 ms, unless the client's route says otherwise.  Six replicates, since three do not tell hundredfold from noise
where other work makes single runs several times slower."""


def said(*arguments: object) -> str:
    done = twinbed(*arguments)
    assert done.returncode in (0, 4, 5), done.stderr
    return done.stdout


def explained(*arguments: object) -> dict[str, list[dict[str, Any]]]:
    return dict(json.loads(said("explain", *arguments, "--format", "json")))


def test_what_was_planted_is_named_first(tmp_path: Path, leaves_nothing: None) -> None:
    study, results = tmp_path / "study.yaml", tmp_path / "results"
    study.write_text(STUDY)
    said("run", study, "-o", results, "--no-report")
    causes = explained(results)["causes"]
    assert {row["testbed"] for row in causes} == {"planted"}, "nothing is named where nothing was planted"
    assert (causes[0]["rank"], causes[0]["cause"]) == (1, "delayed_ack")
    assert (causes[0]["setting"], causes[0]["state"], causes[0]["reference_state"]) == ("quickack", "off", "on")
    proof = tmp_path / "proof.yaml"
    said("explain", results, "--study", proof)
    assert "testbed.quickack" in proof.read_text()
