"""The files of control groups of both versions, as the kernel's cgroup-v2.rst and cgroup-v1/ have them, in our own folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinbed.hosts import cgroups
from twinbed.hosts.cgroups import Hierarchy, LabGroups, Limits
from twinbed.hosts.error import HostError

LIMITS = Limits(cpu_quota=1.5, memory_bytes=64 * 2**20, cpus=(0, 2, 3), processes=100)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What is written, by the file's name; nothing is."""
    found: dict[str, str] = {}

    def write(path: Path, text: str) -> int:
        found[path.name] = text
        return len(text)

    monkeypatch.setattr(Path, "write_text", write)
    return found


def groups(root: Path, *, unified: bool) -> LabGroups:
    (root / "twinbed-1").mkdir()
    where = Hierarchy(root, unified)
    return LabGroups("twinbed-1", root / "twinbed-1" if unified else None, dict.fromkeys(cgroups.CONTROLLERS, where))


def test_version_2(tmp_path: Path, written: dict[str, str]) -> None:
    host = groups(tmp_path, unified=True).host("client", LIMITS)
    assert host.join == (tmp_path / "twinbed-1/client",)
    # memory.swap.max is only where the kernel accounts swap.
    assert written == {
        "cgroup.subtree_control": "+pids",
        "cpu.max": "150000 100000",
        "memory.max": "67108864",
        "cpuset.cpus": "0,2,3",
        "pids.max": "100",
    }
    assert host.kinds() == "cpu v2, memory v2, cpuset v2, pids v2"


def test_version_1(tmp_path: Path, written: dict[str, str]) -> None:
    lab = groups(tmp_path, unified=False)
    for folder in (tmp_path, tmp_path / "twinbed-1"):
        for name, content in (("cpuset.mems", "0\n"), ("cpuset.cpus", "0-3\n")):
            with (folder / name).open("w") as file:
                file.write(content)
    lab.host("client", LIMITS)
    assert written == {
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "150000",
        "memory.limit_in_bytes": "67108864",
        "cpuset.mems": "0\n",
        "cpuset.cpus": "0,2,3",
        "pids.max": "100",
    }


def of_a_host(lab: Path, files: dict[str, str]) -> Path:
    group = lab / "client"
    group.mkdir()
    for name, content in {**files, "pids.max": "100\n"}.items():
        (group / name).write_text(content)
    (lab / "pids.max").write_text(f"{cgroups.most_of_a_lab()}\n")
    return group


def test_version_2_is_read_back(tmp_path: Path) -> None:
    files = {
        "cpu.max": "150000 100000\n",
        "memory.max": "67108864\n",
        "cpuset.cpus.effective": "0,2-3\n",
        "memory.events": "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n",
    }
    group = of_a_host(tmp_path, files)
    host = cgroups.HostGroups((), dict.fromkeys(cgroups.CONTROLLERS, (group, True)))
    assert [(item.setting, item.found, item.agrees) for item in host.applied("client", LIMITS)] == [
        ("cpu_quota", 1.5, True),
        ("memory", 64 * 2**20, True),
        ("cpuset", (0, 2, 3), True),
        ("processes", 100, True),
        ("processes of the lab", cgroups.most_of_a_lab(), True),
    ]
    assert host.out_of_memory() == 2
    (group / "cpu.max").write_text("max 100000\n")
    (group / "memory.max").write_text("max\n")
    (tmp_path / "pids.max").write_text("max\n")
    assert [item.agrees for item in host.applied("client", LIMITS)] == [False, False, True, True, False]


def test_version_1_is_read_back(tmp_path: Path) -> None:
    files = {
        "cpu.cfs_quota_us": "-1\n",
        "cpu.cfs_period_us": "100000\n",
        "memory.limit_in_bytes": "67108864\n",
        "cpuset.effective_cpus": "0,2-3\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
    }
    group = of_a_host(tmp_path, files)
    host = cgroups.HostGroups((), dict.fromkeys(cgroups.CONTROLLERS, (group, False)))
    assert [(item.found, item.agrees) for item in host.applied("client", LIMITS)] == [
        (None, False),
        (64 * 2**20, True),
        ((0, 2, 3), True),
        (100, True),
        (cgroups.most_of_a_lab(), True),
    ]
    assert host.out_of_memory() == 1


def test_whole_pages_are_limited(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(f"{4096 * 5000}\n")
    host = cgroups.HostGroups((), {"memory": (tmp_path, True)})
    (item,) = host.applied("client", Limits(memory_bytes=4096 * 5000 + 4095))
    assert item.agrees


def test_a_controller_that_is_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="client: this machine cannot make control groups with memory, cpuset"):
        LabGroups("twinbed-1", None, {"cpu": Hierarchy(tmp_path, False)}).host("client", LIMITS)


def test_hierarchies_of_both_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine may have one controller here and another there."""
    unified, memory = tmp_path / "unified", tmp_path / "memory"
    for folder in (unified, memory):
        folder.mkdir()
    for name, content in (("cgroup.procs", ""), ("cgroup.controllers", "cpuset cpu"), ("cgroup.subtree_control", "cpu")):
        (unified / name).write_text(content)
    mounts = tmp_path / "mounts"
    mounts.write_text(f"cgroup2 {unified} cgroup2 rw 0 0\ncgroup {memory} cgroup rw,relatime,memory 0 0\n")
    monkeypatch.setattr(cgroups, "_UNIFIED", (unified,))
    monkeypatch.setattr(cgroups, "_MOUNTS", mounts)
    # cpuset could be there, but groups are not given it: that would change the machine for others.
    assert cgroups.hierarchies() == {"cpu": Hierarchy(unified, True), "memory": Hierarchy(memory, False)}
    assert cgroups.roots() == [unified, memory]
    own = (unified / "twinbed-1", unified / "twinbed-1.awake", memory / "twinbed-1")
    assert cgroups.LabGroups.of("twinbed-1").folders == own
