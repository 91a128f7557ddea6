"""Idle CPUs of the machine that carries a lab: how long waking one takes, and keeping them from being idle.

A CPU without work stops. Waking a program takes a few microseconds on a running CPU. On a stopped CPU it takes tens of them,
to leave a sleep state or to pass the hypervisor. ``keep`` runs a thread of the idle scheduling class (SCHED_IDLE, nice 19) on
each CPU. Every other program has precedence, and the CPU never stops.

A thread's class counts only within one group of the scheduler. Autogroups (one per session, ``sched(7)``) make every host a
group that competes with an idle thread as an equal. So the threads are in a control group that is idle as a whole
(``cpu.idle``, Linux 5.15) if the kernel has such groups.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.contracts.check import Check
from twinbed.hosts.agent import PROBE, AgentHost, Running, cpus_allowed
from twinbed.hosts.cgroups import hierarchies
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import Lab
from twinbed.model.json import loads, number

_MEND = "run as root, or set idle: normal"
MEASURED_S = 0.02
"""How long each run measures wake-ups: hundreds of them even if they are slow."""
_READY_LIMIT_S = 30.0
_STOP_LIMIT_S = 30.0
_SIGTERM = 15
_AUTOGROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")
_STATE, _POLICY = 3, 41
"""Fields of /proc/PID/stat."""
_SCHED_IDLE = 5
_IDLE_GROUPS_SINCE = (5, 15)
_IDLE_FILE = "cpu.idle"
_SPINNER = "keeps CPU awake"
"""The name that the probe gives these threads."""
SOURCE = "/proc/PID/task/TID/stat"


def wake_up_s(machine: AgentHost, first: Sequence[int], second: Sequence[int], measured_s: float = MEASURED_S) -> float:
    """Return the median seconds from waking a thread on the CPUs ``second`` until it runs, measured from ``first``, in both
    directions. Raises HostError."""
    options = [f"--from={_list(first)}", f"--to={_list(second)}", f"--seconds={measured_s:g}"]
    done = machine.run([PROBE, "wake-up", *(word for option in options for word in option.split("="))])
    try:
        return number(loads(done.text)["median_s"])
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(f"{machine.name}: `{PROBE} wake-up` printed no wake-up time: {error}: {done.text[:200]!r}") from None


@dataclass(frozen=True, slots=True)
class Awake:
    """The threads that keep CPUs of the machine from being idle."""

    machine: AgentHost
    program: Running

    def cpus(self) -> tuple[int, ...]:
        """Read back the CPUs that are kept awake: each has such a thread, pinned to it alone, idle in class, and running."""
        pid = self.program.started()
        numbers: list[int] = []
        for entry in self.machine.listdir(f"/proc/{pid}/task"):
            task = f"/proc/{pid}/task/{entry.name}"
            if self.machine.read(f"{task}/comm").decode(errors="replace").strip() != _SPINNER:
                continue
            pinned = cpus_allowed(self.machine.read(f"{task}/status").decode(errors="replace"))
            if len(pinned) == 1 and runs_when_idle(self.machine.read(f"{task}/stat").decode(errors="replace")):
                numbers += pinned
        return tuple(sorted(numbers))

    def trouble(self) -> str | None:
        """Return why the CPUs are no longer kept awake; None while they are."""
        return "the threads that keep CPUs awake have ended: this run had idle CPUs" if self.program.ended else None


def why_not(controllers: Collection[str]) -> str | None:
    """Return why the CPUs of this machine cannot be kept awake; None if they can. ``controllers``: those available to a lab."""
    if ("cpu" in controllers and _idle_groups()) or not _autogroups():
        return None
    return "needs a control group with the controller cpu on Linux 5.15 or newer, or kernel.sched_autogroup_enabled=0"


def asked(idle: str) -> list[Check]:
    """Check that CPUs can be kept awake if a study asks for it."""
    if idle != "busy":
        return []
    why = why_not(hierarchies())
    return [Check("idle: busy", why is None, why or "in a control group of its own, or without autogroups", _MEND)]


@contextlib.contextmanager
def keep(lab: Lab, cpus: Sequence[int]) -> Iterator[Awake]:
    """Keep CPUs from being idle while the block runs. The threads end with the lab at the latest. Raises HostError."""
    if why := why_not(lab.cgroups.by_controller):
        raise HostError(f"idle: busy {why}\n    {_MEND}")
    group = lab.cgroups.awake if _idle_groups() else None
    argv = [PROBE, "spin", *(word for cpu in sorted(set(cpus)) for word in ("--cpu", str(cpu)))]
    if group is not None:
        try:
            group.mkdir()
            (group / _IDLE_FILE).write_text("1")
        except OSError as error:
            raise HostError(f"idle: busy: {error.filename}: {error.strerror}; use idle: normal") from None
        argv += ["--cgroup", str(group)]
    program = lab.machine.start(argv)
    program.says(b"ready", _READY_LIMIT_S)
    try:
        yield Awake(lab.machine, program)
    finally:
        # A lab that has ended has neither group nor program; the error that ended it is being raised.
        with contextlib.suppress(OSError, HostError):
            if group is not None:
                (group / _IDLE_FILE).write_text("0")  # so that it ends soon, whatever else runs
            program.signal(_SIGTERM)
            program.wait(_STOP_LIMIT_S)


def runs_when_idle(stat: str) -> bool:
    """Return whether a /proc/PID/task/TID/stat shows a running thread of the idle class (proc_pid_stat(5)).

    >>> runs_when_idle("7 (a b) R " + "0 " * 37 + "5 0")
    True
    """
    fields = stat.rpartition(")")[2].split()
    return fields[0] == "R" and int(fields[_POLICY - _STATE]) == _SCHED_IDLE


def _idle_groups() -> bool:
    """Return whether this kernel has groups that are idle as a whole."""
    return tuple(int(word) for word in re.findall(r"\d+", os.uname().release)[:2]) >= _IDLE_GROUPS_SINCE


def _autogroups() -> bool:
    try:
        return _AUTOGROUPS.read_text().strip() != "0"
    except OSError:
        return False


def _list(cpus: Sequence[int]) -> str:
    return ",".join(map(str, cpus))
