"""Instrument ``syscalls``: the system calls of programs, counted in the kernel or traced call by call.

Runs ``twinbed-probe syscalls`` on every host (docs/probe/SYSCALLS.md). It sees its own PID namespace, that is the container or
the guest, but never itself or the agent.  Other instruments' programs (irtt, tcpdump, owping) are counted only in
``instrument_calls``.  Gives calls by kind, bytes moved, errors and time; and the tables

* ``transitions`` (host, program, before_3, before_2, before_1, call, count): sequences of calls, for the analysis ``chain``;
* ``system_calls`` (host, program, call, calls, timed_calls, seconds, seconds_standard_error, errors, bytes): each call of each
  program;
* ``system_call_probes``: how calls were seen on each host, the share that was timed, and the methods that were refused.

Transitions leave out the first calls of every thread (``skip``) and calls after a number of others (``limit``); metrics and
``system_calls`` cover the whole run.  Time in calls is from entry to exit. With more programs than CPUs it includes time in
which a thread was not running.

The mode ``count`` times one call in 16, chosen at random (``times: sampled``). The column ``seconds`` is then the mean of the
timed calls times the number that returned, and null where none was timed; all else is exact.  The sums of metrics leave out
calls of which none was timed; long rare calls (a shell's wait for its child) need ``times: all``.

Limits: ``count`` costs 2 to 4 % of the requests of a workload that does little else, ``trace`` more (SYSCALLS.md).  Every
container has its own probe, which sees the calls of others and ignores them.  Context switches are not here: every run has
those of its programs, voluntary and involuntary (metrics/runs).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from twinbed.contracts.command import Command, Ready
from twinbed.contracts.extracted import Extracted, artifacts_named
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
    """Settings of how system calls are recorded."""

    mode: Literal["count", "trace"] = Field(
        "count", description="count: counts of sequences of calls, in kilobytes; trace: every call with its time, in gigabytes"
    )
    skip: int = Field(
        0, ge=0, le=2**40, description="number of first calls of each thread to leave out of chains (the papers: 1000000)"
    )
    limit: int | None = Field(
        None,
        ge=1,
        le=2**40,
        examples=[2_000_000],
        description="trace: number of calls of each thread in chains, after those skipped (the papers: 2000000), for walks of "
        "equal length; null: all",
    )
    slice: Duration | None = Field(
        None,
        ge=0.01,
        le=86_400,
        examples=["1s"],
        description="count: also count by slices of this time, such as 1s, in the artifact; null: no slices",
    )
    times: Literal["sampled", "all", "none"] = Field(
        "sampled",
        description="count: calls to time; sampled: one in 16 at random, which costs less and makes times estimates",
    )
    states: int = Field(131_072, ge=1, le=2**24, description="count: different transitions for which the kernel has room")
    buffer: Size = Field(8 * 2**20, ge=2**12, le=2**30, description="trace: kernel buffer; a larger one loses less in bursts")
    system_wide: Switch = Field(False, description="also record all programs on the lab's machine, as the papers did")

    @model_validator(mode="after")
    def _limit_of_a_trace(self) -> SyscallsParams:
        if self.limit is not None and self.mode != "trace":
            raise ValueError("limit needs mode: trace; a count does not know which calls were first")
        return self

    def estimate_seconds(self) -> float:
        return 0.4

    def estimate_bytes(self, link_rate: int) -> float:
        return BUSY_CALLS_PER_S * CALL_BYTES if self.mode == "trace" else 20_000 / (self.slice or 5.0)


class Syscalls(Instrument[SyscallsParams]):
    """The instrument."""

    name = "syscalls"
    params = SyscallsParams
    summary = "system calls of every host's programs: kinds, bytes, time, and their sequences (Markov chains)"
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
        # The kernel's maps or buffers take this.
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
        files = artifacts_named(artifacts, ARTIFACTS[params.mode])
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
