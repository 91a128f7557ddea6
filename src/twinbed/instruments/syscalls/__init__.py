"""Instrument ``syscalls``: what programs asked of the kernel, counted in the kernel or traced call by call.

Runs ``twinbed-probe syscalls`` on every host (docs/probe/SYSCALLS.md): it sees what is in its own PID namespace, which is
the container or the guest, and never itself or the agent.  Other instruments' programs (irtt, tcpdump, owping) are left out of
what follows; ``instrument_calls`` counts their calls.  Gives calls by kind, bytes moved, errors and time; and the tables

* ``transitions`` (host, program, before_3, before_2, before_1, call, count): what followed what, for the analysis ``chain``;
* ``system_calls`` (host, program, call, calls, timed_calls, seconds, seconds_standard_error, errors, bytes): each call of each
  program;
* ``system_call_probes``: how calls were seen on each host, which share of them was timed, and what was refused before.

``skip`` cuts the first calls of every thread off the transitions, ``limit`` all after so many more; metrics and
``system_calls`` are of the whole run.  Time in calls is from entry to exit: with more programs than CPUs it holds the time for
which a thread was not running.

``count`` reads the clock for one call in 16, chosen at random (``times: sampled``): ``seconds`` is then the mean of the timed
calls times how many returned, null where none was timed; everything else stays exact.  Calls of which none was timed are not
in the metrics' sums; rare calls that are long (a shell's wait for its child) want ``times: all``.

Limits: ``count`` costs 2 to 4 % of the requests of a workload that does little else, ``trace`` more (SYSCALLS.md); every
container has a probe, and each sees the others' calls before it puts them aside.  Context switches are not here: every run has
those of its programs, voluntary and not (metrics/runs).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from twinbed.contracts.command import Command, Ready
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.instrument import Instrument
from twinbed.contracts.params import InstrumentParams
from twinbed.contracts.place import MACHINE, Target
from twinbed.metrics.syscalls import INSTRUMENT_CALLS, METRICS
from twinbed.model.units import Duration, Size, Switch
from twinbed.readers.syscalls import Place, read_place

if TYPE_CHECKING:
    import pyarrow as pa

SIGINT = 2
ARTIFACTS = {"count": "system-calls.count", "trace": "system-calls.trace"}
BUSY_CALLS_PER_S = 300_000
CALL_BYTES = 7
STATE_BYTES = 192
"""The kernel's memory for one transition: 24.7 MB a host with 131,072 of them, measured on 80 hosts."""


class SyscallsParams(InstrumentParams):
    """What is seen of system calls."""

    mode: Literal["count", "trace"] = Field(
        "count", description="count: what followed what, in kilobytes; trace: every call with its time, in gigabytes"
    )
    skip: int = Field(
        0, ge=0, le=2**40, description="the first calls of each thread, which the chains leave out (the seeds: 1000000)"
    )
    limit: int | None = Field(
        None,
        ge=1,
        le=2**40,
        examples=[2_000_000],
        description="trace: how many calls of each thread, after those skipped, the chains hold (the seeds: 2000000), so that "
        "all walks are equally long; null: all",
    )
    slice: Duration | None = Field(
        None,
        ge=0.01,
        le=86_400,
        examples=["1s"],
        description="count: also cut in time, in the artifact, such as 1s; null does not",
    )
    times: Literal["sampled", "all", "none"] = Field(
        "sampled", description="count: the calls whose time is taken; one in 16 at random costs less, time is then an estimate"
    )
    states: int = Field(131_072, ge=1, le=2**24, description="count: different transitions that the kernel has room for")
    buffer: Size = Field(8 * 2**20, ge=2**12, le=2**30, description="trace: the kernel's buffer; larger loses less in bursts")
    system_wide: Switch = Field(False, description="also all programs on the machine that carries the lab, as the seeds did")

    @model_validator(mode="after")
    def _limit_of_a_trace(self) -> SyscallsParams:
        if self.limit is not None and self.mode != "trace":
            raise ValueError("limit is for mode: trace; a count does not know which calls were the first")
        return self

    def estimate_seconds(self) -> float:
        return 0.4

    def estimate_bytes(self, link_rate: int) -> float:
        return BUSY_CALLS_PER_S * CALL_BYTES if self.mode == "trace" else 20_000 / (self.slice or 5.0)


class Syscalls(Instrument[SyscallsParams]):
    """The instrument."""

    name = "syscalls"
    params = SyscallsParams
    summary = "system calls of every host's programs: kinds, bytes, time, and what followed what (Markov chains)"
    also = ("strace", "system_calls", "calls", "sysdig")
    files = ("system-calls.*",)
    raw = "single calls with their times, and slices of time"
    metrics = (*METRICS, INSTRUMENT_CALLS)

    def plan(self, params: SyscallsParams, target: Target) -> Sequence[Command]:
        if target.name == MACHINE and not params.system_wide:
            return ()
        of_mode: tuple[str, ...] = ("--buffer", str(params.buffer // 1024))
        if params.mode == "count":
            cut = ("--slice", f"{params.slice:g}") if params.slice else ()
            of_mode = ("--skip", str(params.skip), "--states", str(params.states), "--times", params.times, *cut)
        argv = (
            *("twinbed-probe", "syscalls", params.mode),
            *("--out", f"{{artifacts}}/{ARTIFACTS[params.mode]}"),
            *of_mode,
            *(("--system-wide",) if target.name == MACHINE else ()),
        )
        # Of the kernel's maps or buffers for it.
        kernel_bytes = params.states * STATE_BYTES if params.mode == "count" else params.buffer + 16 * 2**20
        return [
            Command(
                *(target.name, argv, "system-calls.out", Ready(says=b"ready")),
                stop=SIGINT,
                memory_bytes=kernel_bytes + 2**20,
                real_root=True,
            )
        ]

    def extract(self, params: SyscallsParams, artifacts: Path) -> Extracted:
        files = sorted(artifacts.glob(f"*/{ARTIFACTS[params.mode]}"))
        if not files:
            raise FileNotFoundError(f"no {ARTIFACTS[params.mode]} in {artifacts}")
        import pyarrow as pa

        places = [read_place(file, params.skip, params.limit) for file in files]
        joined = {
            "transitions": [table for place in places for table in place.transition_rows()],
            "system_calls": [table for place in places for table in place.call_rows()],
            "system_call_probes": [pa.Table.from_pylist([place.probe_row()], _probes()) for place in places],
        }
        return Extracted(
            [value for place in places for value in place.values()],
            {name: pa.concat_tables(tables) for name, tables in joined.items() if tables},
            [caution for place in places for caution in place.cautions()],
        )


def _probes() -> pa.Schema:
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("host", "method", "refused", "scope", "architecture", "kernel", "times")]
    return pa.schema([*texts, ("timed_share", pa.float64()), ("calls", pa.int64()), ("lost", pa.int64())])


syscalls = Syscalls()

__all__ = ["Place", "Syscalls", "SyscallsParams", "syscalls"]
