"""CPUs that a run keeps awake: applied, read back, recorded; ended with the lab whatever ends it; a run without them fails."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.contracts.host_settings import Cpus
from twinbed.contracts.place import MACHINE
from twinbed.contracts.site import Site
from twinbed.hosts import awake, cgroups, scratch
from twinbed.hosts.awake import SOURCE, Awake
from twinbed.hosts.lab import open_lab
from twinbed.hosts.passport import own_cpus
from twinbed.hosts.scratch import PREFIX
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.lab.preflight import idle_cpus
from twinbed.model.topology import Topology
from twinbed.model.wake_ups import IDLE_WAKE_UPS, ON_ONE_CPU_S, WAITED_SHARE, WAKE_UP_S
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.study.run import Run
from twinbed.testbeds.container import ContainerSettings, container

SPINNER = "keeps CPU awake"
GUEST = "driver: mixed, client: {driver: container}, server: {driver: qemu}"
REQUESTS, FEW = 2000, 10
"""Fewer wake-ups of idle CPUs in a run of so many requests say that the machine did something else."""
STUDY = """
study: idle
testbeds: {bed: {driver: container}}
machine: {SETTINGS}
workload: {kind: http, duration: 1s, max_requests: 50}
instruments: [counters]
replicates: 1
"""

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU has no other one to wake")


def one_run(settings: str, requests: int = 50) -> Run:
    text = STUDY.replace("SETTINGS", settings).replace("max_requests: 50", f"max_requests: {requests}")
    return design.runs(load(text, "idle.yaml", catalogue()))[0]


def spinners(within: int | None = None) -> set[int]:
    """Threads of this machine that keep a CPU awake: those below a process, or all."""
    found = set()
    for task in Path("/proc").glob("[0-9]*/task/*/comm"):
        try:
            name = task.read_text().strip()
        except OSError:
            continue
        if name == SPINNER and (within is None or within in ancestors(int(task.parts[2]))):
            found.add(int(task.parts[4]))
    return found


def ancestors(pid: int) -> list[int]:
    found = []
    while pid > 1:
        found.append(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
    return found


def test_check_says_what_waking_an_idle_cpu_takes(probe: Path, tmp_path: Path, leaves_nothing: None) -> None:
    with open_lab(probe, tmp_path) as lab:
        both, alone = idle_cpus(lab, own_cpus()), idle_cpus(lab, own_cpus()[:1])
    time_taken = r"[0-9.e+]+ us"
    expected = (
        rf"waking an idle CPU takes {time_taken} on this machine \({time_taken} if both programs share a CPU\); "
        rf"{time_taken} with idle: busy(; other work runs here .*)?"
    )
    assert re.fullmatch(expected, both.found)
    assert (both.works, both.required, alone.works, alone.found[:24]) == (True, False, True, "there is one CPU for all")


@pytest.mark.parametrize(("settings", "found", "threads"), [("idle: busy", "busy", 2), ("idle: normal", "normal", 0)])
def test_what_is_asked_is_read_back_and_recorded(
    settings: str, found: str, threads: int, site: Callable[..., Site], leaves_nothing: None
) -> None:
    outcome = Outcome()
    at = site()
    execute(one_run(settings), PLUGINS, at, outcome, lambda _phase: None)
    idle = {item.subject: (item.asked, item.found, item.source) for item in outcome.applied if item.setting == "idle"}
    assert idle == dict.fromkeys(("client", "server"), (found, found, SOURCE))
    facts = outcome.passport[MACHINE]
    assert {WAKE_UP_S, ON_ONE_CPU_S, IDLE_WAKE_UPS, WAITED_SHARE} <= facts.keys()
    assert 0 < facts[ON_ONE_CPU_S] < 1 and 0 < facts[WAKE_UP_S] < 1  # type: ignore[operator]
    mark = at.place(MACHINE) / "kept-awake.json"
    assert (json.loads(mark.read_text()) if mark.exists() else []) == [*at.cpus[:2]][:threads]
    if threads:
        assert facts[WAITED_SHARE] == 0


def counted(run: Run, at: Site, host: str = MACHINE) -> dict[str, Any]:
    """Carry out a run, and return what a host's kernel counted meanwhile."""
    execute(run, PLUGINS, at, Outcome(), lambda _phase: None)
    found = PLUGINS.instruments["counters"].extract(run.instruments["counters"].params, at.artifacts)
    return {value.metric: value.value for value in found.values if value.host == host}


def test_wake_ups_of_idle_cpus_are_timed_and_few_are_left_with_cpus_kept_awake(
    site: Callable[..., Site], leaves_nothing: None
) -> None:
    normal, busy = (counted(one_run(f"idle: {idle}", REQUESTS), site(idle)) for idle in ("normal", "busy"))
    cpus = os.cpu_count() or 1
    for found in (normal, busy):
        # A CPU that is woken had stopped, by the kernel's own count of its idle states. It may have been idle at the start.
        wake_ups, entries = found["idle_wake_ups"], found["idle_state_entries"]
        assert wake_ups is not None
        assert entries is None or wake_ups <= entries + cpus
        latency_s, total_s = found["idle_wake_up_latency"], found["idle_wake_up_seconds"]
        assert latency_s == (pytest.approx(total_s / wake_ups) if wake_ups else None)
    if normal["idle_wake_ups"] < FEW:
        pytest.skip("other work kept all CPUs busy: none was woken")
    lasted_s = normal["context_switches"] / normal["context_switch_rate"]
    assert 0 < normal["idle_wake_up_seconds"] < cpus * lasted_s
    assert busy["idle_wake_ups"] < normal["idle_wake_ups"] / 2


def test_a_guest_s_kernel_times_its_own_wake_ups(site: Callable[..., Site], leaves_nothing: None) -> None:
    """A server's only CPU is idle whenever the server waits for the client, whatever else the machine does."""
    text = STUDY.replace("machine: {SETTINGS}\n", "").replace("driver: container", GUEST)
    server = counted(design.runs(load(text, "idle.yaml", catalogue()))[0], site(), "server")
    lasted_s = server["context_switches"] / server["context_switch_rate"]
    assert server["idle_wake_ups"] > FEW
    assert 0 < server["idle_wake_up_latency"] < server["idle_wake_up_seconds"] < lasted_s


def test_a_pair_shares_a_cpu_and_only_that_one_is_kept_awake(site: Callable[..., Site], leaves_nothing: None) -> None:
    with container.up(ContainerSettings(cpus="shared", idle="busy"), Topology(), site()) as bed:
        first = site().cpus[:1]
        pinned = {item.subject: item.found for item in bed.applied if item.setting == "cpus"}
        assert pinned == {"client": first, "server": first}
        assert len(spinners(within=os.getpid())) == 1
        assert bed.wake_up is not None
        assert (bed.wake_up.cpus, bed.wake_up.kept_awake) == (first, True)
        assert [item for item in bed.applied if not item.agrees] == []
    assert spinners(within=os.getpid()) == set()


@pytest.mark.parametrize("cpus", ["auto", "shared", "none"])
def test_pins_are_recorded_whatever_they_are(cpus: Cpus, site: Callable[..., Site], leaves_nothing: None) -> None:
    """So that a passport can compare a testbed that is pinned with one that is not."""
    with container.up(ContainerSettings(cpus=cpus), Topology(), site()) as bed:
        recorded = {(item.subject, item.setting) for item in bed.applied if item.found}
        assert {(host, name) for host in ("client", "server") for name in ("cpus", "cpuset")} <= recorded


def test_idle_threads_leave_hosts_their_cpus(site: Callable[..., Site], leaves_nothing: None) -> None:
    """The threads are in a group that is idle as a whole: a container's own session is a group of its own to the scheduler."""
    with container.up(ContainerSettings(idle="busy"), Topology(), site()) as bed:
        group = cgroups.hierarchies()["cpu"].root / f"{PREFIX}{bed.lab}{cgroups.AWAKE}"
        assert (group / "cpu.idle").read_text().strip() == "1"
        inside = {int(word) for word in (group / "cgroup.procs").read_text().split()}
        assert inside
        assert spinners() & {int(task.name) for pid in inside for task in Path(f"/proc/{pid}/task").iterdir()}
    assert not group.exists()


def test_a_run_fails_whose_threads_have_ended(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    read_back = Awake.cpus

    def then_killed(self: Awake) -> tuple[int, ...]:
        found = read_back(self)
        self.program.signal(signal.SIGKILL)
        self.program.until(lambda: self.program.ended, 30.0)
        return found

    monkeypatch.setattr(Awake, "cpus", then_killed)
    with pytest.raises(RunFailed, match="the threads that keep CPUs awake have ended"):
        execute(one_run("idle: busy"), PLUGINS, site(), Outcome(), lambda _phase: None)


def test_a_run_fails_whose_cpus_are_not_kept_awake(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    monkeypatch.setattr(awake, "runs_when_idle", lambda _stat: False)
    with pytest.raises(RunFailed, match="client: idle should be 'busy' but `/proc/PID/task/TID/stat` shows 'normal'"):
        execute(one_run("idle: busy"), PLUGINS, site(), Outcome(), lambda _phase: None)


def test_nothing_is_left_after_a_kill(tmp_path: Path, leaves_nothing: None) -> None:
    study, results = tmp_path / "study.yaml", tmp_path / "results"
    text = STUDY.replace("SETTINGS", "idle: busy").replace("max_requests: 50", "max_requests: 500000")
    study.write_text(text.replace("duration: 1s", "duration: 60s"))
    argv = [sys.executable, "-m", "twinbed.cli.main", "run", str(study), "-o", str(results), "--no-report"]
    command = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(threads := spinners(within=command.pid)) < 2 and command.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(threads) == 2
    command.send_signal(signal.SIGKILL)
    command.wait()
    while spinners() & threads and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not spinners() & threads
    with scratch.folder():
        """The next command removes the folder of one that was killed."""
