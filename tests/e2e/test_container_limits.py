"""Containers' limits: held by the kernel, read back, and a run that goes without one or beyond one fails."""

from __future__ import annotations

import dataclasses
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.site import Site
from twinbed.contracts.workload import Workload, WorkloadPlan
from twinbed.hosts import cgroups
from twinbed.hosts.agent import cpus_allowed
from twinbed.hosts.cgroups import PERIOD_US, Hierarchy
from twinbed.hosts.scratch import PREFIX
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.model.run import Phase
from twinbed.model.topology import Topology
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.study.run import Run
from twinbed.testbeds.container import ContainerSettings, container

QUOTA = 0.2
MEMORY = 64 * 2**20


def one_run(settings: str) -> Run:
    text = f"""
study: limits
testbeds: {{bed: {{driver: container, {settings}}}}}
workload: {{kind: http, duration: 1s, max_requests: 5}}
instruments: []
replicates: 1
"""
    return design.runs(load(text, "limits.yaml", catalogue()))[0]


def group_of(host: str, lab: str, controller: str) -> Path:
    return cgroups.hierarchies()[controller].root / f"{PREFIX}{lab}" / host


def test_a_cpu_quota_bites(site: Callable[..., Site], leaves_nothing: None) -> None:
    """A loop that would take a whole CPU gets its share: the kernel lets no period have more, and counts those it cut short."""
    with container.up(ContainerSettings(cpu_quota=QUOTA), Topology(), site()) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        stat = group_of("server", bed.lab, "cpu") / "cpu.stat"
        server = bed.hosts["server"]
        running = server.start(["stress-ng", "--quiet", "--cpu", "1"])
        while "nr_throttled 0\n" in stat.read_text():  # on a busy machine others take its share at first
            assert not running.ended
            time.sleep(0.1)
        running.signal(signal.SIGTERM)
        done = running.wait(60.0)
        wall_s = done.ended_monotonic_s - done.started_monotonic_s
        periods = wall_s / (PERIOD_US / 1e6) + 2
        assert done.usage is not None
        assert done.usage.cpu_s <= QUOTA * periods * PERIOD_US / 1e6
        counted = dict(line.split() for line in stat.read_text().splitlines())
        assert int(counted["nr_throttled"]) > 0
        assert (group_of("client", bed.lab, "cpu") / "cpu.stat").read_text() != stat.read_text()


def test_a_cpu_set_holds_whatever_programs_ask(site: Callable[..., Site], leaves_nothing: None) -> None:
    one_cpu = dataclasses.replace(site(), cpus=site().cpus[:1])
    with container.up(ContainerSettings(), Topology(), one_cpu) as bed:
        found = {(item.subject, item.setting): item.found for item in bed.applied}
        assert found["client", "cpuset"] == found["client", "cpus"] == one_cpu.cpus
        everywhere = ",".join(map(str, site().cpus))
        said = bed.hosts["client"].run(["taskset", "--cpu-list", everywhere, "cat", "/proc/self/status"]).text
        assert cpus_allowed(said) == one_cpu.cpus


def hog(settings: str, site: Site) -> RunFailed:
    """A run whose client takes 128 MiB, in a program that starts again what is killed and says that all is well."""

    class Hog(Workload[Any]):
        def plan(self, params: Any, pairs: Any) -> WorkloadPlan:
            grow = ("stress-ng", "--quiet", "--vm", "1", "--vm-bytes", "128M", "--vm-populate", "--timeout", "5")
            return WorkloadPlan(clients=[Command("client", grow)])

        def parse(self, params: Any, artifacts: Path) -> Extracted:
            return Extracted()

    plugins = dataclasses.replace(PLUGINS, workloads={"http": Hog()})
    with pytest.raises(RunFailed) as failure:
        execute(one_run(settings), plugins, site, Outcome(), lambda _: None)
    return failure.value


def test_memory_beyond_the_limit_fails_the_run(site: Callable[..., Site], leaves_nothing: None) -> None:
    failure = hog("memory: 64MiB", site())
    assert failure.phase == Phase.WORKLOAD
    assert "client: out of memory: the kernel killed " in failure.reason
    assert "at the limit of 64MiB" in failure.reason


def other_file(name: str, value: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Another value is written to a file of the group than what was asked."""

    def sabotage(patch: pytest.MonkeyPatch) -> None:
        original = cgroups._files

        def files(*arguments: Any, **rest: Any) -> Any:
            return [(file, value if file == name else content) for file, content in original(*arguments, **rest)]

        patch.setattr(cgroups, "_files", files)

    return sabotage


SABOTAGE = {
    "quota": (("cpu.cfs_quota_us", "30000"), ("cpu.max", f"30000 {PERIOD_US}"), "cpu_quota"),
    "memory": (("memory.limit_in_bytes", str(MEMORY // 2)), ("memory.max", str(MEMORY // 2)), "memory"),
    "cpuset": (("cpuset.cpus", "0-1"), ("cpuset.cpus", "0-1"), "cpuset"),
}


@pytest.mark.parametrize("name", SABOTAGE)
def test_a_limit_that_is_not_as_asked_fails_its_run(
    name: str, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    for file, value in SABOTAGE[name][:2]:
        other_file(file, value)(monkeypatch)
    one_cpu = dataclasses.replace(site(), cpus=(0,))
    with pytest.raises(RunFailed) as failure:
        execute(one_run("cpu_quota: 0.5, memory: 64MiB"), PLUGINS, one_cpu, Outcome(), lambda _: None)
    assert failure.value.phase == Phase.CONFIGURE
    assert f": {SABOTAGE[name][2]} should be " in failure.value.reason


def test_limits_as_asked_are_recorded(site: Callable[..., Site], leaves_nothing: None) -> None:
    outcome = Outcome()
    execute(one_run("cpu_quota: 0.5, memory: 64MiB"), PLUGINS, site(), outcome, lambda _: None)
    found = {(item.subject, item.setting): item.found for item in outcome.applied}
    assert (found["client", "cpu_quota"], found["client", "memory"]) == (0.5, MEMORY)
    assert "cpu v" in outcome.passport["client"]["control groups"]


def test_a_controller_that_is_missing_is_named_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "hierarchies", lambda: {"cpu": Hierarchy(Path("/sys/fs/cgroup/cpu"), False)})
    settings = ContainerSettings(memory=MEMORY)
    (missing,) = [check for check in container.check(settings) if not check.works]
    assert (missing.what, missing.required) == ("control group memory", True)
    assert "can make no group with this controller" in missing.found
