"""What waking an idle CPU takes on this machine, for `check` and preflight: two threads wake each other on two CPUs, on one,
and on two that are kept awake."""

from __future__ import annotations

import os
from collections.abc import Sequence

from twinbed.contracts.check import Check
from twinbed.hosts import awake
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import Lab

WHAT = "idle CPUs"
_MEASURED_S = 0.1
_MEND = "idle: normal"


def check(lab: Lab, cpus: Sequence[int]) -> Check:
    """``cpus``: those that this process may use, in the order in which hosts are given them."""
    if len(cpus) < 2:
        return _told("there is one CPU for all: no program waits for another one to be woken")
    first, second = cpus[:1], cpus[1:2]
    try:
        apart_s = awake.wake_up_s(lab.machine, first, second, _MEASURED_S)
        together_s = awake.wake_up_s(lab.machine, first, first, _MEASURED_S)
        found = f"waking an idle CPU takes {_us(apart_s)} on this machine ({_us(together_s)} where both programs share a CPU)"
        if why := awake.why_not(lab.cgroups.by_controller):
            return _told(f"{found}; idle: busy {why}", mend="run as root")
        with awake.keep(lab, (*first, *second)) as kept:
            busy_s, there = awake.wake_up_s(lab.machine, first, second, _MEASURED_S), kept.cpus()
    except HostError as error:
        return _told(str(error).replace("\n", " "), mend=_MEND)
    if there != tuple(sorted((*first, *second))):
        return _told(f"{found}; idle: busy kept only {list(there)} of CPUs {[*first, *second]} awake", mend=_MEND)
    return _told(f"{found}; {_us(busy_s)} with idle: busy{load_note(len(cpus), os.getloadavg()[0])}")


def load_note(cpus: int, load: float) -> str:
    """Return what to say where the machine works: it then has no idle CPU to wake."""
    return f"; other work runs here (load {load:.1f}): check again on a quiet machine" if load >= cpus / 2 else ""


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us"


def _told(found: str, mend: str = "") -> Check:
    return Check(WHAT, not mend, found, mend, required=False)
