"""The contract of every workload: plans are argument lists, what is declared is what is parsed, and it really runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from twinbed import design
from twinbed.contracts.command import Command
from twinbed.contracts.site import Site
from twinbed.lab.execution import Outcome, execute
from twinbed.registry import PLUGINS, catalogue
from twinbed.results.extract.rows import UNREADABLE
from twinbed.study.declared import written
from twinbed.study.loading import load

WORKLOADS = list(PLUGINS.workloads.values())
PAIRS = [("client1", "server1", "10.77.0.2"), ("client2", "server2", "10.77.1.2")]
SHELLS = {"sh", "bash", "dash", "zsh", "busybox"}


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


def usual(plugin: Any) -> Any:
    """Settings of a first study."""
    return plugin.params.model_validate(plugin.params.typical)


def commands(plugin: Any) -> list[Command]:
    plan = plugin.plan(usual(plugin), PAIRS)
    return [*plan.prepare, *plan.servers, *plan.warm_up, *plan.clients]


@pytest.mark.parametrize("plugin", WORKLOADS, ids=lambda plugin: plugin.name)
def test_parameters_are_frozen_described_and_closed(plugin: Any) -> None:
    with pytest.raises(ValidationError):
        plugin.params(no_such_setting=1)
    with pytest.raises(ValidationError):
        setattr(usual(plugin), next(iter(plugin.params.model_fields)), None)
    assert [name for name, field in plugin.params.model_fields.items() if not field.description] == []


@pytest.mark.parametrize("plugin", WORKLOADS, ids=lambda plugin: plugin.name)
def test_metrics_are_declared_once_and_the_work_is_among_them(plugin: Any) -> None:
    about = plugin.described(usual(plugin))
    names = [metric.name for metric in about.metrics]
    assert len(names) == len(set(names))
    assert about.work in names and about.rate in names
    assert any(metric.headline for metric in about.metrics)
    assert all(metric.description and metric.unit for metric in about.metrics)


@pytest.mark.parametrize("plugin", WORKLOADS, ids=lambda plugin: plugin.name)
def test_plans_are_argument_lists_on_the_pairs_hosts(plugin: Any) -> None:
    hosts = {name for client, server, _ in PAIRS for name in (client, server)}
    planned = commands(plugin)
    assert planned
    for command in planned:
        assert command.host in hosts
        assert all(isinstance(argument, str) for argument in command.argv)
        assert Path(command.argv[0]).name not in SHELLS
        assert command.limit_s > 0
    assert plugin.plan(usual(plugin), PAIRS) == plugin.plan(usual(plugin), PAIRS), "planning has no effects and no chance"


@pytest.mark.parametrize("plugin", WORKLOADS, ids=lambda plugin: plugin.name)
def test_servers_say_how_to_know_that_they_are_ready(plugin: Any) -> None:
    plan = plugin.plan(usual(plugin), PAIRS)
    for server in plan.servers:
        assert server.ready is not None
        assert (server.ready.listening is None) != (server.ready.says is None)
    asking = {client for client, _, _ in PAIRS}
    served = {server.host for server in plan.servers}
    assert asking <= {client.host for client in plan.clients} <= asking | served


@pytest.mark.parametrize("plugin", WORKLOADS, ids=lambda plugin: plugin.name)
def test_artifacts_that_are_not_there_are_an_error_that_extraction_knows(plugin: Any, tmp_path: Path) -> None:
    with pytest.raises(UNREADABLE):
        plugin.parse(usual(plugin), tmp_path)


@pytest.mark.parametrize("name", REAL)
def test_it_runs_and_gives_the_work_it_declares(name: str, site: Callable[..., Site], leaves_nothing: None) -> None:
    driver, workload = REAL[name]
    text = (
        f"study: contract\ntestbeds: {{bed: {{driver: {driver}}}}}\nworkload: {{{workload}}}\ninstruments: []\nreplicates: 1\n"
    )
    run = design.runs(load(text, "contract.yaml", catalogue()))[0]
    place = site()
    execute(run, PLUGINS, place, Outcome(), lambda _: None)
    plugin = PLUGINS.workloads[run.workload.kind]
    extracted = plugin.parse(run.workload.params, place.artifacts)
    about = plugin.described(run.workload.params)
    declared = {metric.name: metric.unit for metric in about.metrics}
    assert {value.metric for value in extracted.values} <= set(declared)
    assert all(value.unit == declared[value.metric] for value in extracted.values)
    work = next(value for value in extracted.values if value.metric == about.work and value.host == "")
    assert work.value is not None
    assert work.value > 0
    places = [(value.metric, value.host, value.direction) for value in extracted.values]
    assert len(places) == len(set(places))
