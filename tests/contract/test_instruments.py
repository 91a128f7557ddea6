"""The contract of every instrument: argument lists, a word when ready, artifacts that it reads back itself, nothing left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from twinbed import design
from twinbed.contracts.place import MACHINE, Target
from twinbed.contracts.site import Site
from twinbed.lab.execution import Outcome, execute
from twinbed.readers.syscalls import OURS, PROBE
from twinbed.registry import PLUGINS, catalogue
from twinbed.results.extract.rows import UNREADABLE
from twinbed.study.loading import load

WHOLE = {"events": "{share: 1}"}
"""Forty requests of containers take 10 ms, and a share of the time may be without any."""
INSTRUMENTS = list(PLUGINS.instruments.values())
TARGETS = [
    Target(MACHINE, {"p.client": "client", "p.server": "server"}, captures=True),
    Target("client", {"eth0": "client"}, servers={"server": "10.77.0.2"}),
    Target("server", {"eth0": "server"}, own_kernel=True, clients={"client": "10.77.0.1"}),
]
PORTS = {"server": [80]}


@pytest.mark.parametrize("plugin", INSTRUMENTS, ids=lambda plugin: plugin.name)
def test_parameters_are_frozen_described_and_closed(plugin: Any) -> None:
    with pytest.raises(ValidationError):
        plugin.params(no_such_setting=1)
    assert [name for name, field in plugin.params.model_fields.items() if not field.description] == []


@pytest.mark.parametrize("plugin", INSTRUMENTS, ids=lambda plugin: plugin.name)
def test_every_command_stays_on_its_target_and_says_when_it_is_ready(plugin: Any) -> None:
    planned = [(target, command) for target in TARGETS for command in plugin.plan(plugin.params(), target)]
    examined = [(target, command) for target in TARGETS for command in plugin.examine(plugin.params(), target, PORTS)]
    assert planned or examined
    for _, command in planned:
        assert command.ready is not None
        assert (command.ready.listening is None) != (command.ready.says is None)
    for target, command in (*planned, *examined):
        assert command.host == target.name
        assert all(isinstance(argument, str) for argument in command.argv)
    assert all(command.ready is None for _, command in examined), "each runs to its end"
    outputs = [(command.host, command.stdout or command.argv) for _, command in (*planned, *examined)]
    assert len(outputs) == len(set(outputs)), "no two write to the same artifact"


def test_programs_of_instruments_are_known_as_such_and_no_workload_runs_them() -> None:
    """What instruments ask of the kernel is told from the workload's calls by these names."""
    ways: dict[str, list[Mapping[str, object]]] = {"latency": [{}, {"tool": "owamp"}]}
    planned = {
        Path(command.argv[0]).name
        for plugin in INSTRUMENTS
        for way in ways.get(plugin.name, [{}])
        for target in TARGETS
        for command in (*plugin.plan(plugin.params(**way), target), *plugin.examine(plugin.params(**way), target, PORTS))
    }
    assert planned >= {"irtt", "nmap", "owampd", "owping", "tcpdump", PROBE}
    assert planned <= OURS
    pairs = [("client", "server", "10.77.0.2")]
    plans = [plugin.plan(plugin.params(), pairs) for plugin in PLUGINS.workloads.values()]
    of_workloads = {
        Path(command.argv[0]).name for plan in plans for command in (*plan.prepare, *plan.servers, *plan.warm_up, *plan.clients)
    }
    assert {"nginx", "ab", "iperf3"} <= of_workloads
    # What replay has tcpdump count is measuring too, and its system calls belong with the instruments'.
    assert of_workloads & OURS == {"tcpdump"}


@pytest.mark.parametrize("plugin", INSTRUMENTS, ids=lambda plugin: plugin.name)
def test_metrics_are_declared_once(plugin: Any) -> None:
    names = [metric.name for metric in plugin.metrics]
    assert len(names) == len(set(names))
    assert all(metric.description and metric.unit for metric in plugin.metrics)


@pytest.mark.parametrize("plugin", INSTRUMENTS, ids=lambda plugin: plugin.name)
def test_artifacts_that_are_not_there_are_an_error_that_extraction_knows(plugin: Any, tmp_path: Path) -> None:
    with pytest.raises(UNREADABLE):
        plugin.extract(plugin.params(), tmp_path)


BEDS = {"containers": "container", "a guest": "mixed, client: {driver: container}, server: {driver: qemu}"}


@pytest.mark.parametrize("driver", BEDS.values(), ids=BEDS)
def test_all_measure_a_real_run(driver: str, site: Callable[..., Site], leaves_nothing: None) -> None:
    """All at once, as in a study; what each gives is declared, and the captures agree with what ab says it did."""
    text = f"""
study: contract
testbeds: {{bed: {{driver: {driver}}}}}
workload: {{kind: http, duration: 60s, max_requests: 40}}
instruments: {{{", ".join(f"{name}: {WHOLE.get(name, '')}" for name in PLUGINS.instruments)}}}
replicates: 1
"""
    run = design.runs(load(text, "contract.yaml", catalogue()))[0]
    place = site()
    execute(run, PLUGINS, place, Outcome(), lambda _: None)
    values = {}
    for plugin in INSTRUMENTS:
        extracted = plugin.extract(run.instruments[plugin.name].params, place.artifacts)
        declared = {metric.name: metric.unit for metric in plugin.metrics}
        assert {value.metric for value in extracted.values} <= set(declared)
        assert any(value.value for value in extracted.values)
        values |= {(value.metric, value.host, value.direction): value.value for value in extracted.values}
    # Every request is a connection of its own: ab without -k. The warm-up came before the capture.
    assert values["connections", "", ""] == 40
    assert values["capture_drops", "client", ""] == 0
    assert values["interrupts", MACHINE, ""] > 0
