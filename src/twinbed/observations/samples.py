"""The values of every metric by cell and testbed, from the tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from twinbed.metrics.metric import Layer
from twinbed.model.columns import Coded, PlannedRuns, Records, first_come, planned_testbeds
from twinbed.model.run import Level
from twinbed.model.tables import Tables
from twinbed.observations.steps import resolve
from twinbed.statistics.sample import Sample

if TYPE_CHECKING:
    import pyarrow as pa

Place = TypeVar("Place")
_ABOUT = ("unit", "layer", "scale", "headline", "description")
Key = tuple[str, str, str]
"""(metric, host, direction)"""


@dataclass(frozen=True, slots=True)
class Declared:
    """The tables' declaration of a metric."""

    unit: str
    layer: str
    scale: str
    headline: bool
    description: str
    margin: float | None = None
    events: bool = False
    """True if its values count events. A share that is 1 throughout counts none: one value has to be another number."""

    @property
    def timed(self) -> bool:
        """Return whether its values are times, of a run or by the work."""
        return self.unit.partition("/")[0] == "s"

    @property
    def rank(self) -> int:
        order = [str(layer) for layer in Layer]
        return order.index(self.layer) if self.layer in order else len(order)


@dataclass(slots=True)
class CellRuns:
    """The runs of one testbed in one cell. ``values`` holds what each complete run has, in the order of replicates."""

    planned: int = 0
    complete: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    values: dict[Key, Sample] = field(default_factory=dict)
    runs: dict[Key, list[str]] = field(default_factory=dict)
    """The runs of ``values``; metrics with the same runs share one list."""
    steps: dict[Key, float] = field(default_factory=dict)
    """The step that values come in, in their unit; only for values in steps (statistics.resolution)."""
    known: set[Key] = field(default_factory=set)
    """The metrics it has rows of, values or null."""


@dataclass(slots=True)
class Samples:
    """``groups`` maps a cell's name to its testbeds' groups; ``cells`` to its levels, in the order of the plan."""

    cells: dict[str, dict[str, Level]]
    groups: dict[str, dict[str, CellRuns]]
    metrics: dict[str, Declared]
    testbeds: tuple[str, ...]

    def keys(self) -> Sequence[Key]:
        """Return every metric, host and direction that has a value somewhere, by layer, headlines first."""
        keys = {key for groups in self.groups.values() for group in groups.values() for key in group.values}
        order = {name: position for position, name in enumerate(self.metrics)}

        def rank(key: Key) -> tuple[int, bool, int, str, str]:
            metric = self.metrics[key[0]]
            return metric.rank, not self.is_headline(key), order[key[0]], key[1], key[2]

        return sorted(keys, key=rank)

    def is_headline(self, key: Key) -> bool:
        """Return whether a value is a headline: a headline metric's value of the whole run, or if there is none, of each
        place."""
        metric, *where = key
        whole = (metric, "", "")
        return self.metrics[metric].headline and (not any(where) or not self._any(lambda group: whole in group.values))

    def measures(self, testbed: str, key: Key) -> bool:
        """Return whether a testbed has this metric at this place at all, if it has anything: a container has no kernel to
        ask."""
        groups = [of_cell[testbed] for of_cell in self.groups.values() if testbed in of_cell]
        return any(key in group.known for group in groups) or not any(group.known for group in groups)

    def _any(self, holds: Callable[[CellRuns], bool]) -> bool:
        return any(holds(group) for of_cell in self.groups.values() for group in of_cell.values())


def cell_of(levels: Mapping[str, Level], sessions: str | None = None) -> tuple[str, dict[str, Level]]:
    """Return a cell's name and levels: those of all factors but the testbed and the factor of sessions."""
    rest = {factor: level for factor, level in levels.items() if factor not in ("testbed", sessions)}
    return json.dumps(rest, sort_keys=True), rest


def places_of(records: Records, sessions: str | None = None) -> Coded[tuple[str, str]]:
    """Return the testbed and the cell of each run, in the order in which they first come."""
    cells = records.levels.coded().renamed(lambda levels: cell_of(levels, sessions)[0])
    return records.testbeds.with_other(cells)


def distinct_rows(
    table: pa.Table, columns: Sequence[str], records: Records, places: Coded[Place]
) -> Iterator[tuple[Place, tuple[str, ...]]]:
    """Yield the distinct rows of a table for these runs: (place, values of the columns), in the order in which they first come.

    ``places`` has one entry for each record.
    """
    if not table.num_rows or not len(records):
        return
    import pyarrow as pa
    import pyarrow.compute as pc

    at = pc.index_in(table["run"], pa.array(records.ids, pa.string()))
    table, at = table.filter(pc.is_valid(at)), at.drop_null().to_numpy()
    codes = places.codes[at]
    for name in columns:
        coded = table[name].combine_chunks().dictionary_encode()
        codes = first_come(codes * (len(coded.dictionary) + 1) + coded.indices.fill_null(len(coded.dictionary)).to_numpy())[1]
    rows = np.sort(np.unique(codes, return_index=True)[1])
    texts = zip(*(table[name].take(rows).to_pylist() for name in columns), strict=True)
    for row, values in zip(rows.tolist(), texts, strict=True):
        yield places.values[places.codes[at[row]]], values


def gather(tables: Tables, sessions: str | None = None) -> Samples:
    """Gather the values of complete runs, and count planned and failed runs. ``sessions`` is a factor that makes no cells."""
    cells: dict[str, dict[str, Level]] = {}
    groups: dict[str, dict[str, CellRuns]] = {}

    def of_places(places: Coded[tuple[Mapping[str, Level], str]]) -> Coded[CellRuns]:
        there = []
        for levels, testbed in places.values:
            name, rest = cell_of(levels, sessions)
            cells.setdefault(name, rest)
            there.append(groups.setdefault(name, {}).setdefault(testbed, CellRuns()))
        number = {id(group): code for code, group in enumerate({id(group): group for group in there}.values())}
        codes = np.array([number[id(group)] for group in there], dtype=np.intp)
        return Coded(codes[places.codes], list({id(group): group for group in there}.values()))

    only = tables.outline.reference if len(tables.outline.testbeds) == 1 else None
    records, planned = Records.of(tables.records), PlannedRuns.of(tables.planned)
    # The file lists levels in the order that it means; runs come in random order.
    levels, testbeds = planned.levels.coded(), planned_testbeds(planned, records, only)
    order = _order(tables, levels)
    order = order[np.array([name is not None for name in testbeds.values], dtype=np.bool_)[testbeds.codes[order]]]
    named = testbeds.renamed(str)
    asked = of_places(levels.take(order).with_other(named.take(order)))
    for group, count in zip(asked.values, np.bincount(asked.codes, minlength=len(asked.values)).tolist(), strict=True):
        group.planned += count
    levels = records.levels.coded()
    order = _order(tables, levels, records.replicates)
    of_run = of_places(levels.take(order).with_other(records.testbeds.take(order)))
    ids, complete = np.array(records.ids, dtype=object)[order], records.complete[order]
    for group, rows in zip(of_run.values, of_run.rows(), strict=True):
        group.complete = ids[rows[complete[rows]]].tolist()
        group.failed = ids[rows[~complete[rows]]].tolist()
    metrics = _measured(tables.table("metrics"), ids, of_run)
    resolve(metrics, groups)
    names = tables.outline.testbeds
    return Samples(cells, groups, metrics, tuple(name for name in names if any(name in of_cell for of_cell in groups.values())))


def _measured(table: pa.Table, runs: NDArray[np.object_], of_run: Coded[CellRuns]) -> dict[str, Declared]:
    """Assign the values of the table to the runs, in their order; return each metric's declaration.

    Columns are processed as a whole, since there may be millions of rows.
    """
    metrics: dict[str, Declared] = {}
    if not table.num_rows:
        return metrics  # it may have no columns
    import pyarrow as pa
    import pyarrow.compute as pc

    table = table.append_column("at", pc.index_in(table["run"], pa.array(runs, pa.string())))
    table = table.filter(pc.is_valid(table["at"]))
    if not table.num_rows:
        return metrics
    at = table["at"].to_numpy()
    order = np.argsort(at, kind="stable")
    at = at[order]
    named = [table[name].combine_chunks().dictionary_encode() for name in ("metric", "host", "direction")]
    coded = [each.indices.to_numpy()[order].astype(np.int64) for each in named]
    texts_of = [each.dictionary.to_pylist() for each in named]
    keys, firsts, of_row = np.unique(
        (coded[0] * len(texts_of[1]) + coded[1]) * len(texts_of[2]) + coded[2], return_index=True, return_inverse=True
    )
    key_of = [(texts_of[0][coded[0][row]], texts_of[1][coded[1][row]], texts_of[2][coded[2][row]]) for row in firsts]
    for row in np.sort(np.unique(coded[0], return_index=True)[1]):
        about = {name: table[name][int(order[row])].as_py() for name in _ABOUT}
        margin = table["margin"][int(order[row])].as_py() if "margin" in table.column_names else None
        metrics[texts_of[0][coded[0][row]]] = Declared(**about, margin=margin)
    place = of_run.codes[at] * len(keys) + of_row
    values = table["value"].to_numpy()[order]
    missing = pc.is_null(table["value"]).to_numpy()[order]
    together = np.argsort(place, kind="stable")
    begins = np.flatnonzero(np.diff(place[together], prepend=-1))
    # As they first come, so that what iterates over a group does so in the order of its rows.
    for begin, end in sorted(zip(begins, [*begins[1:], len(together)], strict=True), key=lambda span: together[span[0]]):
        rows = together[begin:end]
        group, key = of_run.values[of_run.codes[at[rows[0]]]], key_of[of_row[rows[0]]]
        group.known.add(key)
        rows = rows[~missing[rows]]
        if len(rows):
            group.values[key] = Sample(values[rows].tolist())
            own = runs[at[rows]].tolist()
            group.runs[key] = next((each for each in islice(group.runs.values(), 1) if each == own), own)
    return metrics


def _order(tables: Tables, levels: Coded[Mapping[str, Level]], replicates: NDArray[np.int64] | None = None) -> NDArray[np.intp]:
    """Order rows as the study lists their levels, rows of the same levels by replicate, and otherwise as they come."""
    factors = tables.outline.data.get("factors") or {}
    given = factors if isinstance(factors, dict) else {}
    places = [tuple(_position(listed, of.get(name)) for name, listed in given.items()) for of in levels.values]
    rank = {place: number for number, place in enumerate(sorted(set(places)))}
    ranks = np.array([rank[place] for place in places], dtype=np.intp)[levels.codes]
    return np.argsort(ranks, kind="stable") if replicates is None else np.lexsort((replicates, ranks))


def _position(given: object, level: Level) -> int:
    return given.index(level) if isinstance(given, list) and level in given else 0
