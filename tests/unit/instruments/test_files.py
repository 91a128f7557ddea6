"""Whose artifacts are: each plugin declares the names of what its programs write, and no other's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from synthetic_results import write_run
from twinbed.contracts.command import Command
from twinbed.contracts.place import MACHINE, Places, Target
from twinbed.model.record import Record
from twinbed.registry import PLUGINS
from twinbed.results.extract.rows import Readers
from twinbed.results.keep.thin import owner

PAIRS = [("client", "server", "10.0.0.2")]
TARGETS = [
    Target(MACHINE, {"p.client": "client", "p.server": "server"}, own_kernel=True, captures=True),
    Target("client", {"eth0": "client"}, own_kernel=True, servers={"server": "10.0.0.2"}),
    Target("server", {"eth0": "server"}, own_kernel=True, clients={"client": "10.0.0.1"}),
]
SETTINGS = {
    "monitor": [{}, {"engine": "suricata"}, {"engine": "zeek"}],
    "syscalls": [{"system_wide": True}, {"mode": "trace"}],
    "latency": [{}, {"tool": "owamp"}],
    "http": [{}, {"tool": "wrk", "keep_alive": True}],
    "command": [PLUGINS.workloads["command"].params.typical],
    "stress": [{"cpu": 1, "where": "hosts"}],
    "traffic": [{"http": 1, "tcp": 1, "udp": 10**6}],
}
EVERY = [*PLUGINS.workloads, *PLUGINS.instruments, *PLUGINS.backgrounds]


def commands(name: str) -> Iterator[Command]:
    """All that a plugin starts, with different settings."""
    for settings in SETTINGS.get(name, [{}]):
        if name in PLUGINS.workloads:
            workload = PLUGINS.workloads[name]
            plan = workload.plan(workload.params.model_validate(settings), PAIRS)
            yield from [*plan.servers, *plan.warm_up, *plan.clients]
        elif name in PLUGINS.backgrounds:
            background = PLUGINS.backgrounds[name]
            places = Places([MACHINE], PAIRS)
            yield from background.plan(background.params.model_validate(settings), places).commands
        else:
            instrument = PLUGINS.instruments[name]
            params = instrument.params.model_validate(settings)
            for target in TARGETS:
                yield from instrument.plan(params, target)
                yield from instrument.examine(params, target, {"server": [80]})
                yield from instrument.after(params, target)


def written(commands: Sequence[Command]) -> set[str]:
    """Names of artifacts: what arguments name, and what output becomes; not that of the probe, which several start."""
    named = {name for command in commands for each in command.argv for name in re.findall(r"\{artifacts\}/([^/]+)", each)}
    outputs = {command.stdout or f"{Path(command.argv[0]).name}.out" for command in commands} - {"twinbed-probe.out"}
    return named | {name for output in outputs for name in (output, f"{output}.err")}


def record(folder: Path, workload: str) -> Record:
    """A run with one workload, and all instruments and background loads."""
    run = write_run(folder, "a", {}, 0, {})
    data = json.loads((folder / "runs" / run / "run.json").read_text())
    data["settings"]["workload"] = {"kind": workload}
    data["settings"]["instruments"] = {name: {"kind": name} for name in PLUGINS.instruments}
    data["settings"]["background"] = {name: {"kind": name} for name in PLUGINS.backgrounds}
    return Record.from_json(data)


@pytest.mark.parametrize("name", EVERY)
def test_each_file_is_its_programs(tmp_path: Path, name: str) -> None:
    names = written([*commands(name)])
    assert names, "it writes something"
    readers = Readers(PLUGINS.read, PLUGINS.accompanying)
    for workload in [name] if name in PLUGINS.workloads else PLUGINS.workloads:
        of = record(tmp_path / workload, workload)
        assert {each: owner(f"artifacts/{MACHINE}/{each}", of, readers) for each in names} == dict.fromkeys(names, name)


def test_what_others_leave_is_nobodys(tmp_path: Path) -> None:
    of = record(tmp_path, "http")
    readers = Readers(PLUGINS.read, PLUGINS.accompanying)
    lab = ("console.txt", "kernel.log", "kernel.clock.json", "link-check.client.cap", "link-check.client.tcpdump.err")
    assert {owner(f"artifacts/client/{name}", of, readers) for name in (*lab, "twinbed-probe.out")} == {"the rest"}


def test_what_engines_write_into_a_folder_is_the_monitors(tmp_path: Path) -> None:
    of = record(tmp_path, "http")
    path = "artifacts/machine/suricata-ignored-client/eve.json"
    assert owner(path, of, Readers(PLUGINS.read, PLUGINS.accompanying)) == "monitor"
