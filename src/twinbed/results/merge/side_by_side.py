"""Two results as one, testbed by testbed: their common part as a merge would make it, read in place.

Nothing is written: runs keep their tables, under the ids that a merge gives them.  The factor ``results`` names the results of
a run.  Parts that only one of them has are left out and listed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from twinbed.model.caution import Caution
from twinbed.model.error import TwinbedError
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.record import Record
from twinbed.model.run import Level, level_text
from twinbed.model.tables import TESTBED, Outline, Planned, StudyDocument
from twinbed.results.merge.plan import Plan, plan
from twinbed.results.merge.sources import Source, sources
from twinbed.results.store import Store, testbed_of

if TYPE_CHECKING:
    import pyarrow as pa

RESULTS = "results"
"""The factor that names the results of a run."""
_MOST = 4
"""The most cells or metrics that a sentence names."""


@dataclass(frozen=True)
class SideBySide:
    """Tables of both; ``names`` are the levels of the factor ``results``."""

    shown: Path
    names: tuple[str, str]
    outline: Outline
    planned: Sequence[Planned]
    records: Sequence[Record]
    cautions: Sequence[Caution]
    other_settings: int
    link_checks: Sequence[LinkCheck]
    left_out: Sequence[str]
    """A sentence for each part that only one of both has."""
    runs: Sequence[tuple[Store, Mapping[str, str]]]
    """The results, and the id of a run there -> its id here."""

    def table(self, name: str) -> pa.Table:
        import pyarrow as pa

        parts = [_renamed(store.table(name), ids) for store, ids in self.runs if name in store.names()]
        return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})


def _renamed(table: pa.Table, ids: Mapping[str, str]) -> pa.Table:
    """Return the rows of these runs, under their new ids."""
    import pyarrow as pa

    if not table.num_rows:
        return table
    runs = [ids.get(run) for run in table["run"].to_pylist()]
    at = table.column_names.index("run")
    named = table.set_column(at, "run", pa.array(runs, pa.string()))
    return named.filter(pa.array([run is not None for run in runs], pa.bool_()))


def side_by_side(first: Store, second: Store) -> SideBySide:
    """Combine two results. Raises TwinbedError if they have no testbed, or no cell, in common."""
    shared = [name for name in first.outline.testbeds if name in second.outline.testbeds]
    if not shared:
        theirs = "; ".join(f"{store.shown} has {', '.join(store.outline.testbeds) or 'none'}" for store in (first, second))
        raise TwinbedError(
            "the two results have no testbed of the same name",
            advice=f"{theirs}. `twinbed merge --rename` merges results whose testbeds have other names",
        )
    names = _names(first, second)
    stores = [_of_testbeds(store, shared) for store in (first, second)]
    if taken := [store.shown for store in stores if any(RESULTS in record.levels for record in store.records)]:
        raise TwinbedError(
            f"{taken[0]} has a factor {RESULTS!r} of its own", advice=f"compare --by {RESULTS} compares its levels"
        )
    renamed = {(at, name): name for at in (0, 1) for name in shared}
    of = sources(stores, renamed, {(at, RESULTS): name for at, name in enumerate(names)})
    reference = first.outline.reference if first.outline.reference in shared else shared[0]
    made = plan(of, f"{names[1]} against {names[0]}", reference, "")
    common = _common(made)
    if not common:
        notes = "; ".join(made.notes)
        raise TwinbedError(
            f"{first.shown} and {second.shown} have no cell in common",
            advice=f"their factors differ{f': {notes}' if notes else ''}",
        )
    runs = [run for run in made.runs if _cell(run[2].levels) in common]
    ids = [{old: record.id for source, old, record in runs if source is merged} for merged in of]
    study = cast(StudyDocument, made.study)
    planned = [Planned(**entry) for entry in study["runs"]]
    given = first.outline
    outline = Outline(study["study"], tuple(made.testbeds), reference, given.margin, given.confidence, data=study)
    return SideBySide(
        shown=second.shown,
        names=names,
        outline=outline,
        planned=[run for run in planned if _cell(run.levels) in common],
        records=[record for *_, record in runs],
        cautions=[*first.cautions, *second.cautions],
        other_settings=first.other_settings + second.other_settings,
        link_checks=[check for source in of for check in _checks(source)],
        left_out=[*_left_out(made, stores, (first, second), names, common), *made.notes],
        runs=list(zip(stores, ids, strict=True)),
    )


def _names(first: Store, second: Store) -> tuple[str, str]:
    """Return the names of both folders, or if these are equal, the paths that the user gave."""
    short = [store.shown.resolve().name for store in (first, second)]
    return (short[0], short[1]) if short[0] != short[1] else (str(first.shown), str(second.shown))


def _of_testbeds(store: Store, names: Sequence[str]) -> Store:
    records = tuple(record for record in store.records if testbed_of(record) in names)
    others = {record.id for record in store.records} - {record.id for record in records}
    planned = tuple(run for run in store.planned if run.id not in others and run.levels.get(TESTBED, names[0]) in names)
    testbeds = tuple(name for name in store.outline.testbeds if name in names)
    return replace(store, records=records, planned=planned, outline=replace(store.outline, testbeds=testbeds))


def _cell(levels: Mapping[str, Level]) -> str:
    return json.dumps({name: level for name, level in levels.items() if name != RESULTS}, sort_keys=True)


def _cells(made: Plan, name: str) -> dict[str, Mapping[str, Level]]:
    return {_cell(record.levels): record.levels for *_, record in made.runs if record.levels[RESULTS] == name}


def _common(made: Plan) -> set[str]:
    first, second = (set(_cells(made, str(name))) for name in dict.fromkeys(record.levels[RESULTS] for *_, record in made.runs))
    return first & second


def _left_out(
    made: Plan, stores: Sequence[Store], whole: Sequence[Store], names: Sequence[str], common: set[str]
) -> Iterator[str]:
    """Yield a sentence for each part that only one of both has."""
    for store, all_of_it, name in zip(stores, whole, names, strict=True):
        if more := [testbed for testbed in all_of_it.outline.testbeds if testbed not in store.outline.testbeds]:
            yield f"testbeds of {name} alone: {_listed(more)}"
        cells = [levels for cell, levels in _cells(made, name).items() if cell not in common]
        if cells:
            texts = (", ".join(f"{of} {level_text(level)}" for of, level in cell.items() if of != RESULTS) for cell in cells)
            yield f"cells of {name} alone: {_listed([*texts], '; ')}"
    first, second = (set(store.table("metrics", ["metric"])["metric"].to_pylist()) for store in stores)
    for name, more in zip(names, (sorted(first - second), sorted(second - first)), strict=True):
        if more:
            yield f"metrics of {name} alone: {_listed(more)}"


def _listed(texts: Sequence[str], between: str = ", ") -> str:
    rest = f" and {len(texts) - _MOST} more" if len(texts) > _MOST else ""
    return between.join(texts[:_MOST]) + rest


def _checks(source: Source) -> Iterator[LinkCheck]:
    for check in source.store.link_checks:
        yield replace(check, cell=source.identity(check.cell), run=source.identity(check.run))
