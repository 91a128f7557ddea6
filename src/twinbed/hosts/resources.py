"""What this machine has left for hosts: memory, processes, file descriptors, address space.

Memory is what the kernel says can be had without swapping (proc(5), MemAvailable), or less where a control group of this
process has a limit.  What the kernel would give up at once of a group's use (inactive files) does not count.
Processes and threads count alike.
Source: proc(5), getrlimit(2), cgroups(7), the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MEMORY = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Limit, use, and what of the use can be given up: version 2, version 1."""


@dataclass(frozen=True, slots=True)
class Available:
    """What a machine has left; None where nothing limits it. Each with the file or limit that says so."""

    memory_bytes: int
    memory_source: str
    tasks: int | None
    """Processes and threads."""
    tasks_source: str
    descriptors: int | None
    """That a process may be allowed: the hard limit."""
    address_space_bytes: int | None


def available(system: Path = Path("/")) -> Available | None:
    """What this machine has. ``system`` is where /proc and control groups are looked for. None where there is no such thing: a
    study may be planned on a machine that could not carry it out."""
    if not (system / "proc/meminfo").exists():
        return None
    memory, memory_source = min(_memory(system))
    tasks, tasks_source = min(_tasks(system), default=(None, ""))
    hard_files, soft_space = _limit(resource.RLIMIT_NOFILE, 1), _limit(resource.RLIMIT_AS, 0)
    return Available(memory, memory_source, tasks, tasks_source, hard_files, soft_space)


def allow_descriptors(needed: int) -> None:
    """Let this process, and those that it starts, hold so many files open, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed if hard == resource.RLIM_INFINITY else min(needed, hard), hard))


def _limit(kind: int, which: int) -> int | None:
    """0: the soft one, 1: the hard one; None is no limit."""
    limit = resource.getrlimit(kind)[which]
    return None if limit == resource.RLIM_INFINITY else limit


def _memory(system: Path) -> Iterator[tuple[int, str]]:
    """Bytes left, and who says so."""
    match = re.search(r"^MemAvailable: +(\d+) kB$", (system / "proc/meminfo").read_text(), re.MULTILINE)
    if match is None:
        raise ValueError("/proc/meminfo has no MemAvailable")
    yield int(match[1]) * 1024, "MemAvailable of /proc/meminfo"
    for group in _groups(system, "memory"):
        for limit_file, use_file, given_up in _MEMORY:
            limit, use = _number(group / limit_file), _number(group / use_file)
            if limit is None or use is None:
                continue
            stat = re.search(rf"^{given_up} (\d+)$", (group / "memory.stat").read_text(), re.MULTILINE)
            yield max(0, limit - use + int(stat[1] if stat else 0)), f"the limit of the control group, {group / limit_file}"


def _tasks(system: Path) -> Iterator[tuple[int, str]]:
    running = int((system / "proc/loadavg").read_text().split()[3].partition("/")[2])
    for name in ("pid_max", "threads-max"):
        most = _number(system / "proc/sys/kernel" / name)
        if most is not None:
            yield max(0, most - running), f"/proc/sys/kernel/{name}, {running} in use"
    own = _limit(resource.RLIMIT_NPROC, 0)
    if own is not None and os.geteuid() != 0:
        used = _of_user(system / "proc", os.getuid())
        yield max(0, own - used), f"the limit of user processes (ulimit -u), {used} in use"
    for group in _groups(system, "pids"):
        limit, use = _number(group / "pids.max"), _number(group / "pids.current")
        if limit is not None and use is not None:
            yield max(0, limit - use), f"{group / 'pids.max'}, {use} in use"


def _of_user(proc: Path, user: int) -> int:
    """Threads of a user's processes."""
    total = 0
    for status in proc.glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if int(fields["Uid"].split()[0]) == user:
            total += int(fields["Threads"])
    return total


def _groups(system: Path, controller: str) -> Iterator[Path]:
    """This process's group in the hierarchies that may have the controller, and those above it, as far as they can be seen."""
    own: dict[str, str] = {}
    for line in (system / "proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        own |= dict.fromkeys(names.split(","), path)
    for line in (system / "proc/self/mountinfo").read_text().splitlines():
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
        while True:
            yield group
            if group == top:
                break
            group = group.parent


def _number(file: Path) -> int | None:
    """None where there is none: no such file, or no limit."""
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
