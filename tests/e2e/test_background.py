"""A background load beside real runs: it loads the machine, level 0 runs nothing, and one that ends early is told."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from twinbed import design
from twinbed.backgrounds.stress import ARTIFACT, Stress
from twinbed.cli.extraction import extracted
from twinbed.cli.run import command as run_command
from twinbed.contracts.background import BackgroundPlan
from twinbed.contracts.place import MACHINE, Places
from twinbed.contracts.site import Site
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.model.caution import Kind
from twinbed.model.run import Phase
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.study.run import Run

CPUS = os.cpu_count()
GUEST = "mixed, client: {driver: container}, server: {driver: qemu}"


def study(background: str, testbed: str = "container", workload: str = "kind: http, duration: 3s") -> str:
    return f"""
study: beside
testbeds: {{bed: {{driver: {testbed}}}}}
workload: {{{workload}}}
background: {{kind: stress, {background}}}
replicates: 1
"""


def one_run(text: str) -> Run:
    (run,) = design.runs(load(text, "beside.yaml", catalogue()))
    return run


def test_a_study_of_the_load(tmp_path: Path, leaves_nothing: None) -> None:
    """A worker for each CPU leaves no CPU idle; level 0 leaves nothing of the load in its run."""
    text = study("where: machine", workload="kind: http, duration: 1s")
    text += f"factors: {{background.cpu: [0, {CPUS}]}}\ninstruments: [counters]\n"
    (tmp_path / "beside.yaml").write_text(text)
    results = tmp_path / "results"
    arguments = [str(tmp_path / "beside.yaml"), "-o", str(results)]
    done = CliRunner().invoke(run_command, arguments, standalone_mode=False)
    assert done.exception is None and not done.return_value, done.output
    store = extracted(results)
    levels = {record.id: record.levels["background.cpu"] for record in store.records}
    found: dict[Any, dict[str, float | None]] = {0: {}, CPUS: {}}
    for row in store.table("metrics").to_pylist():
        if row["host"] == MACHINE:
            found[levels[row["run"]]][row["metric"]] = row["value"]
    assert (found[CPUS]["background_cpu_rate"] or 0) > 0
    assert (found[CPUS]["cpu_idle_share"] or 0) < 0.1
    assert "background_cpu_rate" not in found[0]
    folders = {levels[path.name]: path for path in (results / "runs").iterdir()}
    assert (folders[CPUS] / "artifacts" / MACHINE / ARTIFACT).exists()
    assert list(folders[0].rglob("stress-ng*")) == []
    assert "<dt>Background</dt><dd>stress</dd>" in (results / "report.html").read_text()


def test_a_load_on_a_guest_makes_its_tasks_wait(site: Callable[..., Site], leaves_nothing: None) -> None:
    """Two workers on one CPU: for every second that one runs the other waits. Guests' kernels tell it, in /proc/schedstat."""
    run = one_run(study("cpu: 2, where: servers", GUEST) + "instruments: [counters]\n")
    place = site()
    execute(run, PLUGINS, place, Outcome(), lambda _: None)
    (rate,) = Stress().extract(run.backgrounds["stress"].params, place.artifacts).values
    assert (rate.metric, rate.host) == ("background_cpu_rate", "server") and (rate.value or 0) > 0
    counters = PLUGINS.instruments["counters"]
    values = counters.extract(run.instruments["counters"].params, place.artifacts).values
    found = {value.metric: value.value for value in values if value.host == "server"}
    assert found["run_queue_delay_seconds"] > 1
    assert found["cpu_idle_share"] < 0.1


class Brief(Stress):
    """Ends by itself while the workload still runs."""

    def plan(self, params: Any, places: Places) -> BackgroundPlan:
        brief = {"--timeout": "1"}
        return BackgroundPlan(
            commands=[
                dataclasses.replace(
                    command,
                    argv=tuple(
                        brief.get(before, argument) for before, argument in zip(("", *command.argv), command.argv, strict=False)
                    ),
                )
                for command in super().plan(params, places).commands
            ]
        )


def test_a_load_that_ends_early_is_told(site: Callable[..., Site], leaves_nothing: None) -> None:
    plugins = dataclasses.replace(PLUGINS, backgrounds={"stress": Brief()})
    outcome = Outcome()
    text = study("cpu: 1, where: servers", workload="kind: http, payload: 100kB, duration: 6s")
    text += "topology: {link: {rate: 20mbit}}\n"
    execute(one_run(text), plugins, site(), outcome, lambda _: None)
    (caution,) = (caution for caution in outcome.cautions if caution.kind is Kind.BACKGROUND_ENDED)
    assert caution.detail.startswith("stress-ng on server: ")


def test_a_load_that_does_not_start_fails_the_run(site: Callable[..., Site], leaves_nothing: None) -> None:
    class Wrong(Stress):
        def plan(self, params: Any, places: Places) -> BackgroundPlan:
            return BackgroundPlan(
                commands=[
                    dataclasses.replace(command, argv=(*command.argv, "--no-such-option"))
                    for command in super().plan(params, places).commands
                ]
            )

    with pytest.raises(RunFailed, match="no-such-option") as caught:
        plugins = dataclasses.replace(PLUGINS, backgrounds={"stress": Wrong()})
        execute(one_run(study("cpu: 1")), plugins, site(), Outcome(), lambda _: None)
    assert caught.value.phase is Phase.BACKGROUND


def test_a_testbed_without_a_machine_has_no_place_for_it(site: Callable[..., Site]) -> None:
    with pytest.raises(RunFailed, match="has no machine to put a load on") as caught:
        execute(one_run(study("cpu: 1", "fake", "kind: planted")), PLUGINS, site(), Outcome(), lambda _: None)
    assert caught.value.phase is Phase.BACKGROUND
