"""The watch of every host with its own kernel around a workload, whatever the instruments.

It watches the kernel's log for NICs that stall, the clocks for steps and rates, and at the end the space for what programs
wrote.  Everything is read before the instruments begin or after they have ended.

A clock is read between two moments of this machine's monotonic clock, so it is known as exactly as the question took long.  Two
readings bound its rate.  A host whose rate cannot be within ``RATE`` of 1 measures every duration wrongly.

It also computes how long programs waited for idle CPUs to wake.  A program that waits for a packet gives up its CPU. With
nothing else to run the CPU stops, and the packet's arrival has to wake it. The kernel counts how often each CPU stopped
(cpuidle's ``usage``). Each wake-up takes the time measured before the workload, less that of a switch between programs on one
CPU.

Limits: only the machine's own CPUs are seen, not those of guests. Without cpuidle every time that a program gave up its CPU
counts, so the time is an upper bound.
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
"""The largest relative difference in rate. Oscillators agree within 1e-4, clocks that NTP daemons slew within 1e-3. A guest
that is given its processor's frequency may be off by 1e-2 until its kernel has measured it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A host's two clocks, in seconds. ``before_s`` and ``after_s`` are on this machine's monotonic clock."""

    monotonic_s: float
    realtime_s: float
    before_s: float
    after_s: float

    @property
    def ahead_s(self) -> float:
        """Return how far the real-time clock is ahead of the monotonic one."""
        return self.realtime_s - self.monotonic_s


def read(host: Host, limit_s: float = 20.0) -> Reading:
    before_s = time.monotonic()
    clocks = host.ping(limit_s)
    return Reading(float(clocks["monotonic_s"]), float(clocks["realtime_s"]), before_s, time.monotonic())


def rate(first: Reading, last: Reading) -> tuple[float, float]:
    """Return the least and the greatest number of the host's seconds in one second of this machine.

    The greatest is infinite where the two questions overlap."""
    passed_s = last.monotonic_s - first.monotonic_s
    least_s, most_s = last.before_s - first.after_s, last.after_s - first.before_s
    return passed_s / most_s, passed_s / least_s if least_s > 0 else float("inf")


def same_rate(name: str, first: Reading, last: Reading) -> Applied:
    """Return the measured rate; null where the readings do not bound it to ``RATE``. Raises HostError for a different rate."""
    low, high = rate(first, last)
    if low > 1 + RATE or high < 1 - RATE:
        raise HostError(
            f"{name}: the clock runs {low:.4g} to {high:.4g} times as fast as this machine's, so all its times are wrong"
        )
    measured = round((low + high) / 2, 2) if high - low <= 2 * RATE else None
    return Applied(name, "clock rate", None, measured, "ping")


STEP_S = 0.1
"""A clock that moved by more was set. Time daemons slew smaller differences, which moves both clocks alike. Two clocks that are
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
        """Return cautions since ``begin``. Raises HostError for a host that does not answer, has no space, or a clock of
        another rate; a run that is not ``complete`` anyway ignores these."""
        cautions: list[Caution] = []

        def examine(name: str) -> list[Caution]:
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

        for of_host in on_all(list(self._begun), examine):
            cautions += of_host
        return cautions

    def _read(self) -> dict[str, Reading]:
        return dict(zip(self._with_clocks, on_all(self._with_clocks, lambda name: read(self._bed.hosts[name])), strict=True))

    def _put_mark(self, name: str) -> None:
        try:
            self._bed.hosts[name].write(_KMSG, f"{_INFORMATION}{self._mark}\n".encode())
        except HostError as error:
            self._unmarked[name] = str(error)

    def _log(self, name: str, now: Reading, limit_s: float) -> list[Caution]:
        if name in self._unmarked:
            return [Caution(Kind.UNREADABLE, f"{name}: kernel log: {self._unmarked[name]}")]
        log = self._bed.hosts[name].run(["dmesg"], limit_s=limit_s, check=False)
        if log.code != 0:
            return [Caution(Kind.UNREADABLE, f"{name}: kernel log: {log.stderr.decode(errors='replace').strip()}")]
        # A log that was overwritten has lost the mark, and all of it is newer.
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
        """Raise HostError where no space is left: many programs do not notice when their output is cut off."""
        host = self._bed.hosts[name]
        free_blocks = host.run(["stat", "-f", "-c", "%a", host.artifacts], limit_s=limit_s).text
        if free_blocks.strip() == "0":
            raise HostError(f"{name}: no space left at {host.artifacts}: the output of programs may be cut off")


def _steps(name: str, begun: Reading, now: Reading) -> list[Caution]:
    step_s = now.ahead_s - begun.ahead_s
    if abs(step_s) <= STEP_S:
        return []
    where = "the machine" if name == MACHINE else name
    direction = "forward" if step_s > 0 else "back"
    return [Caution(Kind.CLOCK_STEP, f"{where}: the clock was set {direction} by {abs(step_s):.3f} s")]


NOTED_SHARE = 0.1
"""The smallest share of a run's time that is worth a caution."""
_STATE = "/sys/devices/system/cpu/cpu{}/cpuidle/state{}"
_POLL = "POLL"
"""The idle state in which a CPU goes on running while it waits."""


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
        return None  # the CPUs have different states
    return sum(map(int, counts.text.split()))


def _stopping_states(machine: Host, cpu: int) -> list[int]:
    """Return the numbers of a CPU's idle states in which it stops; none where the kernel does not count them."""
    states: list[int] = []
    for number in count():
        try:
            name = machine.read(f"{_STATE.format(cpu, number)}/name").decode(errors="replace").strip()
        except HostError:
            break  # there are no more states
        if name != _POLL:
            states.append(number)
    return states


def waited(
    bed: Bed, stopped: int | None, programs: Sequence[ProgramUsage], clients: Sequence[ClientTimes]
) -> tuple[Facts, list[Caution]]:
    """Return facts for the machine's passport, and a caution where wake-ups took much of the run. ``stopped``: how often the
    CPUs stopped during the workload."""
    if bed.wake_up is None:
        return {}, []
    measured_s, least_s = bed.wake_up.apart_s, bed.wake_up.together_s
    facts: dict[str, float | int | None] = {WAKE_UP_S: measured_s, ON_ONE_CPU_S: least_s, IDLE_WAKE_UPS: stopped}
    given_up = sum(program.usage.voluntary_switches for program in programs if program.role is Role.WORKLOAD)
    wake_ups = 0 if bed.wake_up.kept_awake else given_up if stopped is None else min(given_up, stopped)
    each_s = max(0.0, measured_s - least_s)
    lasted_s = sum(client.end_s - client.start_s for client in clients)
    if not lasted_s or not programs:
        return {**facts, WAITED_S: None, WAITED_SHARE: None}, []
    share = min(1.0, wake_ups * each_s / lasted_s)
    facts |= {WAITED_S: wake_ups * each_s, WAITED_SHARE: share}
    if share < NOTED_SHARE:
        return facts, []
    most = "at most " if stopped is None else ""
    detail = f"{most}{share:.0%} of the run's time: {wake_ups / lasted_s:,.0f} wake-ups/s of {each_s * 1e6:.0f} us each"
    return facts, [Caution(Kind.IDLE_WAKE_UPS, detail)]
