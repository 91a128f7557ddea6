"""Control groups: where labs can make them, the limits that they set on hosts, and their counts.

Each controller (cpu, memory, cpuset, pids) is in the unified hierarchy (version 2) or in one of its own (version 1); a machine
may have both. A lab's groups carry its name in every hierarchy, and are removed with it.
Source of the files: the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.contracts.bed import Applied
from twinbed.contracts.check import Check
from twinbed.hosts.agent import parse_cpus
from twinbed.hosts.error import HostError

CONTROLLERS = ("cpu", "memory", "cpuset", "pids")
AWAKE = ".awake"
"""Suffix of the name of the group whose threads keep CPUs awake."""
PERIOD_US = 100_000
"""The period of a CPU quota: the kernel's default."""
_MOUNTS = Path("/proc/self/mounts")
_UNIFIED = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
_UNLIMITED = -1
_KERNEL = Path("/proc/sys/kernel")
_WHERE_SWAP_IS_COUNTED = ("memory.swap.max", "memory.memsw.limit_in_bytes")


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The place of a controller."""

    root: Path
    unified: bool


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a host may use: CPU time in CPUs, bytes, CPUs, processes; None: no limit."""

    cpu_quota: float | None = None
    memory_bytes: int | None = None
    cpus: tuple[int, ...] | None = None
    processes: int | None = None

    @property
    def controllers(self) -> tuple[str, ...]:
        asked = {"cpu": self.cpu_quota, "memory": self.memory_bytes, "cpuset": self.cpus, "pids": self.processes}
        return tuple(name for name, value in asked.items() if value is not None)


def cgroup_root() -> Path | None:
    """Return the mount point of the unified hierarchy; None if this user may make no groups there."""
    for root in _UNIFIED:
        if (root / "cgroup.procs").exists() and (root / "cgroup.controllers").exists():
            return root if os.access(root, os.W_OK) else None
    return None


def hierarchies() -> dict[str, Hierarchy]:
    """Return the hierarchy of each controller with which this user may make groups."""
    hierarchies: dict[str, Hierarchy] = {}
    unified = cgroup_root()
    if unified:
        given = (unified / "cgroup.subtree_control").read_text().split()
        hierarchies = {name: Hierarchy(unified, True) for name in CONTROLLERS if name in given}
    for line in _MOUNTS.read_text(errors="surrogateescape").splitlines():
        _, folder, kind, options, *_ = line.split()
        for name in CONTROLLERS:
            if kind == "cgroup" and name in options.split(",") and os.access(folder, os.W_OK):
                hierarchies.setdefault(name, Hierarchy(Path(folder), False))
    return hierarchies


def roots() -> list[Path]:
    """Return every hierarchy in which a lab may have groups."""
    unified = cgroup_root()
    return list(dict.fromkeys([*([unified] if unified else []), *(where.root for where in hierarchies().values())]))


@dataclass(frozen=True, slots=True)
class LabGroups:
    """The groups of one lab, by its name: one in the unified hierarchy for accounting, others made when needed."""

    name: str
    unified: Path | None
    by_controller: Mapping[str, Hierarchy]

    @classmethod
    def of(cls, name: str) -> LabGroups:
        root = cgroup_root()
        return cls(name, root / name if root else None, hierarchies())

    @property
    def awake(self) -> Path | None:
        """Return the group of the threads that keep CPUs awake; None without the controller. It is next to the lab's group,
        since a group inside a busy one cannot be idle."""
        cpu = self.by_controller.get("cpu")
        return None if cpu is None else cpu.root / f"{self.name}{AWAKE}"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return all groups that exist or may come to exist; they are removed with the lab."""
        own = [group for group in (self.unified, self.awake) if group]
        return tuple(dict.fromkeys([*own, *(where.root / self.name for where in self.by_controller.values())]))

    def host(self, host: str, limits: Limits) -> HostGroups:
        """Make a host's groups and set its limits. Raises HostError if a controller is missing."""
        missing = [name for name in limits.controllers if name not in self.by_controller]
        if missing:
            raise HostError(f"{host}: this machine cannot make control groups with {', '.join(missing)}")
        join: dict[Path, None] = {self.unified / host: None} if self.unified else {}
        groups: dict[str, tuple[Path, bool]] = {}
        for controller in limits.controllers:
            where = self.by_controller[controller]
            lab = where.root / self.name
            group = lab / host
            with _explained(host, controller):
                lab.mkdir(exist_ok=True)
                _let_children_have(controller, lab, where)
                if controller == "pids":
                    (lab / "pids.max").write_text(str(most_of_a_lab()))
                group.mkdir(exist_ok=True)
                _limit(controller, group, limits, unified=where.unified)
            groups[controller] = (group, where.unified)
            join[group] = None
        if self.unified:
            (self.unified / host).mkdir(exist_ok=True)
        return HostGroups(tuple(join), groups)


@dataclass(frozen=True, slots=True)
class HostGroups:
    """``join``: groups that a host's first process joins. ``groups``: controller to (folder of the limits, whether it is in the
    unified hierarchy)."""

    join: tuple[Path, ...]
    groups: Mapping[str, tuple[Path, bool]]

    def applied(self, host: str, limits: Limits) -> list[Applied]:
        items = []
        if "cpu" in self.groups:
            items.append(Applied(host, "cpu_quota", limits.cpu_quota, *_quota(*self.groups["cpu"]), tolerance=1e-3))
        if "memory" in self.groups:
            # The kernel limits whole pages.
            pages = 4096 / limits.memory_bytes if limits.memory_bytes else 0.0
            items.append(Applied(host, "memory", limits.memory_bytes, *_memory(*self.groups["memory"]), tolerance=pages))
        if "cpuset" in self.groups:
            items.append(Applied(host, "cpuset", limits.cpus, *_cpuset(*self.groups["cpuset"])))
        if "pids" in self.groups:
            group, unified = self.groups["pids"]
            items.append(Applied(host, "processes", limits.processes, *_processes(group, unified)))
            items.append(Applied(host, "processes of the lab", most_of_a_lab(), *_processes(group.parent, unified)))
        return items

    def kinds(self) -> str | None:
        """Return the controllers that limit the host, with their versions, for a passport; None without any."""
        return ", ".join(f"{name} v{2 if unified else 1}" for name, (_, unified) in self.groups.items()) or None

    def out_of_memory(self) -> int:
        """Count the processes that the kernel has killed because the group was at its limit."""
        if "memory" not in self.groups:
            return 0
        folder, unified = self.groups["memory"]
        return _number(r"^oom_kill (\d+)$", folder / ("memory.events" if unified else "memory.oom_control"))


def most_of_a_lab() -> int:
    """Return the limit of processes and threads for all limited hosts of a lab: half of the kernel's limits."""
    return min(int((_KERNEL / name).read_text()) for name in ("pid_max", "threads-max")) // 2


def check(controller: str) -> Check:
    """Check that this controller can limit hosts, with a trial group that is removed again."""
    what = f"control group {controller}"
    remedy = "run as root (sudo)" if os.geteuid() else f"echo +{controller} > /sys/fs/cgroup/cgroup.subtree_control"
    where = hierarchies().get(controller)
    if where is None:
        return Check(what, False, "this user can make no group with this controller", remedy)
    trial = where.root / f"trial-of-twinbed-{os.getpid()}"
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError as error:
        return Check(what, False, f"{trial}: {error.strerror}", remedy)
    return Check(what, True, f"version {2 if where.unified else 1}, at {where.root}")


def remove(folder: Path, *, limit_s: float) -> None:
    """Remove a dead lab's group, which is possible once the kernel has reaped its processes."""
    deadline = time.monotonic() + limit_s
    while folder.exists():
        for inner in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
            with contextlib.suppress(OSError):
                inner.rmdir()
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise HostError(
                    f"{folder}: the control group of a dead lab cannot be removed: a process still runs in it",
                    advice=f"cat {folder}/cgroup.procs (its processes); end them, then twinbed sweep",
                ) from None


def _let_children_have(controller: str, lab: Path, where: Hierarchy) -> None:
    if where.unified:
        (lab / "cgroup.subtree_control").write_text(f"+{controller}")
    elif controller == "cpuset":
        # A new cpuset of version 1 is empty, and no process can join it.
        for name in ("cpuset.mems", "cpuset.cpus"):
            (lab / name).write_text((where.root / name).read_text())


def _limit(controller: str, group: Path, limits: Limits, *, unified: bool) -> None:
    for name, value in _files(controller, group, limits, unified=unified):
        if name not in _WHERE_SWAP_IS_COUNTED or (group / name).exists():
            (group / name).write_text(value)


def _files(controller: str, group: Path, limits: Limits, *, unified: bool) -> Sequence[tuple[str, str]]:
    """Return the files of a group with their content, in order. Swapping gives no memory beyond the limit either."""
    if controller == "cpu":
        quota = str(round((limits.cpu_quota or 0) * PERIOD_US))
        if unified:
            return [("cpu.max", f"{quota} {PERIOD_US}")]
        return [("cpu.cfs_period_us", str(PERIOD_US)), ("cpu.cfs_quota_us", quota)]
    if controller == "memory":
        size = str(limits.memory_bytes)
        if unified:
            return [("memory.max", size), ("memory.swap.max", "0")]
        return [("memory.limit_in_bytes", size), ("memory.memsw.limit_in_bytes", size)]
    if controller == "pids":
        return [("pids.max", str(limits.processes))]
    cpus = ",".join(map(str, limits.cpus or ()))
    if unified:
        return [("cpuset.cpus", cpus)]
    return [("cpuset.mems", (group.parent / "cpuset.mems").read_text()), ("cpuset.cpus", cpus)]


def _quota(group: Path, unified: bool) -> tuple[float | None, str]:
    """Read the CPU time in CPUs (None: no limit), and its source."""
    if unified:
        quota, period = (group / "cpu.max").read_text().split()
        return (None if quota == "max" else int(quota) / int(period)), f"{group}/cpu.max"
    us = int((group / "cpu.cfs_quota_us").read_text())
    period_us = int((group / "cpu.cfs_period_us").read_text())
    return (None if us == _UNLIMITED else us / period_us), f"{group}/cpu.cfs_quota_us"


def _processes(group: Path, _unified: bool) -> tuple[int | None, str]:
    """Read the limit of processes and threads (None: no limit), and its source."""
    most = (group / "pids.max").read_text().strip()
    return (None if most == "max" else int(most)), f"{group}/pids.max"


def _memory(group: Path, unified: bool) -> tuple[int | None, str]:
    """Read the limit in bytes (None: no limit), and its source."""
    path = group / ("memory.max" if unified else "memory.limit_in_bytes")
    limit = path.read_text().strip()
    return (None if limit == "max" else int(limit)), str(path)


def _cpuset(group: Path, unified: bool) -> tuple[tuple[int, ...], str]:
    path = group / ("cpuset.cpus.effective" if unified else "cpuset.effective_cpus")
    return parse_cpus(path.read_text()), str(path)


def _number(pattern: str, path: Path) -> int:
    try:
        match = re.search(pattern, path.read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(match[1]) if match else 0


@contextlib.contextmanager
def _explained(host: str, controller: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HostError(f"{host}: control group {controller}: {error.filename}: {error.strerror}") from None
