"""The values of every metric by cell and testbed, from the tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from twinbed.metrics.counted import COUNT, EVENTS, counted
from twinbed.metrics.metric import Layer
from twinbed.model.columns import Coded, PlannedRuns, Records, first_come, planned_testbeds
from twinbed.model.comparison import Excluded
from twinbed.model.run import Level, Status
from twinbed.model.tables import Tables
from twinbed.statistics.resolution import coarser, distinct, evidence, lattice, printed_step, step
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
    ``places`` has one entry for each record."""
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
        of_place = []
        for levels, testbed in places.values:
            name, rest = cell_of(levels, sessions)
            cells.setdefault(name, rest)
            of_place.append(groups.setdefault(name, {}).setdefault(testbed, CellRuns()))
        number = {id(group): code for code, group in enumerate({id(group): group for group in of_place}.values())}
        codes = np.array([number[id(group)] for group in of_place], dtype=np.intp)
        return Coded(codes[places.codes], list({id(group): group for group in of_place}.values()))

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
    """Assign the values of the table to the runs, in their order; return each metric's declaration. Columns are processed as a
    whole, since there may be millions of rows."""
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
    coded = [column.indices.to_numpy()[order].astype(np.int64) for column in named]
    texts_of = [column.dictionary.to_pylist() for column in named]
    keys, firsts, of_row = np.unique(
        (coded[0] * len(texts_of[1]) + coded[1]) * len(texts_of[2]) + coded[2], return_index=True, return_inverse=True
    )
    key_of = [(texts_of[0][coded[0][row]], texts_of[1][coded[1][row]], texts_of[2][coded[2][row]]) for row in firsts]
    for row in np.sort(np.unique(coded[0], return_index=True)[1]):
        declared = {name: table[name][int(order[row])].as_py() for name in _ABOUT}
        margin = table["margin"][int(order[row])].as_py() if "margin" in table.column_names else None
        metrics[texts_of[0][coded[0][row]]] = Declared(**declared, margin=margin)
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
            group.runs[key] = next((known for known in islice(group.runs.values(), 1) if known == own), own)
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


def excluded(tables: Tables, asked: Sequence[str] = ()) -> Excluded | None:
    """Return the runs that the study leaves out, or those with the ``asked`` cautions instead; None if there are neither."""
    data = tables.outline.data
    of_study = tuple(data.get("exclude_cautions") or ())
    kinds = tuple(asked) or of_study
    asked_now = set(kinds) != set(of_study)
    if not kinds:
        return None
    table = tables.table("cautions")
    rows = zip(table["run"].to_pylist(), table["kind"].to_pylist(), strict=True) if table.num_rows else ()
    marked = {run for run, kind in rows if kind in kinds}
    complete = {
        record.id: str(record.settings["testbed"]["name"]) for record in tables.records if record.status is Status.COMPLETE
    }
    ids = frozenset(marked & complete.keys())
    of, out = Counter(complete.values()), Counter(complete[run] for run in ids)
    runs = {name: (out[name], of[name]) for name in tables.outline.testbeds if of[name]}
    return Excluded(kinds, ids, runs, int(data.get("exclude_decided_after") or 0), asked_now)


PER = "_per_"
"""Separates a metric from the work that it was divided by (metrics.derived)."""
Groups = Mapping[str, Mapping[str, "CellRuns"]]


def resolve(metrics: dict[str, Declared], groups: Groups) -> None:
    """Find the step of each metric's values in each group: the coarsest of the metric's, its testbed's and the group's.

    Testbeds may measure by programs of their own, which may print fewer digits of larger values.  Whole numbers are rounded
    ones unless the metric is known to count.  Bytes are counted too, but some tools print them in whole MiB: a lattice shows
    it.  A metric divided by the work has the step of the undivided metric, divided by the work.
    """
    of_metric: dict[str, dict[str, list[Sample]]] = {}
    for testbed, group in _members(groups):
        for (metric, _, _), values in group.values.items():
            of_metric.setdefault(metric, {}).setdefault(testbed, []).append(values)
    bases = {metric: _base(metric, metrics) for metric in of_metric}
    steps: dict[tuple[str, str], float] = {}
    for metric, of_testbed in of_metric.items():
        if bases[metric]:
            continue
        different = {testbed: distinct([*chain.from_iterable(samples)]) for testbed, samples in of_testbed.items()}
        if exact := _counts(metric, metrics[metric].unit, different):
            # Zeros alone may be of anything, and a share is 1 throughout.
            all_values = {*chain.from_iterable(different.values())}
            events = metrics[metric].unit in EVENTS and all_values not in ({0.0}, {1.0})
            metrics[metric] = replace(metrics[metric], events=events)
        if not exact or metrics[metric].unit not in EVENTS:
            of_metric_steps = _of_testbeds(of_testbed, different, exact=exact)
            steps |= {(testbed, metric): step for testbed, step in of_metric_steps.items() if step or not exact}
    for testbed, group in _members(groups):
        for key, values in group.values.items():
            if (testbed, key[0]) in steps:
                group.steps[key] = coarser(values, step(values), steps[testbed, key[0]])
        for key, values in group.values.items():
            base = (bases[key[0]], *key[1:])
            if group.steps.get(base) and group.values[base].average:
                group.steps[key] = group.steps[base] * abs(values.average / group.values[base].average)


def _counts(metric: str, unit: str, different: Mapping[str, Sequence[float]]) -> bool:
    """Return whether a metric counts: it is declared to, and all of its values are whole numbers."""
    if unit != COUNT and metric not in counted():
        return False
    return all(value == round(value) for values in different.values() for value in values)


def _of_testbeds(
    of_testbed: Mapping[str, Sequence[Sample]], different: Mapping[str, Sequence[float]], *, exact: bool
) -> dict[str, float]:
    """Return the step of each testbed's values. ``exact``: powers of ten say nothing of counts."""
    everywhere = distinct([*chain.from_iterable(different.values())])
    printed = 1.0 if exact else printed_step(everywhere)
    common = lattice(everywhere, evidence([*chain.from_iterable(of_testbed.values())]), printed)
    steps = {}
    for testbed, samples in of_testbed.items():
        own = different[testbed]
        fine = 1.0 if exact else coarser(own, printed_step(own), printed)
        shared = common if all(upper - lower > common / 2 for lower, upper in pairwise(own)) else 0.0
        steps[testbed] = max(0.0 if exact else fine, shared, lattice(own, evidence(samples), fine))
    return steps


def _base(metric: str, metrics: Mapping[str, Declared]) -> str:
    """Return the metric of which this one is the part per work; empty if there is none."""
    base, _, work = metric.rpartition(PER)
    return base if base in metrics and metrics[metric].unit == f"{metrics[base].unit}/{work}" else ""


def _members(groups: Groups) -> Iterator[tuple[str, CellRuns]]:
    return ((testbed, group) for of_cell in groups.values() for testbed, group in of_cell.items())
