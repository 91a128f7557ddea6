"""CPUs that are kept awake: what is read back of their threads, and where they can be."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from twinbed.hosts import awake, cgroups
from twinbed.hosts.cgroups import Hierarchy, LabGroups

STAT = "41 (keeps CPU awake) {state} " + "0 " * 14 + "39 19 " + "0 " * 21 + "{policy} 0 0"
"""A line of /proc/PID/task/TID/stat, of 43 fields; the policy is the 41st (proc_pid_stat(5))."""


@pytest.mark.parametrize(("state", "policy", "runs"), [("R", 5, True), ("S", 5, False), ("R", 0, False)])
def test_a_thread_counts_that_runs_in_the_idle_class(state: str, policy: int, runs: bool) -> None:
    assert awake.runs_when_idle(STAT.format(state=state, policy=policy)) is runs


@pytest.mark.parametrize(
    ("controllers", "autogroups", "works"), [({"cpu"}, "1", True), ((), "0", True), ((), None, True), ({"pids"}, "1", False)]
)
def test_autogroups_need_a_group_of_their_own(
    controllers: set[str], autogroups: str | None, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside an autogroup, an idle thread of another one is an equal: it would take half of the CPU."""
    file = tmp_path / "sched_autogroup_enabled"
    if autogroups is not None:
        file.write_text(f"{autogroups}\n")
    monkeypatch.setattr(awake, "_AUTOGROUPS", file)
    assert (awake.why_not(controllers) is None) is works


@pytest.mark.parametrize(("release", "works"), [("5.14.21-default", False), ("5.15.0", True), ("6.1.0-18-amd64", True)])
def test_older_kernels_have_no_groups_that_are_idle(
    release: str, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "autogroups").write_text("1\n")
    monkeypatch.setattr(awake, "_AUTOGROUPS", tmp_path / "autogroups")
    monkeypatch.setattr(awake.os, "uname", lambda: SimpleNamespace(release=release))
    assert (awake.why_not({"cpu"}) is None) is works


def test_a_study_that_asks_for_it_is_told_before_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "sched_autogroup_enabled"
    file.write_text("1\n")
    monkeypatch.setattr(awake, "_AUTOGROUPS", file)
    monkeypatch.setattr(awake, "hierarchies", dict)
    (check,) = awake.asked("busy")
    assert (check.works, check.required, check.mend) == (False, True, "run as root, or set idle: normal")
    assert awake.asked("auto") == awake.asked("normal") == []


def test_the_group_is_beside_the_labs_own_and_removed_with_it(tmp_path: Path) -> None:
    """Inside of the lab's group, which is not idle, it would count as much as all hosts."""
    groups = LabGroups(
        "twinbed-1", None, {"cpu": Hierarchy(tmp_path / "cpu", False), "pids": Hierarchy(tmp_path / "pids", False)}
    )
    assert groups.awake == tmp_path / "cpu" / f"twinbed-1{cgroups.AWAKE}"
    assert groups.awake in groups.folders
    assert LabGroups("twinbed-1", None, {}).awake is None
