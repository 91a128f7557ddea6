"""Instrument ``counters``: the kernel's counters of the machine and of every host, before, after and once a second.

Runs ``twinbed-probe counters`` everywhere. Gives differences from the first to the last snapshot, never values since boot:

* CPU time by state, time that tasks waited for a CPU, wake-ups of idle CPUs and idle states;
* interrupts, softirqs, context switches, page faults, pressure and KVM's exits;
* counters of TCP and of NICs, and rates that show a machine's load.

Tables: ``counters`` (every counter that moved, every gauge and setting), ``interrupts`` (each line's count), ``kernel_log``,
and ``losses`` (where datagrams were lost).

Containers share the machine's kernel. For a host without a kernel of its own, only what its network namespace owns counts:
NICs and TCP. Network interfaces are those that the testbed names, or all but ``lo`` where it names none; their counts are
summed.

With ``idle: busy`` threads of the idle class run, with the highest nice value, whenever a CPU would be idle. The kernel's nice
time is then idle time, also for other nice programs, and the time that tasks waited for a CPU is missing.

Wake-ups of idle CPUs are timed by two eBPF programs, unless ``wake_ups`` is false: from the moment at which a task is woken
until it runs on a CPU that had nothing to run. Where the kernel refuses the programs, as without root, values are missing, and
the table ``counters`` has the reason (``wake_ups:refused``). Idle states are missing where the kernel has no cpuidle.

Limits: CPU time is in steps of 1/100 s (USER_HZ). The machine's counters hold all that runs on it, twinbed and strangers too,
from the time the instruments are ready until they are stopped. The time that tasks waited for a CPU is known on kernels with
CONFIG_SCHEDSTATS, such as Debian's. KVM's exits are known where KVM is loaded and debugfs can be read. Elsewhere they are
missing. Sources: Documentation/filesystems/proc.rst, accounting/psi.rst and scheduler/sched-stats.rst of Linux.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from twinbed.contracts.command import Command, Ready
from twinbed.contracts.extracted import Extracted, artifacts_named
from twinbed.contracts.instrument import Instrument
from twinbed.contracts.params import InstrumentParams
from twinbed.contracts.place import MACHINE, Target
from twinbed.metrics.counters import METRICS
from twinbed.model.units import Duration
from twinbed.readers.counters import losses
from twinbed.readers.counters.cautions import log_cautions, place_cautions
from twinbed.readers.counters.place import Place, interrupt_table, read_place

ARTIFACT = "counters.snap"
SNAPSHOT_BYTES = 24_000
"""Bytes of a snapshot of /proc on a machine with few CPUs."""


class CountersParams(InstrumentParams):
    """Settings of how often counters are read."""

    interval: Duration = Field(1.0, ge=0.01, le=3600, description="time between snapshots, such as 1s")
    wake_ups: bool = Field(True, description="time wake-ups of idle CPUs in the kernel (eBPF)")

    def estimate_seconds(self) -> float:
        return 0.2

    def estimate_bytes(self, link_rate: int) -> float:
        return SNAPSHOT_BYTES / self.interval


class Counters(Instrument[CountersParams]):
    """The instrument."""

    name = "counters"
    params = CountersParams
    summary = "counters of the kernels and NICs of the machine and of every host (CPU, interrupts, TCP, drops, pressure)"
    also = ("vmstat", "mpstat", "nstat", "cpu", "interrupts")
    files = ("counters.snap",)
    raw = "counters second by second; the table has first and last values"
    metrics = METRICS

    def plan(self, params: CountersParams, target: Target) -> Sequence[Command]:
        # What belongs to a kernel, not to a network namespace, is read once for each kernel.
        kernel = ("--kernel", "--softnet", "--kmsg", *(("--wake-ups",) if params.wake_ups else ()))
        of_its_kernel = kernel if target.own_kernel or target.name == MACHINE else ()
        argv = (
            "twinbed-probe",
            "counters",
            *("--out", f"{{artifacts}}/{ARTIFACT}"),
            *("--interval", f"{params.interval:g}"),
            "--net",
            *of_its_kernel,
            *(option for interface in sorted(target.interfaces) for option in ("--ethtool", interface)),
        )
        return [Command(target.name, argv, ready=Ready(says=b"ready"))]

    def extract(self, params: CountersParams, artifacts: Path) -> Extracted:
        files = artifacts_named(artifacts, ARTIFACT)
        import pyarrow as pa

        places = [read_place(file) for file in files]
        ledgers = list(losses.ledgers(places, _ports(places)))
        return Extracted(
            [*(value for place in places for value in place.values()), *losses.values(ledgers)],
            {
                "counters": pa.concat_tables([place.moved() for place in places]),
                "interrupts": interrupt_table(places),
                "kernel_log": pa.concat_tables([place.log_rows() for place in places]),
                **({"losses": losses.table(ledgers)} if ledgers else {}),
            },
            [caution for place in places for caution in (*place_cautions(place), *log_cautions(place))],
        )


def _ports(places: Sequence[Place]) -> Mapping[str, Place]:
    """Host -> the machine that has the switch's end of its link."""
    return {nic.removeprefix("p."): place for place in places for nic in place.nics() if nic.startswith("p.")}


counters = Counters()

__all__ = ["Counters", "CountersParams", "Place", "counters"]
