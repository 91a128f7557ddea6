"""The cautions that go with comparisons: what the runs carried, what is missing, and what still varies inside a cell."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from twinbed.analyses.compare.stacks import differences
from twinbed.model.caution import Caution, Kind, counted
from twinbed.model.columns import PlannedRuns, Records, first_come, testbed_named
from twinbed.model.record import Record, Settings
from twinbed.model.run import Status, level_text
from twinbed.model.tables import Tables
from twinbed.model.wake_ups import IDLE_WAKE_UPS
from twinbed.observations.samples import CellRuns, Samples, distinct_rows, places_of
from twinbed.observations.suspicion import suspicion

Carried = Mapping[str, Sequence[tuple[Kind, str]]]
"""Run -> what it carries."""
Residue = Mapping[tuple[str, str], Mapping[str, frozenset[str]]]
"""(testbed, cell) -> what still varies between its replicates -> its values."""
ABSENT = "not there"
OF_IMPORTS = ("files", "metrics")
"""Settings of the workload ``imported`` that say what was read and what it is called, not how it was measured."""


def carried(tables: Tables) -> Carried:
    """Return the cautions of the run records and of extraction."""
    of_run: dict[str, list[tuple[Kind, str]]] = defaultdict(list)
    table = tables.table("cautions")
    if table.num_rows:
        for run, kind, detail in zip(*(table[name].to_pylist() for name in ("run", "kind", "detail")), strict=True):
            caution = Caution.of(kind, detail)
            of_run[run].append((caution.kind, caution.detail))
    return of_run


def of_group(testbed: str, cell: str, group: CellRuns, carry: Carried, left: Residue) -> tuple[Caution, ...]:
    """Return what the runs of one testbed in one cell carry: each kind once with the number of its runs, and the residue."""
    runs = [*group.complete, *group.failed]
    cautions = list(_merged(testbed, runs, carry))
    if group.failed:
        cautions.append(Caution(Kind.FAILED_RUNS, f"{len(group.failed)} of {len(runs)} runs", testbed))
    if group.planned > len(runs):
        cautions.append(Caution(Kind.INCOMPLETE, f"{len(runs)} of {group.planned} runs made", testbed))
    cautions.extend(
        Caution(Kind.RESIDUE, _values_text(what, values), testbed) for what, values in left.get((testbed, cell), {}).items()
    )
    return tuple(cautions)


def of_study(tables: Tables, samples: Samples, carry: Carried, left: Residue) -> tuple[Caution, ...]:
    """Return the cautions of the whole study, each kind once for each testbed."""
    cautions = list(tables.cautions)
    records = Records.of(tables.records)
    ids, failing = records.ids, [row for row, status in enumerate(records.statuses.listed()) if status is Status.FAILED]
    rows_of = dict(zip(records.testbeds.values, records.testbeds.rows(), strict=True))
    failed_of = _by_testbed(records.take(failing))
    for testbed in samples.testbeds:
        rows, failed = rows_of.get(testbed, ()), failed_of.get(testbed, ())
        cautions.extend(_merged(testbed, [ids[row] for row in rows], carry))
        if failed:
            reasons = sorted({f"{record.failed_phase}: {record.reason}" for record in failed})
            more = f" and {len(reasons) - 1} more reasons" if len(reasons) > 1 else ""
            cautions.append(Caution(Kind.FAILED_RUNS, f"{len(failed)} of {len(rows)} runs: {reasons[0]}{more}", testbed))
    made, planned = set(ids), PlannedRuns.of(tables.planned).ids
    missing = sum(run not in made for run in planned)
    if missing:
        cautions.append(Caution(Kind.INCOMPLETE, f"{missing} of {len(planned)} runs have not been made"))
    alone = [cell for cell, groups in samples.groups.items() if tables.outline.reference not in groups]
    if alone and len(samples.testbeds) > 1 and tables.outline.reference in samples.testbeds:
        named = (" ".join(f"{name} {level_text(level)}" for name, level in samples.cells[cell].items()) for cell in alone[:3])
        cells = "; ".join(named) + ("; ..." if len(alone) > 3 else "")
        cautions.append(Caution(Kind.UNMATCHED, f"{len(alone)} of {len(samples.groups)} cells: {cells}"))
    cautions.extend(_of_all_cells(left))
    # Where testbeds were measured apart, the residue has what differs.
    if not _measured_apart(tables):
        cautions.extend(differences(tables, str(tables.outline.reference), samples.testbeds))
    return tuple(cautions)


def _by_testbed(records: Records) -> Mapping[str, Sequence[Record]]:
    by_testbed: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_testbed[testbed_named(record.settings)].append(record)
    return by_testbed


def _merged(testbed: str, runs: Sequence[str], carry: Carried) -> Iterable[Caution]:
    details: dict[Kind, dict[str, list[str]]] = defaultdict(dict)
    for run in runs:
        for kind, detail in carry.get(run, ()):
            details[kind].setdefault(run, []).append(detail)
    for kind, of_run in details.items():
        yield Caution(kind, counted(len(of_run), len(runs), chain.from_iterable(of_run.values())), testbed)


def _of_all_cells(left: Residue) -> Iterable[Caution]:
    """Yield each thing that varies once for each testbed, with its values in all cells in which it does."""
    merged: dict[tuple[str, str], frozenset[str]] = {}
    for (testbed, _cell), varying in left.items():
        for what, values in varying.items():
            merged[testbed, what] = merged.get((testbed, what), frozenset()) | values
    for (testbed, what), values in merged.items():
        yield Caution(Kind.RESIDUE, _values_text(what, values), testbed)


def _values_text(what: str, values: frozenset[str]) -> str:
    return f"{what} is {', '.join(_short(value) for value in sorted(values)[:3])}{', ...' if len(values) > 3 else ''}"


def residue(tables: Tables, sessions: str | None = None) -> Residue:
    """Return the settings and facts of a testbed that differ between the replicates of one cell."""
    records = Records.of(tables.records)
    places, settings = places_of(records, sessions), records.settings.coded()
    cells = dict(zip(places.values, places.rows(), strict=True))
    varying: dict[tuple[str, str], dict[str, frozenset[str]]] = defaultdict(dict)
    of_settings = records.cells.coded().renamed(str)
    for cell, many in Counter(cell for cell, _ in places.with_other(of_settings).values).items():
        if many > 1:
            varying[cell] |= _varying([settings.values[code] for code in first_come(settings.codes[cells[cell]])[0]])
    facts: dict[tuple[tuple[str, str], str, str], set[str]] = defaultdict(set)
    for cell, (place, fact, value) in distinct_rows(tables.table("facts"), ("place", "fact", "value"), records, places):
        facts[cell, place, fact].add(value)
    for (cell, place, fact), values in facts.items():
        # Durations, such as booting's, and counts of wake-ups differ in every run by nature.
        if len(values) > 1 and not fact.endswith("seconds") and not fact.startswith(IDLE_WAKE_UPS):
            varying[cell][f"{place}: {fact}"] = frozenset(values)
    for key, differing in _apart(tables, records, cells).items():
        varying[key] |= differing
    return varying


def _apart(tables: Tables, records: Records, cells: Mapping[tuple[str, str], NDArray[np.intp]]) -> Residue:
    """Return how the measurement of a cell differs from the reference's in what is no factor, for testbeds that were measured
    apart (merged, imported). Values say whose they are. ``cells``: the rows of each."""
    reference = str(tables.outline.reference)
    circumstances = _circumstances(tables) if _measured_apart(tables) else {}
    by = tables.outline.by
    of_cells = {key: _circumstances_of(records.take(rows), circumstances, by) for key, rows in cells.items()}
    apart_in: dict[tuple[str, str], dict[str, frozenset[str]]] = defaultdict(dict)
    for (testbed, cell), own in of_cells.items():
        theirs = of_cells.get((reference, cell), {}) if testbed != reference else {}
        for what, ours in own.items():
            if what in theirs and ours != theirs[what]:
                sides = ((reference, theirs[what]), (testbed, ours))
                apart_in[testbed, cell][what] = frozenset(f"{value} on {name}" for name, values in sides for value in values)
    return apart_in


def _circumstances_of(records: Records, circumstances: Mapping[str, Mapping[str, str]], by: str) -> Mapping[str, set[str]]:
    """Return, for each circumstance that all runs of a cell know, its values; without the factor that is compared, ``by``."""
    once = {id(settings): _of_measuring(settings, by) for settings in records.settings.distinct()}
    facts = list(once.values())
    if circumstances:
        runs = zip(records.ids, records.settings.listed(), strict=True)
        facts = [{**once[id(settings)], **circumstances.get(run, {})} for run, settings in runs]
    return {what: {run[what] for run in facts} for what in facts[0] if all(what in run for run in facts)}


def _measured_apart(tables: Tables) -> bool:
    return bool(tables.outline.data.get("sources")) or any(
        settings["workload"]["kind"] == "imported" for settings in Records.of(tables.records).settings.distinct()
    )


def _of_measuring(settings: Settings, by: str) -> Mapping[str, str]:
    """Return what a run's settings say of what is measured, and with what."""
    known = (*OF_IMPORTS, by.rpartition(".")[2])
    return {f"setting workload.{name}": value for name, value in _leaves(settings["workload"]) if name not in known}


def _circumstances(tables: Tables) -> Mapping[str, Mapping[str, str]]:
    """Run -> ``client: kernel`` -> its value."""
    of_run: dict[str, dict[str, str]] = defaultdict(dict)
    table = tables.table("facts")
    for run, place, fact, value in (
        zip(*(table[name].to_pylist() for name in ("run", "place", "fact", "value")), strict=True) if table.num_rows else ()
    ):
        suspect = suspicion(place, fact)
        if suspect.circumstance and suspect.kind != "package" and value not in ("", "null"):
            of_run[run][f"{place}: {fact}"] = value
    return of_run


def _varying(settings: Sequence[Mapping[str, object]]) -> dict[str, frozenset[str]]:
    """Return setting -> its values, where these differ; a setting that only some have is also ``ABSENT``."""
    leaves = [dict(_leaves(run_settings)) for run_settings in settings]
    names = dict.fromkeys(name for flat in leaves for name in flat)
    values = {name: frozenset(flat.get(name, ABSENT) for flat in leaves) for name in names}
    return {f"setting {name}": several for name, several in values.items() if len(several) > 1}


def _leaves(data: object, name: str = "") -> Iterable[tuple[str, str]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _leaves(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, json.dumps(data, sort_keys=True)


def _short(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:37]}..."
