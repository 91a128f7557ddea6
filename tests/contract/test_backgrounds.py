"""The contract of every background load: argument lists that stay and say when they are ready; what they did is read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from twinbed import design
from twinbed.contracts.extracted import UNREADABLE
from twinbed.contracts.place import MACHINE, Places
from twinbed.contracts.site import Site
from twinbed.lab.execution import Outcome, execute
from twinbed.model.run import Phase
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load

BACKGROUNDS = list(PLUGINS.backgrounds.values())
PLACES = Places(
    [MACHINE],
    [("client1", "server1", "10.77.0.2"), ("client2", "server2", "10.77.1.2")],
    [("otherclient1", "otherserver1", "10.77.2.2")],
)
HOSTS = {MACHINE, *(host for pair in (*PLACES.pairs, *PLACES.bystanders) for host in pair[:2])}
LOADS: dict[str, dict[str, Any]] = {
    "stress": {"cpu": 1, "io": 1, "memory": 1},
    "traffic": {"http": 1, "tcp": 1, "udp": "5mbit"},
}
"""Settings under which something runs."""
RUNS = [
    ("stress", "where: machine", {MACHINE}),
    ("stress", "where: hosts", {"client", "server"}),
    ("traffic", "on: pairs", {"client", "server", ""}),
    ("traffic", "on: bystanders", {"otherclient1", "otherserver1", ""}),
]
"""A kind, where it is put, and where that is counted; together is nowhere."""


@pytest.mark.parametrize("plugin", BACKGROUNDS, ids=lambda plugin: plugin.name)
def test_parameters_are_frozen_described_and_closed(plugin: Any) -> None:
    with pytest.raises(ValidationError):
        plugin.params(no_such_setting=1)
    with pytest.raises(ValidationError):
        setattr(plugin.params(), next(iter(plugin.params.model_fields)), None)
    assert [name for name, field in plugin.params.model_fields.items() if not field.description] == []


@pytest.mark.parametrize("plugin", BACKGROUNDS, ids=lambda plugin: plugin.name)
def test_every_command_stays_on_a_host_and_says_when_it_is_ready(plugin: Any) -> None:
    plan = plugin.plan(plugin.params(**LOADS[plugin.name]), PLACES)
    assert plan.commands
    assert {host for host, _, _ in plan.files} <= {command.host for command in plan.commands}
    for command in plan.commands:
        assert command.host in HOSTS
        assert command.ready is not None
        assert (command.ready.listening is None) != (command.ready.says is None)
        assert all(isinstance(argument, str) for argument in command.argv)
    outputs = [(command.host, command.stdout or command.argv) for command in plan.commands]
    assert len(outputs) == len(set(outputs)), "no two write to the same artifact"


@pytest.mark.parametrize("plugin", BACKGROUNDS, ids=lambda plugin: plugin.name)
def test_its_trials_run_something_each(plugin: Any) -> None:
    assert plugin.trials
    for said, params in plugin.trials.items():
        assert said and plugin.plan(params, PLACES).commands


@pytest.mark.parametrize("plugin", BACKGROUNDS, ids=lambda plugin: plugin.name)
def test_metrics_are_declared_once_and_no_instrument_has_its_name(plugin: Any) -> None:
    names = [metric.name for metric in plugin.metrics]
    assert len(names) == len(set(names))
    assert all(metric.description and metric.unit for metric in plugin.metrics)
    assert plugin.name not in {**PLUGINS.instruments, **PLUGINS.workloads}


@pytest.mark.parametrize("plugin", BACKGROUNDS, ids=lambda plugin: plugin.name)
def test_artifacts_that_are_not_there_are_an_error_that_extraction_knows(plugin: Any, tmp_path: Path) -> None:
    with pytest.raises(UNREADABLE):
        plugin.extract(plugin.params(**LOADS[plugin.name]), tmp_path)


@pytest.mark.parametrize("plugin", BACKGROUNDS, ids=lambda plugin: plugin.name)
def test_level_0_of_all_runs_nothing(plugin: Any, tmp_path: Path) -> None:
    plan = plugin.plan(plugin.params(), PLACES)
    assert (list(plan.files), list(plan.commands)) == ([], [])
    assert plugin.params().estimate_seconds() == 0
    assert list(plugin.extract(plugin.params(), tmp_path).values) == []


@pytest.mark.parametrize(("name", "where", "counted"), RUNS)
def test_it_runs_beside_a_real_run(
    name: str, where: str, counted: set[str], site: Callable[..., Site], leaves_nothing: None
) -> None:
    settings = ", ".join(f"{key}: {value}" for key, value in LOADS[name].items())
    text = f"""
study: contract
testbeds: {{bed: {{driver: container}}}}
topology: {{bystanders: 1, link: {{rate: 100mbit}}}}
workload: {{kind: http, duration: 2s}}
background: {{kind: {name}, {settings}, {where}}}
replicates: 1
"""
    run = design.runs(load(text, "contract.yaml", catalogue()))[0]
    place, outcome = site(), Outcome()
    execute(run, PLUGINS, place, outcome, lambda _: None)
    assert Phase.BACKGROUND.value in outcome.phases
    assert [caution.kind.name for caution in outcome.cautions if caution.kind.name == "BACKGROUND_ENDED"] == []
    plugin = PLUGINS.backgrounds[name]
    values = plugin.extract(run.backgrounds[name].params, place.artifacts).values
    assert {value.metric for value in values} == {metric.name for metric in plugin.metrics}
    assert {value.host for value in values} == counted
    carried = [value.value for value in values if value.metric != "background_udp_loss"]
    # A worker that a busy disk keeps waiting may end no operation in a second.
    assert None not in carried
    assert any(number > 0 for number in carried if number is not None)
