"""An A/A study: one driver under two names. Whatever is found between them, it may not be called a difference.

At 95 % one study of twenty may err; at 99.99 % at most one of ten thousand runs of this test does."""

from __future__ import annotations

import json
from pathlib import Path

from tests.command import twinbed

STUDY = """
study: a-a
testbeds:
  one: {driver: container}
  other: {driver: container}
reference: one
workload: {kind: http, duration: 1s, max_requests: 1000, payload: 500B}
topology: {link: {rate: 1gbit}}
instruments: [packets, counters]
replicates: 3
confidence: 0.9999
seed: 20190221
"""


def test_the_same_driver_twice_is_not_different(tmp_path: Path, leaves_nothing: None) -> None:
    study, results = tmp_path / "study.yaml", tmp_path / "results"
    study.write_text(STUDY)
    done = twinbed("run", study, "-o", results, "--no-report")
    assert done.returncode == 0, done.stderr
    compared = twinbed("compare", results, "--format", "json")
    data = json.loads(compared.stdout)
    headline = [row for row in data["comparisons"] if row["headline"]]
    assert {row["metric"] for row in headline} >= {"requests_per_second", "packets_per_request"}
    assert [row for row in headline if row["verdict"] == "different"] == []
    assert compared.returncode in (0, 5)
