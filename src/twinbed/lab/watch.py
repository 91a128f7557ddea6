"""What is watched on every host with a kernel of its own around a workload, whatever the instruments: the kernel's log, for
NICs that stall; the clocks, for steps and for how fast they run; at the end, whether there was space for what programs wrote.

Everything is read before the instruments begin or after they have ended.

What a host's clocks say, held against the clock of this machine that is never set.

A host is asked between two moments of this machine's, so its clock is known as exactly as the question took long.  Two readings
bound its rate.  A host whose rate cannot be within ``RATE`` of 1 measures every duration wrongly.

How long a run's programs waited for idle CPUs to be woken.

A program that waits for a packet gives its CPU away; where nothing else is to run there, the CPU stops, and the packet's
arrival has to wake it first. The kernel counts how often each CPU stopped (cpuidle's ``usage``). Each of these wake-ups takes
what was measured before the workload, beyond what a change of programs on one CPU takes.

Limits: only the machine's own CPUs are seen, not those of guests. Without cpuidle every time that a program gave its CPU away
counts, so that the time is an upper bound.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from twinbed.contracts.bed import Applied, Bed, Facts
from twinbed.contracts.host import Host
from twinbed.contracts.place import MACHINE
from twinbed.contracts.site import Site
from twinbed.hosts import files
from twinbed.hosts.error import HostError
from twinbed.links.network import on_all
from twinbed.model.caution import Caution, Kind
from twinbed.model.clients import ClientTimes
from twinbed.model.kernel import KERNEL_CLOCK, KERNEL_LOG
from twinbed.model.usage import ProgramUsage, Role
from twinbed.model.wake_ups import IDLE_WAKE_UPS, ON_ONE_CPU_S, WAITED_S, WAITED_SHARE, WAKE_UP_S
from twinbed.readers.kernel_log import nic_trouble

RATE = 0.01
"""Relative. Oscillators are within 1e-4 of each other, and clocks that NTP's daemons slew within 1e-3. A guest that was told
how fast its processor counts may be off by 1e-2 until its kernel has measured it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Seconds. ``before_s`` and ``after_s`` are on this machine's monotonic clock."""

    monotonic_s: float
    realtime_s: float
    before_s: float
    after_s: float

    @property
    def ahead_s(self) -> float:
        """How far the clock of the day is ahead of the one that is never set."""
        return self.realtime_s - self.monotonic_s


def read(host: Host, limit_s: float = 20.0) -> Reading:
    before_s = time.monotonic()
    clocks = host.ping(limit_s)
    return Reading(float(clocks["monotonic_s"]), float(clocks["realtime_s"]), before_s, time.monotonic())


def rate(first: Reading, last: Reading) -> tuple[float, float]:
    """The least and the greatest number of the host's seconds in one of this machine's; the greatest is infinite where the
    questions met."""
    passed_s = last.monotonic_s - first.monotonic_s
    least_s, most_s = last.before_s - first.after_s, last.after_s - first.before_s
    return passed_s / most_s, passed_s / least_s if least_s > 0 else float("inf")


def same_rate(name: str, first: Reading, last: Reading) -> Applied:
    """The measured rate; None where the readings do not bound it to ``RATE``. Raises HostError where it cannot be this
    machine's."""
    low, high = rate(first, last)
    if low > 1 + RATE or high < 1 - RATE:
        raise HostError(
            f"{name}: its clock runs {low:.4g} to {high:.4g} times as fast as this machine's, so nothing that it times is right"
        )
    measured = round((low + high) / 2, 2) if high - low <= 2 * RATE else None
    return Applied(name, "clock rate", None, measured, "ping")


STEP_S = 0.1
"""A clock that moved by more was set. Time daemons slew smaller differences, which turns both clocks alike. Two clocks that are
read one after the other agree within the time that a busy CPU may be late in between."""
_KMSG = "/dev/kmsg"
_STAMP = re.compile(r"^\[\s*\d+\.\d+\]\s*")
_INFORMATION = "<6>"


class Watch:
    """The watch of one run."""

    def __init__(self, bed: Bed, site: Site) -> None:
        self._bed, self._site = bed, site
        self._mark = f"twinbed: run {site.run} begins"
        self._own_kernel = [target.name for target in bed.targets if target.own_kernel]
        self._with_clocks = [target.name for target in bed.targets if target.own_kernel or target.name == MACHINE]
        self._first: dict[str, Reading] = {}
        self._begun: dict[str, Reading] = {}
        self._unmarked: dict[str, str] = {}
        self.rates: dict[str, Applied] = {}
        """The clock rates of hosts with clocks of their own, as last read."""

    def clocks(self) -> None:
        """Read the clocks for the first time: the earlier this is, the more exactly their rates are known."""
        self._first = self._read()

    def begin(self) -> None:
        """Read the clocks, and mark the place in the kernels' logs. Raises HostError for a clock of another rate."""
        self._begun = self._read()
        for name in self._own_kernel:
            self.rates[name] = same_rate(name, self._first[name], self._begun[name])
        on_all(self._own_kernel, self._put_mark)

    def end(self, *, limit_s: float, complete: bool = True) -> list[Caution]:
        """What has happened since ``begin``. Raises HostError for a host that does not answer, has no space left or a clock of
        another rate; where the run is not ``complete`` anyway, these are passed over."""
        every: list[Caution] = []

        def look(name: str) -> list[Caution]:
            events: list[Caution] = []
            try:
                now = read(self._bed.hosts[name], limit_s)
                events += _steps(name, self._begun[name], now)
                if name in self._own_kernel:
                    events += self._log(name, now, limit_s)
                    self._space_left(name, limit_s)
                    self.rates[name] = same_rate(name, self._first[name], now)
            except HostError:
                if complete:
                    raise
            return events

        for cautions in on_all(list(self._begun), look):
            every += cautions
        return every

    def _read(self) -> dict[str, Reading]:
        return dict(zip(self._with_clocks, on_all(self._with_clocks, lambda name: read(self._bed.hosts[name])), strict=True))

    def _put_mark(self, name: str) -> None:
        try:
            self._bed.hosts[name].write(_KMSG, f"{_INFORMATION}{self._mark}\n".encode())
        except HostError as error:
            self._unmarked[name] = str(error)

    def _log(self, name: str, now: Reading, limit_s: float) -> list[Caution]:
        if name in self._unmarked:
            return [Caution(Kind.UNREADABLE, f"{name}: its kernel's log: {self._unmarked[name]}")]
        log = self._bed.hosts[name].run(["dmesg"], limit_s=limit_s, check=False)
        if log.code != 0:
            return [Caution(Kind.UNREADABLE, f"{name}: its kernel's log: {log.stderr.decode(errors='replace').strip()}")]
        # A log that was overwritten since has no mark, and all of it is newer.
        since = log.text.rpartition(f"{self._mark}\n")[2]
        with files.create(self._site.place(name) / KERNEL_LOG) as sink:
            sink.write(since.encode())
        self._clock(name, now)
        trouble = nic_trouble(name, (_STAMP.sub("", line) for line in since.splitlines()))
        return [trouble] if trouble else []

    def _clock(self, name: str, now: Reading) -> None:
        asked_s = (now.before_s + now.after_s) / 2 + time.time() - time.monotonic()
        clock = {"ahead_s": asked_s - now.monotonic_s, "uncertain_s": (now.after_s - now.before_s) / 2}
        with files.create(self._site.place(name) / KERNEL_CLOCK) as sink:
            sink.write(f"{json.dumps(clock)}\n".encode())

    def _space_left(self, name: str, limit_s: float) -> None:
        """Many programs do not notice when what they write is cut off."""
        host = self._bed.hosts[name]
        free_blocks = host.run(["stat", "-f", "-c", "%a", host.artifacts], limit_s=limit_s).text
        if free_blocks.strip() == "0":
            raise HostError(f"{name}: no space left at {host.artifacts}: what its programs wrote may be cut off")


def _steps(name: str, begun: Reading, now: Reading) -> list[Caution]:
    step_s = now.ahead_s - begun.ahead_s
    if abs(step_s) <= STEP_S:
        return []
    where = "the machine" if name == MACHINE else name
    direction = "forward" if step_s > 0 else "back"
    return [Caution(Kind.CLOCK_STEP, f"{where}: its clock was set {direction} by {abs(step_s):.3f} s")]


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
