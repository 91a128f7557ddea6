"""What this machine has left for hosts: memory, processes, file descriptors.

Memory is what the kernel says can be had without swapping (proc(5), MemAvailable), or less where a control group of this
process has a limit.  What the kernel would give up at once of a group's use (inactive files) does not count.
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
"""Bytes; processes and threads alike; files that one process holds open."""
_MEMORY_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Files with the limit and the use, and the part of the use that can be given up: version 2, version 1."""


class Limit(NamedTuple):
    """How much there is of something, and the file or limit that says so."""

    most: int
    source: str


def available(system: Path = Path("/")) -> dict[str, Limit] | None:
    """What this machine has; what nothing limits is not in it. ``system`` is where /proc and control groups are looked for.
    None where there is no such thing: a study may be planned on a machine that could not carry it out."""
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
    """Let this process, and those that it starts, hold so many files open, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed if hard == resource.RLIM_INFINITY else min(needed, hard), hard))


def _memory(system: Path) -> Iterator[Limit]:
    """Bytes left."""
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
    """Processes and threads left."""
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
    """Threads of a user's processes."""
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
    """This process's group in the hierarchies that may have the controller, and those above it, as far as they can be seen."""
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
        # In a container a group may be mounted without those above it.
        inner = own[name].removeprefix(root.rstrip("/")).lstrip("/") if own[name].startswith(root) else ""
        group = top / inner
        yield group
        while group != top:
            group = group.parent
            yield group


def _number(file: Path) -> int | None:
    """None where there is none: no such file, or no limit."""
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
