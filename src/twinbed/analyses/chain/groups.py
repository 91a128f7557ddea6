"""Gather the replicates of one cell, host and program, by testbed.

In: runs with levels and status; the tables ``transitions`` and, for the time in calls, ``system_calls`` (run, host, program,
call, seconds).  Failed runs are left out.  Programs of the machine that carries the lab (``system_wide``) are left out too:
they do not belong to a testbed, and each would take its share of the correction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed._core import Transitions
from twinbed.contracts.place import MACHINE
from twinbed.model.record import Record
from twinbed.model.run import Level
from twinbed.model.tables import Tables
from twinbed.observations.inside import complete, read
from twinbed.observations.samples import cell_of

GRAM = ("before_3", "before_2", "before_1", "call", "count")

Gram = tuple[str | None, str | None, str | None, str, int]
"""The columns GRAM of one row, from which ``Transitions`` are made."""
Program = tuple[str, str | None]
"""Host and program; None if the trace has no name."""


@dataclass(frozen=True, slots=True)
class ReplicatedChains:
    """The replicates of one cell, host and program; testbeds ordered as in the study, replicates by number."""

    cell: Mapping[str, Level]
    host: str
    program: str | None
    replicates: Mapping[str, Sequence[Transitions]]
    seconds: Mapping[str, Mapping[str, float]]
    """Testbed -> call -> time in it, over all replicates; only testbeds with measured times."""


def gathered(tables: Tables) -> Iterator[ReplicatedChains]:
    """Yield every cell, host and program that has transitions."""
    records = {record.id: record for record in complete(tables)}
    grams: dict[tuple[str, Program], list[Gram]] = defaultdict(list)
    for run, host, program, *gram in read(tables, "transitions", "run", "host", "program", *GRAM):
        if run in records and host != MACHINE:
            grams[run, (host, program)].append(tuple(gram))
    cells: dict[str, Mapping[str, Level]] = {}
    by_cell: dict[tuple[str, Program], dict[str, list[tuple[int, Transitions]]]] = defaultdict(dict)
    for (run, where), rows in grams.items():
        record = records[run]
        cell, cells[cell] = cell_of(record.levels)
        by_cell[cell, where].setdefault(_testbed(record), []).append((record.replicate, Transitions(rows)))
    seconds = _seconds(tables, records)
    for (cell, (host, program)), groups in sorted(by_cell.items(), key=lambda item: tuple(map(str, item[0]))):
        names = [name for name in tables.outline.testbeds if name in groups]
        replicates = {name: [counts for _, counts in sorted(groups[name], key=lambda entry: entry[0])] for name in names}
        times = {name: seconds[key] for name in names if (key := (cell, (host, program), name)) in seconds}
        yield ReplicatedChains(cells[cell], host, program, replicates, times)


def _testbed(record: Record) -> str:
    return str(record.settings["testbed"]["name"])


def _seconds(tables: Tables, records: Mapping[str, Record]) -> dict[tuple[str, Program, str], dict[str, float]]:
    totals: dict[tuple[str, Program, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for run, host, program, call, seconds in read(tables, "system_calls", "run", "host", "program", "call", "seconds"):
        if seconds is not None and (record := records.get(run)):
            totals[cell_of(record.levels)[0], (host, program), _testbed(record)][call] += seconds
    return {key: dict(calls) for key, calls in totals.items()}
