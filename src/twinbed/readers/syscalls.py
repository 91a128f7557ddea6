"""One place's count or trace file, read: values, rows for tables, cautions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed.contracts.place import MACHINE
from twinbed.metrics.metric import Value
from twinbed.metrics.syscalls import BYTES, INSTRUMENT_CALLS, KINDS, kind_of, unit
from twinbed.model.caution import Caution, Kind

if TYPE_CHECKING:
    import pyarrow as pa

PROBE = "twinbed-probe"
INSTRUMENTS = frozenset({"irtt", "nmap", "owampd", "owping", "tcpdump"})
"""Programs that instruments start. No workload starts any of them, so a name shows whose calls they are, also of processes
that a program forks. A test compares this with the plans of all plugins."""
OURS = frozenset({PROBE, "init", "ethtool"}) | INSTRUMENTS
"""With the agent (in a guest it is init) and the programs that the probe runs on hosts: no part of the workload."""
BEST = "bpf"


@dataclass(frozen=True, slots=True)
class Program:
    """``name`` is None where it is not known."""

    name: str | None
    transitions: _core.Transitions
    """Without the calls that are cut off."""
    calls: pa.Table
    """All of them."""

    @property
    def number_of_calls(self) -> int:
        import pyarrow.compute as pc

        return int(pc.sum(self.calls["calls"]).as_py() or 0)


@dataclass(slots=True)
class _Time:
    """Time in calls of several kinds, of which some may be without a time."""

    calls: int = 0
    known: float | None = None

    def add(self, calls: int, seconds: float | None) -> None:
        self.calls += calls
        if seconds is not None:
            self.known = (self.known or 0.0) + seconds

    def seconds(self, some_untimed: bool) -> float | None:
        """Return the time without kinds that have none: none of their calls returned, or was in the sample."""
        return None if self.known is None and self.calls and some_untimed else self.known or 0.0


@dataclass(frozen=True, slots=True)
class Place:
    """The machine or a host."""

    name: str
    programs: tuple[Program, ...]
    summary: _core.TraceSummary
    instrument_calls: int | None = None
    """Calls of instruments' programs, which are not among ``programs``; None: not known."""

    @property
    def facts(self) -> dict[str, str]:
        """Return the probe's header; all texts of a fact that it has more than once."""
        facts: dict[str, str] = {}
        for name, text in self.summary["facts"]:
            facts[name] = f"{facts[name]}; {text}" if name in facts else text
        return facts

    def values(self) -> Iterator[Value]:
        counts = dict.fromkeys((*KINDS, "other"), 0)
        moved = dict.fromkeys(BYTES, 0)
        errors = 0
        waits = {True: _Time(), False: _Time()}
        for program in self.programs:
            for row in program.calls.to_pylist():
                kind = kind_of(row["call"])
                counts[kind] += row["calls"]
                errors += row["errors"]
                waits[kind == "wait"].add(row["calls"], row["seconds"])
                if kind in moved:
                    moved[kind] += row["bytes"] or 0
        yield self._value("system_calls", sum(counts.values()))
        for kind, count in counts.items():
            yield self._value(f"{kind}_calls", count)
        for kind, count in moved.items():
            yield self._value(f"{kind}_bytes", count)
            yield self._value(f"{kind}_bytes_per_call", count / counts[kind] if counts[kind] else None)
        yield self._value("system_call_errors", errors)
        some = self.facts.get("times", "all") != "all"
        yield self._value("system_call_seconds", waits[False].seconds(some))
        yield self._value("wait_seconds", waits[True].seconds(some))
        yield self._value("system_calls_lost", self.summary["lost_events"])
        if self.instrument_calls is not None:
            yield self._value(INSTRUMENT_CALLS.name, self.instrument_calls)

    def _value(self, metric: str, number: float | None) -> Value:
        return Value(metric, number, unit(metric), self.name)

    def call_rows(self) -> Iterator[pa.Table]:
        for program in self.programs:
            yield self._labelled(program, program.calls)

    def transition_rows(self) -> Iterator[pa.Table]:
        for program in self.programs:
            yield self._labelled(program, program.transitions.grams())

    def _labelled(self, program: Program, table: pa.Table) -> pa.Table:
        """Return a table with the host and the program as its first columns."""
        import pyarrow as pa

        # The schema's metadata differ from program to program, and tables are joined.
        table = table.replace_schema_metadata(None)
        for name, text in (("program", program.name), ("host", self.name)):
            table = table.add_column(0, name, pa.array([text] * table.num_rows, pa.string()))
        return table

    def probe_row(self) -> dict[str, object]:
        """Return how calls were observed here."""
        facts = self.facts
        own = {name: facts.get(name) for name in ("method", "refused", "scope", "architecture", "kernel", "times")}
        share = float(facts["timed_share"]) if "timed_share" in facts else None
        return {
            "host": self.name,
            **own,
            "timed_share": share,
            "calls": self.summary["calls"],
            "lost": self.summary["lost_events"],
        }

    def cautions(self) -> Iterator[Caution]:
        where = "the machine" if self.name == MACHINE else self.name
        lost, facts = self.summary["lost_events"], self.facts
        if lost:
            yield Caution(Kind.CALLS_LOST, f"{lost:,} on {where}, {self.summary['calls']:,} were counted")
        if facts.get("method") != BEST:
            why = f": {facts['refused']}" if "refused" in facts else ""
            yield Caution(Kind.SLOW_TRACING, f"{facts.get('method', 'an unknown method')} on {where}{why}")
        if self.summary["cut_off"]:
            yield Caution(Kind.UNREADABLE, f"{self.name}: {self.summary['cut_off']}")
        for reason, count in self.summary["skipped"].items():
            yield Caution(Kind.UNREADABLE, f"{self.name}: {count:,} {reason.replace('_', ' ')}")


def read_place(file: Path, skip: int, limit: int | None = None) -> Place:
    """Read a file. Raises OSError or ValueError where it cannot be read at all."""
    programs, summary = _core.system_calls(str(file), skip=skip, limit=limit)
    cut = skip or limit is not None
    whole = {name: calls for name, _, calls in (_core.system_calls(str(file))[0] if cut else programs)}
    empty = _core.Transitions([])
    after: dict[str | None, _core.Transitions] = defaultdict(lambda: empty)
    after |= {name: transitions for name, transitions, _ in programs}
    place = file.parent.name
    # Outside the lab the machine may have an init of its own, and all its calls may be traced.
    ours = INSTRUMENTS | {PROBE} if place == MACHINE else OURS
    every = [Program(name, after[name], calls) for name, calls in whole.items()]
    theirs = tuple(program for program in every if program.name not in ours)
    return Place(place, theirs, summary, sum(program.number_of_calls for program in every if program.name in INSTRUMENTS))
