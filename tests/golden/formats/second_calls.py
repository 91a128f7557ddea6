"""System calls counted a second time, from the text that the tools print: strace, perf script, trace-cmd, sysdig.

``perf.data`` is printed by ``perf script --ns``.  What is of which kind is said by docs/metrics.md ("read, recvfrom and their
like"); numbers of calls are those of x86_64's ``asm/unistd_64.h``.
"""

from __future__ import annotations

import bz2
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

Sums = dict[str, str]
NAMES = {
    0: "read",
    1: "write",
    3: "close",
    17: "pread64",
    21: "access",
    33: "dup2",
    61: "wait4",
    72: "fcntl",
    202: "futex",
    230: "clock_nanosleep",
    257: "openat",
    262: "newfstatat",
}
KINDS = {
    "read": ("read", "pread64", "recvmsg"),
    "write": ("write", "sendto"),
    "sendfile": ("sendfile", "splice", "tee", "vmsplice", "copy_file_range"),
    "wait": ("futex", "wait4", "clock_nanosleep", "epoll_wait"),
    "epoll_ctl": ("epoll_ctl", "epoll_create1"),
    "accept": ("accept", "accept4"),
    "connect": ("connect",),
    "socket": ("socket", "bind", "getsockname"),
    "open": ("openat",),
    "close": ("close",),
    "stat": ("newfstatat", "access", "fstat"),
    "fcntl": ("fcntl", "ioctl"),
}


@dataclass(frozen=True)
class Call:
    name: str
    gave: int | None
    "None where it did not come back"
    seconds: Decimal | None = None


def sums(calls: list[Call], timed: bool) -> Sums:
    counts: dict[str, int] = {}
    for call in calls:
        kind = next((kind for kind, names in KINDS.items() if call.name in names), "other")
        counts[kind] = counts.get(kind, 0) + 1
    answer = {f"{kind}_calls": str(counts.get(kind, 0)) for kind in (*KINDS, "other")}
    for kind in ("read", "write", "sendfile"):
        moved = [call.gave for call in calls if call.name in KINDS[kind] and call.gave is not None and call.gave > 0]
        each = "+".join(f"{moved.count(size)}*{size}" for size in sorted(set(moved))) or "0"
        answer[f"{kind}_bytes"] = each
        if counts.get(kind):
            answer[f"{kind}_bytes_per_call"] = f"({each})/{counts[kind]}"
    answer["system_call_errors"] = str(sum(call.gave is not None and -4096 < call.gave < 0 for call in calls))
    if timed:
        for name, waits in (("system_call_seconds", False), ("wait_seconds", True)):
            times = [call.seconds for call in calls if call.seconds is not None and (call.name in KINDS["wait"]) == waits]
            answer[name] = "+".join(f"{time:f}" for time in times) or "0"
    return answer


def strace(case: Path) -> Iterator[Sums]:
    """Lines that are not whole are none; of a call in two lines the second says what it gave."""
    (file,) = case.glob("input*")
    whole = bz2.decompress(file.read_bytes()).decode() if file.suffix == ".bz2" else file.read_text()
    lines = [line for line in whole.splitlines(keepends=True) if line.endswith("\n")]
    begun: dict[str, str] = {}
    calls: list[Call] = []
    for line in lines:
        found = re.match(r"(?:\[pid +)?(\d*)(?:<[^>]*>)?\]? *(?:\d+:\d+:\d+(?:\.\d+)? |\d+\.\d+ )?(.*)$", line)
        assert found
        thread, rest = found.groups()
        if name := re.match(r"(\w+)\(.*<unfinished \.\.\.>$", rest):
            begun[thread] = name[1]
        elif name := re.match(r"<\.\.\. (\w+) resumed>.*\) += (\?|-?\w+)(?=[ <]|$)", rest) or re.match(
            r"(\w+)\(.*\) += (\?|-?\w+)(?=[ <]|$)", rest
        ):
            begun.pop(thread, None)
            calls.append(Call(name[1], None if name[2] == "?" else int(name[2], 0)))
    calls += [Call(name, None) for name in begun.values()]
    yield sums(calls, timed=False)


def raw_lines(whole: str, digits: int) -> Iterator[Sums]:
    """``sys_enter: NR n`` and the ``sys_exit`` of the same thread after it.  An exit without an entry is of no call."""
    entered: dict[str, tuple[int, Decimal]] = {}
    calls: list[Call] = []
    line = rf"^ *\S+?[ -](\d+) +\[\d+\] .*?(\d+\.\d{{{digits}}}): +"
    line += r"(?:raw_syscalls:)?sys_(enter|exit): +NR (-?\d+) (?:= (-?\d+)|\()"
    for thread, at, way, number, gave in re.findall(line, whole, re.M):
        if way == "enter":
            entered[thread] = int(number), Decimal(at)
        # A return from a signal's handler leaves with the number that it puts back: -1.
        elif thread in entered and int(number) in (entered[thread][0], -1):
            entry, since = entered.pop(thread)
            calls.append(Call(NAMES.get(entry, str(entry)), int(gave), Decimal(at) - since))
    calls += [Call(NAMES.get(number, str(number)), None) for number, _ in entered.values()]
    yield sums(calls, timed=True)


def printed(case: Path) -> Iterator[Sums]:
    (file,) = case.glob("input*")
    yield from raw_lines(file.read_text(), 6)


def perf_data(case: Path) -> Iterator[Sums]:
    (file,) = case.glob("input*")
    command = ["perf", "script", "--ns", "-i", str(file)]
    yield from raw_lines(subprocess.run(command, capture_output=True, text=True, check=True).stdout, 9)


def sysdig(case: Path) -> Iterator[Sums]:
    """``>`` enters and ``<`` leaves; ``res=`` or ``fd=`` is what it gave."""
    (file,) = case.glob("input*")
    entered: dict[str, str] = {}
    calls: list[Call] = []
    for thread, way, name, rest in re.findall(r"^\d+ \S+ \d+ .+? \((\d+)\) ([<>]) (\w+)(.*)$", file.read_text(), re.M):
        if name in ("switch", "procexit"):
            continue
        if way == ">":
            entered[thread] = name
        elif entered.pop(thread, None) == name:
            gave = re.match(r" (?:res|fd)=(-?\d+)", rest)
            calls.append(Call(name, int(gave[1]) if gave else None))
    calls += [Call(name, None) for name in entered.values()]
    yield sums(calls, timed=False)


READERS = {"strace": strace, "perf-script": printed, "perf-data": perf_data, "trace-cmd": printed, "sysdig": sysdig}
