"""How long a run's programs waited for idle CPUs to be woken.

A program that waits for a packet gives its CPU away; where nothing else is to run there, the CPU stops, and the packet's
arrival has to wake it first. The kernel counts how often each CPU stopped (cpuidle's ``usage``). Each of these wake-ups takes
what was measured before the workload, beyond what a change of programs on one CPU takes.

Limits: only the machine's own CPUs are seen, not those of guests. Without cpuidle every time that a program gave its CPU away
counts, so that the time is an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from twinbed.contracts.bed import Bed, Facts
from twinbed.contracts.host import Host
from twinbed.contracts.place import MACHINE
from twinbed.hosts.error import HostError
from twinbed.model.caution import Caution, Kind
from twinbed.model.clients import ClientTimes
from twinbed.model.usage import ProgramUsage, Role
from twinbed.model.wake_ups import IDLE_WAKE_UPS, ON_ONE_CPU_S, WAITED_S, WAITED_SHARE, WAKE_UP_S

NOTED_SHARE = 0.1
"""Of a run's time: the least that is worth a caution."""
_STATE = "/sys/devices/system/cpu/cpu{}/cpuidle/state{}"
_POLL = "POLL"
"""The state in which a CPU goes on running while it waits."""


def stops(bed: Bed) -> int | None:
    """Return how often the CPUs of a run have stopped since the machine booted; None where its kernel does not say."""
    if bed.wake_up is None:
        return None
    machine, cpus = bed.hosts[MACHINE], bed.wake_up.cpus
    states = _stopping_states(machine, cpus[0])
    if not states:
        return None
    try:
        counts = machine.run(["cat", *(f"{_STATE.format(cpu, state)}/usage" for cpu in cpus for state in states)])
    except HostError:
        return None  # its CPUs are not alike
    return sum(map(int, counts.text.split()))


def _stopping_states(machine: Host, cpu: int) -> list[int]:
    """The idle states of a CPU in which it stops, by their numbers; none where the kernel does not count them."""
    states: list[int] = []
    for number in count():
        try:
            name = machine.read(f"{_STATE.format(cpu, number)}/name").decode(errors="replace").strip()
        except HostError:
            break  # it has no more
        if name != _POLL:
            states.append(number)
    return states


def waited(
    bed: Bed, stopped: int | None, programs: Sequence[ProgramUsage], clients: Sequence[ClientTimes]
) -> tuple[Facts, list[Caution]]:
    """Return facts for the machine's passport, and a caution where much of the run was spent so. ``stopped``: how often its
    CPUs stopped while the workload ran."""
    if bed.wake_up is None:
        return {}, []
    measured_s, least_s = bed.wake_up.apart_s, bed.wake_up.together_s
    facts: dict[str, float | int | None] = {WAKE_UP_S: measured_s, ON_ONE_CPU_S: least_s, IDLE_WAKE_UPS: stopped}
    given_away = sum(each.usage.voluntary_switches for each in programs if each.role is Role.WORKLOAD)
    wake_ups = 0 if bed.wake_up.kept_awake else given_away if stopped is None else min(given_away, stopped)
    each_s = max(0.0, measured_s - least_s)
    lasted_s = sum(client.end_s - client.start_s for client in clients)
    if not lasted_s or not programs:
        return {**facts, WAITED_S: None, WAITED_SHARE: None}, []
    share = min(1.0, wake_ups * each_s / lasted_s)
    facts |= {WAITED_S: wake_ups * each_s, WAITED_SHARE: share}
    if share < NOTED_SHARE:
        return facts, []
    most = "at most " if stopped is None else ""
    detail = f"{most}{share:.0%} of its time: {wake_ups / lasted_s:,.0f} wake-ups a second, {each_s * 1e6:.0f} us each"
    return facts, [Caution(Kind.IDLE_WAKE_UPS, detail)]
