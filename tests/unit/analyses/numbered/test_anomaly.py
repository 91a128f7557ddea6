"""The analysis `anomaly` on planted results, and its command."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from typing import Any

import pytest

from numbered_results import RATE, small
from synthetic_results import write_study
from twinbed.contracts import exit_codes as codes


def test_anomaly_of_planted_results(shown, results):
    code, out, _ = shown("anomaly", results, "--response", "requests_per_second", "--format", "json")
    assert code == codes.DONE
    data = json.loads(out)
    assert [(row["testbed"], row["n"]) for row in data["faster"] if row["faster"]] == [("slow", 2), ("slow", 4)]
    counters = {row["counter"]: row for row in data["counters"]}
    assert [name for name, row in counters.items() if row["moves"]] == ["bytes_per_request"]
    assert counters["bytes_per_request"]["spearman"] > 0.8 and abs(counters["bytes_per_request"]["elasticity"] - 2) < 0.1
    # Of a part that goes with the work and one with the time; for each request it falls as the rate rises.
    assert counters["packets_per_request"]["spearman_as_measured"] < -0.3
    # 2000 of 7400, 12,800 and 23,000, each by its requests: 1.85, 0.93 and 0.48 of 6.85, 5.93 and 5.48.
    assert counters["packets_per_request"]["share_of_time"] == pytest.approx(0.185, abs=0.01)
    assert counters["requests"]["not_tested"] == "the work done in another form"
    assert {row["testbed"] for row in data["counters"]} == {"slow"}
    assert not {"requests_per_second", "packets", "bytes"} & set(counters)
    _, out, _ = shown("anomaly", results, "--response", "requests_per_second")
    assert "1 of 2 other metrics move with the rate, beyond work and time" in out


def test_anomaly_where_there_is_none(shown, tmp_path):
    noise = random.Random(3)

    def respond(_testbed: str, levels: Mapping[str, Any], _replicate: int) -> Mapping[str, float | None]:
        rate = 100 * levels["pairs"] * math.exp(noise.gauss(0, 0.02))
        return {"requests": rate, "requests_per_second": rate, "packets": rate, "bytes": rate}

    folder = write_study(tmp_path / "study", ["only"], {"pairs": (1, 2, 4)}, 5, respond)
    code, out, _ = shown("anomaly", folder, "--response", "requests_per_second")
    assert code == codes.DONE and "No pair is shown to be faster among several than alone" in out


def test_an_n_with_one_run_left_costs_no_mark_of_the_others(shown, tmp_path):
    folder = small(tmp_path / "study", {"pairs": (1, 2, 4)})
    for file in folder.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        if record["levels"]["pairs"] == 4 and record["replicate"]:
            file.write_text(json.dumps({**record, "status": "failed", "failed_phase": "workload", "reason": "gone"}))
    code, out, _ = shown("anomaly", folder, *RATE, "--format", "json")
    assert code == codes.DONE
    data = json.loads(out)
    assert [row["n"] for row in data["faster"]] == [2]
    assert data["left_out"] == {"failed runs": 5, "runs alone at their N": 1}
