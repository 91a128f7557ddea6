"""The cautions that go with comparisons: what the runs carried, what is missing, and what still varies inside a cell."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from twinbed.analyses.compare.samples import Group, Samples, cell_of
from twinbed.model.caution import Caution, Kind
from twinbed.model.record import Record
from twinbed.model.run import Status
from twinbed.model.tables import Tables

Carried = Mapping[str, Sequence[tuple[Kind, str]]]
"""Run -> what it carries."""


def carried(tables: Tables) -> Carried:
    """The cautions of the run records and of extraction."""
    found: dict[str, list[tuple[Kind, str]]] = defaultdict(list)
    table = tables.table("cautions")
    if table.num_rows:
        for run, kind, detail in zip(*(table[name].to_pylist() for name in ("run", "kind", "detail")), strict=True):
            if kind.upper() in Kind.__members__:
                found[run].append((Kind[kind.upper()], detail))
    return found


def of_group(testbed: str, group: Group, carry: Carried) -> tuple[Caution, ...]:
    """What the runs of one testbed in one cell carry, each kind once, with the number of runs that carry it."""
    runs = [*group.complete, *group.failed]
    found = list(_merged(testbed, runs, carry))
    if group.failed:
        found.append(Caution(Kind.FAILED_RUNS, f"{len(group.failed)} of {len(runs)} runs", testbed))
    if group.planned > len(runs):
        found.append(Caution(Kind.INCOMPLETE, f"{len(runs)} of {group.planned} runs made", testbed))
    return tuple(found)


def of_study(tables: Tables, samples: Samples, carry: Carried) -> tuple[Caution, ...]:
    """The cautions of the whole study, each kind once for each testbed."""
    found = list(tables.cautions)
    by_testbed: dict[str, list[Record]] = defaultdict(list)
    for record in tables.records:
        by_testbed[str(record.settings["testbed"]["name"])].append(record)
    for testbed in samples.testbeds:
        records = by_testbed[testbed]
        found.extend(_merged(testbed, [record.id for record in records], carry))
        failed = [record for record in records if record.status is Status.FAILED]
        if failed:
            reasons = sorted({f"{record.failed_phase}: {record.reason}" for record in failed})
            more = f" and {len(reasons) - 1} more reasons" if len(reasons) > 1 else ""
            found.append(Caution(Kind.FAILED_RUNS, f"{len(failed)} of {len(records)} runs: {reasons[0]}{more}", testbed))
    made = {record.id for record in tables.records}
    missing = sum(run.id not in made for run in tables.planned)
    if missing:
        found.append(Caution(Kind.INCOMPLETE, f"{missing} of {len(tables.planned)} runs have not been made"))
    found.extend(_residue(tables))
    return tuple(found)


def _merged(testbed: str, runs: Sequence[str], carry: Carried) -> Iterable[Caution]:
    details: dict[Kind, dict[str, list[str]]] = defaultdict(dict)
    for run in runs:
        for kind, detail in carry.get(run, ()):
            details[kind].setdefault(run, []).append(detail)
    for kind, of_run in details.items():
        first = next((text for texts in of_run.values() for text in texts if text), "")
        yield Caution(kind, f"{len(of_run)} of {len(runs)} runs" + (f": {first}" if first else ""), testbed)


def _residue(tables: Tables) -> Iterable[Caution]:
    """Settings and facts of the testbed that differ between replicates of one cell."""
    cells: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in tables.records:
        cells[str(record.settings["testbed"]["name"]), cell_of(record.levels)[0]].append(record)
    differing: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (testbed, _cell), records in cells.items():
        if len({record.cell for record in records}) > 1:
            for setting, values in _varying(record.settings for record in records).items():
                differing[testbed, f"setting {setting}"] |= values
    group_of = {record.id: key for key, records in cells.items() for record in records}
    table = tables.table("facts")
    if table.num_rows:
        facts: dict[tuple[tuple[str, str], str, str], set[str]] = defaultdict(set)
        for run, place, fact, value in zip(
            *(table[name].to_pylist() for name in ("run", "place", "fact", "value")), strict=True
        ):
            if run in group_of:
                facts[group_of[run], place, fact].add(value)
        for (group, place, fact), values in facts.items():
            # What a passport says of durations, such as booting's, differs each time by nature.
            if len(values) > 1 and not fact.endswith("seconds"):
                differing[group[0], f"{place}: {fact}"] |= values
    for (testbed, what), values in differing.items():
        shown = ", ".join(_short(value) for value in sorted(values)[:3]) + (", ..." if len(values) > 3 else "")
        yield Caution(Kind.RESIDUE, f"{what} is {shown}", testbed)


def _varying(settings: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    values: dict[str, set[str]] = defaultdict(set)
    for each in settings:
        for name, value in _leaves(each):
            values[name].add(value)
    return {name: found for name, found in values.items() if len(found) > 1}


def _leaves(data: Any, name: str = "") -> Iterable[tuple[str, str]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _leaves(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, json.dumps(data, sort_keys=True)


def _short(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:37]}..."
