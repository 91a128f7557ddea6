"""The memory, processes and file descriptors that this machine has left for hosts.

Memory is the kernel's estimate without swapping (proc(5), MemAvailable), or less if this process's control group has a limit.
Parts of a group's use that the kernel can free at once (inactive files) do not count.
Source: proc(5), getrlimit(2), cgroups(7), the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MEMORY, TASKS, DESCRIPTORS = "memory", "processes", "file descriptors"
"""Bytes; processes and threads together; files that one process holds open."""
_MEMORY_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Files with the limit and the use, and the part of the use that can be freed: version 2, version 1."""


class Limit(NamedTuple):
    """An amount, and the file or limit that gives it."""

    most: int
    source: str


def available(system: Path = Path("/")) -> dict[str, Limit] | None:
    """Return what this machine has left, without resources that nothing limits. ``system``: root of /proc and control groups.

    None on a machine without /proc: a study may be planned on a machine that could not run it."""
    if not (system / "proc/meminfo").exists():
        return None
    limits = {MEMORY: min(_memory(system))}
    if tasks := min(_tasks(system), default=None):
        limits[TASKS] = tasks
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY:
        limits[DESCRIPTORS] = Limit(hard, "the hard limit of a process")
    return limits


def allow_descriptors(needed: int) -> None:
    """Let this process, and those that it starts, hold this many files open, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed if hard == resource.RLIM_INFINITY else min(needed, hard), hard))


def _memory(system: Path) -> Iterator[Limit]:
    """Yield each limit of the memory left, in bytes."""
    match = re.search(r"^MemAvailable: +(\d+) kB$", (system / "proc/meminfo").read_text(), re.MULTILINE)
    if match is None:
        raise ValueError("/proc/meminfo has no MemAvailable")
    yield Limit(int(match[1]) * 1024, "MemAvailable of /proc/meminfo")
    for group in _groups(system, "memory"):
        for limit_file, use_file, given_up in _MEMORY_FILES:
            limit, use = _number(group / limit_file), _number(group / use_file)
            if limit is not None and use is not None:
                stat = re.search(rf"^{given_up} (\d+)$", (group / "memory.stat").read_text(), re.MULTILINE)
                left = max(0, limit - use + int(stat[1] if stat else 0))
                yield Limit(left, f"the limit of the control group, {group / limit_file}")


def _tasks(system: Path) -> Iterator[Limit]:
    """Yield each limit of the processes and threads left."""
    running = int((system / "proc/loadavg").read_text().split()[3].partition("/")[2])
    for name in ("pid_max", "threads-max"):
        most = _number(system / "proc/sys/kernel" / name)
        if most is not None:
            yield Limit(max(0, most - running), f"/proc/sys/kernel/{name}, {running} in use")
    own = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if own != resource.RLIM_INFINITY and os.geteuid() != 0:
        used = _of_user(system / "proc", os.getuid())
        yield Limit(max(0, own - used), f"the limit of user processes (ulimit -u), {used} in use")
    for group in _groups(system, "pids"):
        limit, use = _number(group / "pids.max"), _number(group / "pids.current")
        if limit is not None and use is not None:
            yield Limit(max(0, limit - use), f"{group / 'pids.max'}, {use} in use")


def _of_user(proc: Path, user: int) -> int:
    """Count the threads of a user's processes."""
    total = 0
    for status in proc.glob("[0-9]*/status"):
        try:
            text = status.read_text(errors="replace")
        except OSError:
            continue
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if int(fields["Uid"].split()[0]) == user:
            total += int(fields["Threads"])
    return total


def _groups(system: Path, controller: str) -> Iterator[Path]:
    """Yield this process's group in each hierarchy that may have the controller, and the visible groups above it."""
    own: dict[str, str] = {}
    for line in (system / "proc/self/cgroup").read_text(errors="surrogateescape").splitlines():
        _, names, path = line.split(":", 2)
        own |= dict.fromkeys(names.split(","), path)
    for line in (system / "proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        _, _, _, root, mount, *_ = before.split()
        kind, _, options = after.split()[:3]
        name = {"cgroup2": "", "cgroup": controller}.get(kind)
        if name is None or name not in own or (name and name not in options.split(",")):
            continue
        top = system / mount.lstrip("/")
        # In a container a group may be mounted without the groups above it.
        inner = own[name].removeprefix(root.rstrip("/")).lstrip("/") if own[name].startswith(root) else ""
        group = top / inner
        yield group
        while group != top:
            group = group.parent
            yield group


def _number(file: Path) -> int | None:
    """Read a number; None without a file or a limit."""
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
