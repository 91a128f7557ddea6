"""The contract of every instrument: argument lists, a word when ready, artifacts that it reads back itself, nothing left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.contract import broken
from twinbed.contracts.place import MACHINE
from twinbed.contracts.site import Site
from twinbed.lab.suite import PORTS, TARGETS, planned, promises, promises_of_values, ran
from twinbed.readers.syscalls import OURS, PROBE
from twinbed.registry import PLUGINS, catalogue

WHOLE = {"events": "{share: 1}"}
"""Forty requests of containers take 10 ms, and a share of the time may be without any."""
INSTRUMENTS = list(PLUGINS.instruments.values())


@pytest.mark.parametrize("plugin", INSTRUMENTS, ids=lambda plugin: plugin.name)
def test_it_keeps_its_promises(plugin: Any, tmp_path: Path) -> None:
    assert broken(promises("instruments", plugin, tmp_path)) == []


def test_programs_of_instruments_are_known_as_such_and_no_workload_runs_them() -> None:
    """What instruments ask of the kernel is told from the workload's calls by these names."""
    ways: dict[str, list[Mapping[str, object]]] = {"latency": [{}, {"tool": "owamp"}]}
    of_instruments = {
        Path(command.argv[0]).name
        for plugin in INSTRUMENTS
        for way in ways.get(plugin.name, [{}])
        for target in TARGETS
        for command in (*plugin.plan(plugin.params(**way), target), *plugin.examine(plugin.params(**way), target, PORTS))
    }
    assert of_instruments >= {"irtt", "nmap", "owampd", "owping", "tcpdump", PROBE}
    assert of_instruments <= OURS
    of_workloads = {Path(command.argv[0]).name for plugin in PLUGINS.workloads.values() for command in planned(plugin)}
    assert {"nginx", "ab", "iperf3"} <= of_workloads
    # What replay has tcpdump count is measuring too, and its system calls belong with the instruments'.
    assert of_workloads & OURS == {"tcpdump"}


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
    place = site()
    run = ran(text, PLUGINS, catalogue(), place)
    values = {}
    for plugin in INSTRUMENTS:
        extracted = plugin.extract(run.instruments[plugin.name].params, place.artifacts)
        assert broken(promises_of_values(plugin.metrics, extracted)) == []
        values |= {(value.metric, value.host, value.direction): value.value for value in extracted.values}
    # Every request is a connection of its own: ab without -k. The warm-up came before the capture.
    assert values["connections", "", ""] == 40
    assert values["capture_drops", "client", ""] == 0
    assert values["interrupts", MACHINE, ""] > 0
