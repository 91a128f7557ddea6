"""A package with a workload, a format and an analysis: installed by pip, used everywhere, and missed when it is gone."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import twinbed as api
from command import twinbed
from plugin_packages import forget, installed

pytestmark = pytest.mark.privileged

STUDY = """study: echoes
testbeds: {container: {driver: container}}
workload: {kind: echo}
instruments: [counters]
factors: {count: [3, 6]}
replicates: 1
"""
NPING = """
Starting Nping 0.7.93 ( https://nmap.org/nping ) at 2026-11-28 19:43 UTC
Max rtt: 0.050ms | Min rtt: 0.030ms | Avg rtt: 0.040ms
Raw packets sent: 5 (140B) | Rcvd: 4 (112B) | Lost: 1 (20.00%)
Nping done: 1 IP address pinged in 4.01 seconds
"""


def metrics(results: Path) -> list[dict[str, Any]]:
    return list(api.open(results).table("metrics").select(["run", "metric", "host", "value"]).to_pylist())


def plugins(results: Path) -> list[object]:
    return [json.loads(file.read_text())["plugins"] for file in results.glob("runs/*/run.json")]


def test_a_package_is_used_and_then_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves_nothing: None) -> None:
    site, study, out, imported = installed(tmp_path / "site"), *(tmp_path / each for each in ("echo.yaml", "out", "imported"))
    study.write_text(STUDY)
    monkeypatch.syspath_prepend(str(site))
    forget()
    try:
        assert "number of echo requests of each client" in twinbed("describe", "echo").stdout
        tested = twinbed("test-plugin", "twinbed-echo")
        assert tested.returncode == 0 and "it reports the work of all clients" in tested.stdout, tested.stdout

        ended = twinbed("run", study, "-o", out, "--no-report", "-q")
        assert ended.returncode == 0, ended.stderr
        assert plugins(out) == [{"workloads.echo": "twinbed-echo==1.0"}] * 2
        before = metrics(out)
        assert {row["value"] for row in before if row["metric"] == "answers"} == {3.0, 6.0}
        assert any(row["metric"] == "interrupts_per_answer" for row in before)
        assert "Echoes were measured on container" in twinbed("analyse", "echoes", out).stdout

        (tmp_path / "in").mkdir()
        (tmp_path / "in/lab_1.txt").write_text(NPING)
        read = twinbed("import", tmp_path / "in", "-o", imported, "--pattern", "{testbed}_{replicate:int}.txt")
        assert read.returncode == 0, read.stdout + read.stderr
        assert plugins(imported) == [{"formats.echo-text": "twinbed-echo==1.0"}]
        values = {row["metric"]: row["value"] for row in metrics(imported)}
        assert values["echo_time"] == pytest.approx(40e-6) and values["answers"] == 4
    finally:
        sys.path.remove(str(site))
        forget()

    for results in (out, imported):
        assert "pip install twinbed-echo==1.0" in " ".join(twinbed("compare", results).stdout.split())
    without = metrics(out)
    assert any(row["metric"] == "interrupts" and row["value"] for row in without), "what others measured is there"
    assert not any(row["metric"] == "answers" for row in without)
    unknown = twinbed("plan", study)
    assert unknown.returncode == 2 and "'echo' is not known" in unknown.stderr
    assert "No such command 'echoes'" in twinbed("analyse", "echoes", out).stderr

    try:
        sys.path.insert(0, str(site))
        forget()
        assert metrics(out) == before, "what the package reads is back with it"
    finally:
        forget()
