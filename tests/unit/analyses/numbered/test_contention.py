"""The analysis `contention` on planted results with metrics of the machine, its command and page."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from numbered_results import PAIRS, RATE, WithMachine, drawn
from synthetic_results import write_study
from twinbed import registry
from twinbed.analyses.contention.words import drawn as metrics_drawn
from twinbed.contracts import exit_codes as codes
from twinbed.model.caution import Kind
from twinbed.model.error import TwinbedError
from twinbed.render.pages import page
from twinbed.results.store import Store
from twinbed.show.words import metric_name


def test_contention_without_metrics_of_the_machine_says_so(shown, results):
    code, out, _ = shown("contention", results, "--response", "requests_per_second")
    assert code == codes.DONE and "no metric of the machine varies" in out
    _, out, _ = shown("contention", results, "--response", "requests_per_second", "--format", "json")
    assert {row["metric"] for row in json.loads(out)["curves"]} == {"requests_per_second"}


def test_contention_of_planted_results(opened):
    contention = registry.analysis("contention")
    result = contention.run(opened, contention.params(response="requests_per_second"))
    curves = contention.tables(result)["curves"]
    assert {row["metric"] for row in curves} == {"requests_per_second", "cpu_idle", "interrupts"}
    assert {row["mirrored"] for row in curves if row["metric"] == "cpu_idle"} == {True}
    assert max(abs(row["curvature"]) for row in curves if row["curvature"] is not None) == 1
    slow, fast = contention.tables(result)["detectors"]
    assert slow["area"] >= 0.95 and slow["fallen_from"] == 16 and slow["alarms_from"] <= 16
    assert slow["before_runs"] is None, "from 8 to 16 pairs the rate goes from all to 80 %"
    alarms = [row for row in contention.tables(result)["alarms"] if row["testbed"] == "slow"]
    assert [row["n"] for row in alarms] == list(PAIRS) and {row["runs"] for row in alarms} == {4}
    assert alarms[0]["alarms"] == 0 and (alarms[-1]["share"], alarms[-1]["high"]) == (1, 1)
    assert alarms[-1]["low"] == pytest.approx(0.025 ** (1 / 4)), "the exact interval of 4 of 4"
    scores = [row for row in contention.tables(result)["scores"] if row["testbed"] == "slow"]
    assert len(scores) == 64 and sum(row["part"] == "test" for row in scores) == 32
    assert all(row["alarms"] == (row["score"] > slow["threshold"]) for row in scores)
    assert slow["false_alarms"] <= 0.15 and slow["reason"] == ""
    assert fast["area"] >= 0.95 and fast["fallen_from"] == 40
    assert contention.tables(result)["roc"][0]["threshold"] is None
    with pytest.raises(TwinbedError, match="constant"):
        contention.run(opened, contention.params(response="requests_per_second", metrics=("constant",)))


@pytest.mark.parametrize("rate", [lambda n: 1e6, lambda n: 1e6 - 12345.6 * n])
def test_a_rate_that_does_not_bend_has_no_turns(shown, tmp_path, rate):
    """Smoothing leaves the rounding of its sums, which scaled to 1 would look like bends."""

    def respond(_testbed: str, levels: Mapping[str, Any], _replicate: int) -> Mapping[str, float | None]:
        pairs = levels["pairs"]
        return {"requests": 1000, "requests_per_second": pairs * rate(pairs), "packets": 100, "bytes": 1000}

    folder = write_study(tmp_path / "study", ["bed"], {"pairs": (1, 2, 4, 8, 16, 40, 80)}, 3, respond)
    _, out, _ = shown("contention", folder, *RATE, "--format", "json")
    data = json.loads(out)
    assert data["inflections"] == []
    assert {(row["curvature"], row["bent"]) for row in data["curves"]} == {(0.0, 0.0), (None, 0.0)}


def test_testbeds_one_after_the_other_get_a_caution(opened, monkeypatch):
    contention = registry.analysis("contention")
    asked = contention.params(response="requests_per_second", bends=False)
    assert Kind.SUCCESSION not in {each.kind for each in contention.run(opened, asked).cautions}
    later = [replace(one, started_s=one.started_s + 1e7 * (one.levels["testbed"] == "slow")) for one in opened.records]
    monkeypatch.setattr(WithMachine, "records", later, raising=False)
    assert Kind.SUCCESSION in {each.kind for each in contention.run(opened, asked).cautions}


def test_a_run_that_the_machine_was_not_measured_in_costs_itself_only(opened):
    store = Store.open(opened.path)
    absent = [record.id for record in store.records if record.levels["pairs"] == 2][:3]
    contention = registry.analysis("contention")
    result = contention.run(WithMachine(store, absent), contention.params(response="requests_per_second"))
    assert result.left_out == {"runs without metrics of the machine": 3}
    assert [row["area"] >= 0.95 for row in contention.tables(result)["detectors"]] == [True, True]
    assert {row["metric"] for row in contention.tables(result)["curves"]} == {"requests_per_second", "cpu_idle", "interrupts"}
    assert not {row["run"] for row in contention.tables(result)["scores"]} & set(absent)


def test_contention_has_a_page(opened):
    contention = registry.analysis("contention")
    result = contention.run(opened, contention.params(response="requests_per_second"))
    shown = page(contention.section(result), result, "results")
    count, text = drawn(shown)
    assert count == 2 * 4, "for each testbed: bends, scores, how early, ROC"
    first = result.groups[0]
    curves, turns = metrics_drawn(first)
    assert {curve.metric for curve in curves} == {"requests_per_second", "cpu_idle", "interrupts"}
    way = "rise" if turns[0].rises else "fall"
    name = metric_name(turns[0].metric) + (" (mirrored)" if turns[0].metric == "cpu_idle" else "")
    assert f"1. {name}: the slope begins to {way} at N = {turns[0].n:.3g}" in text
    assert "N = 16: 4 of 4 runs alarm" in text and "from 16 on the rate has fallen by 10 % or more" in text
    assert "the threshold: above it the detector alarms" in text
    assert any(each.startswith("its threshold: ") for each in text)
    assert sum(bool(re.match(r"N = \d+, replicate \d: ", each)) for each in text) > 40
    assert "Testbed slow: at no tested number" not in shown
    assert "cannot tell how early it alarms: the rate lost" in shown.lower()


def test_a_contention_page_without_a_detector_says_why(shown, results, tmp_path):
    page = tmp_path / "contention.html"
    assert shown("contention", results, "--response", "requests_per_second", "-o", page)[0] == codes.DONE
    count, text = drawn(page.read_text())
    assert count == 2 and "requests per second, N = 40: 0" in text
    assert "no detector of contended runs: no metric of the machine varies." in page.read_text()
