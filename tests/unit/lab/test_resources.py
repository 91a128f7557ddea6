"""Whether a study fits on a machine: planted machines, real plans that are refused, and limits that a run may raise."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from command import twinbed
from twinbed import design, registry
from twinbed.contracts.command import PROGRAM_BYTES
from twinbed.hosts import resources as reading
from twinbed.hosts.resources import DESCRIPTORS, MEMORY, TASKS, Limit
from twinbed.lab import resources
from twinbed.lab.resources import Need
from twinbed.study.loading import load
from twinbed.study.run import Run

GB = 10**9
MIB = 2**20
WIDE = dict.fromkeys((MEMORY, TASKS, DESCRIPTORS), Limit(10**15, "a planted file"))


def runs(
    testbed: str, more: str = "", *, pairs: str = "[1, 80]", workload: str = "kind: http", instruments: str = ""
) -> list[Run]:
    text = f"""
study: many
testbeds: {{bed: {{{testbed}}}}}
workload: {{{workload}}}
factors: {{pairs: {pairs}}}
instruments: [{instruments}]
replicates: 2
order: sequential
{more}
"""
    return list(design.runs(load(text, "many.yaml", registry.catalogue())))


def need(run: Run, pairs: int) -> Need:
    return resources.need(run, pairs, registry.PLUGINS)


def memory(size_bytes: int) -> dict[str, Limit]:
    return {MEMORY: Limit(size_bytes, "a planted file")}


# ---- how much a run takes


def test_guests_take_their_memory_and_qemus() -> None:
    """160 guests of 256 MiB, and 192 MiB of QEMU's own each."""
    (run,) = runs("driver: qemu, memory: 256MiB", pairs="[80]")[:1]
    assert need(run, 80).host_bytes == 160 * (256 + 192) * MIB
    assert need(run, 80).machine_bytes == resources.OWN_BYTES


def test_containers_take_what_they_use_and_at_most_their_limit() -> None:
    """Two MiB each, a program each, and the server's document."""
    (run, *_) = runs("driver: container", pairs="[10]", workload="kind: http, payload: 16MiB")
    assert need(run, 10).host_bytes == 20 * (2 * MIB + PROGRAM_BYTES) + 10 * 16 * MIB
    (limited, *_) = runs("driver: container, memory: 16MiB", pairs="[10]", workload="kind: http, payload: 16MiB")
    assert need(limited, 10).host_bytes == 10 * (2 * MIB + PROGRAM_BYTES) + 10 * 16 * MIB


def test_captures_take_a_buffer_for_each_link_on_the_machine() -> None:
    (run, *_) = runs("driver: qemu", pairs="[4]", instruments="packets")
    assert need(run, 4).machine_bytes == resources.OWN_BYTES + 8 * (64 + 2) * MIB


@pytest.mark.parametrize(("where", "places"), [("machine", 1), ("hosts", 20), ("clients", 10), ("servers", 10)])
def test_a_background_load_takes_memory_at_each_of_its_places(where: str, places: int) -> None:
    """Three workers of 1 GiB, two processes each, and the one that starts them."""
    load_of = f"background: {{kind: stress, memory: 3, memory_size: 1GiB, where: {where}}}"
    (with_it, *_), (without, *_) = runs("driver: container", load_of, pairs="[10]"), runs("driver: container", pairs="[10]")
    more = need(with_it, 10).amount(MEMORY) - need(without, 10).amount(MEMORY)
    assert more == places * (3 * 2**30 + 7 * PROGRAM_BYTES)


def test_bystanders_are_hosts_with_the_programs_of_their_load_alone() -> None:
    """Two MiB for each of six, iperf3 on each; no capture, no counters, no nginx."""
    with_them = "topology: {bystanders: 3}\nbackground: {kind: traffic, tcp: 1, on: bystanders}"
    with_load, without = (
        need(next(iter(runs("driver: container", more, pairs="[4]", instruments="packets, counters"))), 4)
        for more in (with_them, "")
    )
    assert with_load.host_bytes - without.host_bytes == 6 * (2 * MIB + PROGRAM_BYTES)
    assert with_load.machine_bytes == without.machine_bytes


def test_what_guests_run_is_within_their_memory() -> None:
    load_of = "background: {kind: stress, memory: 3, memory_size: 1GiB, where: hosts}"
    (with_it, *_), (without, *_) = runs("driver: qemu", load_of), runs("driver: qemu")
    assert need(with_it, 80) == need(without, 80)


@pytest.mark.parametrize(
    "topology", ["kind: pairs", "kind: star", "trunk: vxlan", "routers: 3", "trunk: plain, client_machines: 4"]
)
def test_what_a_run_takes_grows_by_the_same_with_every_pair(topology: str) -> None:
    """So that one pair and all of them say how many fit."""
    beside = "background: {kind: stress, cpu: 2, where: hosts}"
    mixed = "driver: mixed, client: {driver: container, memory: 64MiB}, server: {driver: qemu}"
    (run, *_) = runs(
        mixed, f"{beside}\ntopology: {{{topology}}}", pairs="[80]", instruments="packets, counters, syscalls, latency"
    )
    for what in (MEMORY, TASKS, DESCRIPTORS):
        one, two, all_of_them = (need(run, pairs).amount(what) for pairs in (1, 2, 80))
        assert all_of_them == one + 79 * (two - one)


@pytest.mark.parametrize("testbed", ["driver: fake", "driver: remote, hosts: {client: root@c, server: root@s}"])
def test_hosts_that_are_elsewhere_take_nothing_here(testbed: str) -> None:
    workload = "kind: planted" if "fake" in testbed else "kind: http"
    nothing = dict.fromkeys((MEMORY, TASKS, DESCRIPTORS), Limit(0, "none"))
    assert resources.checks(runs(testbed, pairs="[1]", workload=workload), registry.PLUGINS, nothing) == []


# ---- against planted machines


def test_the_refusal_names_the_cell_the_figures_and_how_many_fit() -> None:
    """23.1 GB hold the 134,217,728 bytes of twinbed's own and 48 guests of 448 MiB: 22.7 GB; 50 would take 23.6."""
    of_cells = runs("driver: qemu, memory: 256MiB", pairs="[24, 80]")
    (check,) = resources.checks(of_cells, registry.PLUGINS, memory(23_100_000_000))
    assert check.what == "memory, testbed bed, pairs 80" and check.required and not check.works
    assert check.found == (
        "75.3 GB are needed (160 hosts, each a guest of 256MiB with 192MiB for QEMU itself: 75.2 GB with the programs on them; "
        "programs on the machine: 0.1 GB); 23.1 GB are available (a planted file)"
    )
    assert check.mend.startswith("at most 24 pairs of these fit; ")


@pytest.mark.parametrize(("what", "most"), [(TASKS, 500), (DESCRIPTORS, 256), (MEMORY, 10**9)])
def test_as_many_pairs_fit_as_it_says(what: str, most: int) -> None:
    machine = {what: Limit(most, "a planted file")}
    (run, *_) = runs("driver: qemu", pairs="[80]", instruments="packets")
    (check,) = resources.checks([run], registry.PLUGINS, machine)
    assert check.what.startswith(f"{what}, ")
    match = re.match(r"at most (\d+) pairs? of these fit; |not even one pair of these fits; ", check.mend)
    assert match is not None
    fit = int(match[1] or 0)
    assert fit == 0 or need(run, fit).amount(what) <= most
    assert need(run, fit + 1).amount(what) > most


def test_nothing_fits_where_the_machine_has_too_little_for_one_pair() -> None:
    """A load on the machine that is there however few pairs there are."""
    beside = "background: {kind: stress, memory: 1024, memory_size: 1GiB, where: machine}"
    (check,) = resources.checks(runs("driver: container", beside, pairs="[1]"), registry.PLUGINS, memory(64 * GB))
    assert check.mend.startswith("not even one pair of these fits; ")


def test_cells_that_lack_the_same_are_told_once() -> None:
    payloads = "factors: {pairs: [80], payload: [1B, 2B, 3B]}"
    text = f"study: s\ntestbeds: {{vm: {{driver: qemu}}}}\nworkload: {{kind: http}}\n{payloads}\ninstruments: []\n"
    study = load(text, "s.yaml", registry.catalogue())
    cells = [cell.run(replicate=0, block=0, position=0) for cell in study.cells]
    (check,) = resources.checks(cells, registry.PLUGINS, memory(GB))
    assert check.what == "memory, testbed vm, pairs 80, payload 1B and 2 more cells"


def test_what_fits_is_not_spoken_of() -> None:
    assert resources.checks(runs("driver: container", instruments="packets, counters"), registry.PLUGINS, WIDE) == []


# ---- reading


def planted(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


MACHINE = {
    "proc/meminfo": "MemTotal:       32000000 kB\nMemAvailable:   20000000 kB\n",
    "proc/loadavg": "0.1 0.2 0.3 2/268 4711\n",
    "proc/sys/kernel/pid_max": "32768\n",
    "proc/sys/kernel/threads-max": "200000\n",
    "proc/self/cgroup": "0::/\n",
    "proc/self/mountinfo": "",
}
UNIFIED = "30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"


def test_a_machine_without_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading.os, "geteuid", lambda: 0)
    limits = reading.available(planted(tmp_path, MACHINE))
    assert limits is not None
    assert limits[MEMORY] == (20_000_000 * 1024, "MemAvailable of /proc/meminfo")
    assert limits[TASKS] == (32500, "/proc/sys/kernel/pid_max, 268 in use")


def test_a_group_of_version_2_limits_with_those_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can be given up at once counts as left: 4 GiB of limit, 3 used, 1 of them inactive files."""
    monkeypatch.setattr(reading.os, "geteuid", lambda: 0)
    groups = {
        "proc/self/cgroup": "0::/outer/inner\n",
        "proc/self/mountinfo": UNIFIED,
        "sys/fs/cgroup/outer/memory.max": f"{4 * 2**30}\n",
        "sys/fs/cgroup/outer/memory.current": f"{3 * 2**30}\n",
        "sys/fs/cgroup/outer/memory.stat": f"anon 5\ninactive_file {2**30}\n",
        "sys/fs/cgroup/outer/inner/memory.max": "max\n",
        "sys/fs/cgroup/outer/inner/memory.current": "0\n",
        "sys/fs/cgroup/outer/inner/pids.max": "512\n",
        "sys/fs/cgroup/outer/inner/pids.current": "12\n",
    }
    limits = reading.available(planted(tmp_path, MACHINE | groups))
    assert limits is not None
    assert limits[MEMORY].most == 2 * 2**30 and limits[MEMORY].source.endswith("sys/fs/cgroup/outer/memory.max")
    assert limits[TASKS].most == 500 and "pids.max, 12 in use" in limits[TASKS].source


def test_a_group_of_version_1_as_a_container_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The group is mounted as if it were the topmost; the kernel's word for no limit is a very large number."""
    monkeypatch.setattr(reading.os, "geteuid", lambda: 0)
    groups = {
        "proc/self/cgroup": "4:memory:/docker/abc\n8:pids:/docker/abc\n",
        "proc/self/mountinfo": (
            "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
            "39 31 0:36 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n"
        ),
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**30}\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{2**29}\n",
        "sys/fs/cgroup/memory/memory.stat": "inactive_file 7\ntotal_inactive_file 0\n",
        "sys/fs/cgroup/pids/pids.max": "max\n",
        "sys/fs/cgroup/pids/pids.current": "3\n",
    }
    limits = reading.available(planted(tmp_path, MACHINE | groups))
    assert limits is not None and limits[MEMORY].most == 2**29 and limits[TASKS].most == 32500
    (tmp_path / "sys/fs/cgroup/memory/memory.limit_in_bytes").write_text("9223372036854771712\n")
    limits = reading.available(tmp_path)
    assert limits is not None and limits[MEMORY].most == 20_000_000 * 1024


def test_a_user_has_a_limit_of_processes_and_root_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "resource", SimpleNamespace(**{**vars(resource), "getrlimit": lambda kind: (1000, 1000)}))
    status = {f"proc/{pid}/status": f"Name:\tx\nUid:\t{user}\t{user}\nThreads:\t7\n" for pid, user in ((8, 5), (9, 6))}
    planted(tmp_path, MACHINE | status)
    monkeypatch.setattr(reading.os, "getuid", lambda: 5)
    for user, tasks in ((0, 32500), (5, 993)):
        monkeypatch.setattr(reading.os, "geteuid", lambda user=user: user)
        limits = reading.available(tmp_path)
        assert limits is not None and limits[TASKS].most == tasks


def test_another_system_is_not_held_against(tmp_path: Path) -> None:
    assert reading.available(tmp_path) is None
    assert resources.checks(runs("driver: qemu, memory: 4GiB"), registry.PLUGINS, None) == []


def test_this_machine_is_read() -> None:
    limits = reading.available()
    assert limits is not None and limits[MEMORY].most > 0 and limits[TASKS].most and limits[TASKS].source
    assert DESCRIPTORS not in limits or limits[DESCRIPTORS].most >= resource.getrlimit(resource.RLIMIT_NOFILE)[0]


# ---- real plans


def limited(files: tuple[int, int], *arguments: object) -> subprocess.CompletedProcess[str]:
    """A program of its own, with limits of open files, soft and hard."""
    argv = [sys.executable, "-m", "twinbed.cli.main", *map(str, arguments)]
    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, files)
    return subprocess.run(argv, capture_output=True, text=True, check=False, preexec_fn=limit, timeout=300)


def study_of(folder: Path, testbed: str, pairs: int) -> Path:
    path = folder / "many.yaml"
    path.write_text(
        f"study: many\ntestbeds: {{bed: {{{testbed}}}}}\ntopology: {{pairs: {pairs}}}\n"
        "workload: {kind: http, duration: 1s}\ninstruments: []\nreplicates: 1\n"
    )
    return path


def test_160_guests_of_4_gib_are_planned_and_refused(tmp_path: Path) -> None:
    study = study_of(tmp_path, "driver: qemu, memory: 4GiB", 80)
    done = twinbed("plan", study)
    assert done.returncode == 3
    assert "1 cell x 1 replicate = 1 run," in done.stdout and "block 1: 1" in done.stdout
    lines = done.stderr.splitlines()
    assert lines[0] == "twinbed: many: this machine cannot carry out the study:"
    assert lines[1].startswith("    memory, testbed bed: 719.5 GB are needed (160 hosts, each a guest of 4GiB with ")
    assert "fit" in lines[2]
    data = twinbed("plan", study, "--format", "json")
    assert data.returncode == 3
    (refused,) = json.loads(data.stdout)["refused"]
    assert refused["what"] == "memory, testbed bed" and refused["mend"]


@pytest.mark.parametrize("hard", [256, 4096])
def test_a_limit_of_open_files_refuses_unless_it_may_be_raised(tmp_path: Path, hard: int) -> None:
    """160 containers need 640: three for each host, and 160."""
    done = limited((128, hard), "plan", study_of(tmp_path, "driver: container", 80))
    if hard == 4096:
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 3
        assert "640 file descriptors are needed (160 hosts, each a container); 256 are available" in done.stderr
        assert "at most 16 pairs of these fit; " in done.stderr


def test_more_pairs_than_there_are_addresses_for_are_a_mistake_in_the_study(tmp_path: Path) -> None:
    done = twinbed("plan", study_of(tmp_path, "driver: container", 81))
    assert done.returncode == 2 and "topology.pairs: 81 is not allowed; allowed: less than or equal to 80" in done.stderr
