"""The contract of every workload: plans are argument lists, what is declared is what is parsed, and it really runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract import broken
from twinbed.contracts.site import Site
from twinbed.lab.suite import promises, promises_of_values, promises_of_work, ran
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.declared import written

WORKLOADS = list(PLUGINS.workloads.values())


def load_kind(text: str) -> str:
    return text.split(",")[0].removeprefix("kind: ")


REAL: dict[str, tuple[str, str]] = {
    "planted": ("fake", "kind: planted"),
    "http-ab": ("container", "kind: http, tool: ab, duration: 30s, max_requests: 300, payload: 20kB, threads: 2"),
    "http-ab-keep-alive": ("container", "kind: http, tool: ab, duration: 30s, max_requests: 300, keep_alive: on"),
    "http-ab-https": ("container", "kind: http, tool: ab, duration: 30s, max_requests: 300, https: on"),
    "iperf3-tcp": ("container", "kind: iperf3, duration: 1s, streams: 2"),
    "iperf3-udp": ("container", "kind: iperf3, protocol: udp, rate: 5mbit, duration: 1s"),
    "http-ab-model": ("model", "kind: http, tool: ab, duration: 1s, payload: 20kB, threads: 2, keep_alive: on"),
    "iperf3-tcp-model": ("model", "kind: iperf3, duration: 2s, streams: 2, omit: 1s"),
    "iperf3-udp-model": ("model", "kind: iperf3, protocol: udp, rate: 5mbit, duration: 1s, streams: 2"),
    "replay": ("container", "kind: replay, speed: 10"),
    "http-wrk": ("container", "kind: http, tool: wrk, duration: 3s, keep_alive: on"),
}
REAL["command"] = ("container", f"kind: command, {written(PLUGINS.workloads['command'].params.typical)[1:-1]}")
REAL |= {
    plugin.name: ("container", f"kind: {plugin.name}" + (", duration: 1s" if "duration" in plugin.params.model_fields else ""))
    for plugin in WORKLOADS
    if plugin.name not in {load_kind(text) for _, text in REAL.values()}
}


@pytest.mark.parametrize("plugin", WORKLOADS, ids=lambda plugin: plugin.name)
def test_it_keeps_its_promises(plugin: Any, tmp_path: Path) -> None:
    assert broken(promises("workloads", plugin, tmp_path)) == []


@pytest.mark.parametrize("name", REAL)
def test_it_runs_and_gives_the_work_it_declares(name: str, site: Callable[..., Site], leaves_nothing: None) -> None:
    driver, workload = REAL[name]
    text = (
        f"study: contract\ntestbeds: {{bed: {{driver: {driver}}}}}\nworkload: {{{workload}}}\ninstruments: []\nreplicates: 1\n"
    )
    place = site()
    run = ran(text, PLUGINS, catalogue(), place)
    plugin = PLUGINS.workloads[run.workload.kind]
    extracted, about = plugin.parse(run.workload.params, place.artifacts), plugin.described(run.workload.params)
    assert broken(promises_of_values(about.metrics, extracted)) == []
    assert broken(promises_of_work(about, extracted.values)) == []
