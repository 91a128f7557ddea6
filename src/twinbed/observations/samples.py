"""The values of every metric by cell and testbed, from the tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from twinbed.metrics.metric import Layer
from twinbed.model.run import Level, Status
from twinbed.model.tables import Tables
from twinbed.statistics.resolution import step

if TYPE_CHECKING:
    import pyarrow as pa

COUNTED = ("1", "bytes")
"""Units of what is counted one by one."""
_ABOUT = ("unit", "layer", "scale", "headline", "description")
Key = tuple[str, str, str]
"""(metric, host, direction)"""


@dataclass(frozen=True, slots=True)
class Declared:
    """What the tables say about a metric."""

    unit: str
    layer: str
    scale: str
    headline: bool
    description: str
    margin: float | None = None
    step: float = 0.0
    """What all its values in the study are whole multiples of, in the unit; 0 where nothing is. See statistics.resolution."""
    events: bool = False
    """Whether its values count events. A share that is 1 throughout is none, so that one value has to be another number."""

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
    values: dict[Key, list[float]] = field(default_factory=dict)
    runs: dict[Key, list[str]] = field(default_factory=dict)
    """The runs that ``values`` are of."""
    known: set[Key] = field(default_factory=set)
    """What it has rows of, values or null."""


@dataclass(slots=True)
class Samples:
    """``groups`` maps a cell's name to its testbeds' groups; ``cells`` to its levels, in the order of the plan."""

    cells: dict[str, dict[str, Level]]
    groups: dict[str, dict[str, CellRuns]]
    metrics: dict[str, Declared]
    testbeds: tuple[str, ...]

    def keys(self) -> Sequence[Key]:
        """Every metric, host and direction that has a value somewhere, by layer, headlines first."""
        keys = {key for groups in self.groups.values() for group in groups.values() for key in group.values}
        order = {name: position for position, name in enumerate(self.metrics)}

        def rank(key: Key) -> tuple[int, bool, int, str, str]:
            metric = self.metrics[key[0]]
            return metric.rank, not self.is_headline(key), order[key[0]], key[1], key[2]

        return sorted(keys, key=rank)

    def is_headline(self, key: Key) -> bool:
        """A headline metric has its value of the whole run as headline, or where there is none, those of each place."""
        metric, *where = key
        whole = (metric, "", "")
        return self.metrics[metric].headline and (not any(where) or not self._any(lambda group: whole in group.values))

    def measures(self, testbed: str, key: Key) -> bool:
        """Whether a testbed has this metric at this place at all, if it has anything: a container has no kernel to ask."""
        groups = [of_cell[testbed] for of_cell in self.groups.values() if testbed in of_cell]
        return any(key in group.known for group in groups) or not any(group.known for group in groups)

    def _any(self, holds: Callable[[CellRuns], bool]) -> bool:
        return any(holds(group) for of_cell in self.groups.values() for group in of_cell.values())


def texts(column: pa.ChunkedArray) -> Iterable[str]:
    """A column of few different texts, of which each is made once."""
    coded = column.combine_chunks().dictionary_encode()
    return map(coded.dictionary.to_pylist().__getitem__, coded.indices.to_numpy().tolist())


def cell_of(levels: Mapping[str, Level], sessions: str | None = None) -> tuple[str, dict[str, Level]]:
    """A cell's name and its levels, which are those of all factors but the testbed and the one that says the session."""
    rest = {factor: level for factor, level in levels.items() if factor not in ("testbed", sessions)}
    return json.dumps(rest, sort_keys=True), rest


class Named:
    """``cell_of``, once for levels that runs share, as those of a catalogue are. The levels must outlive it."""

    def __init__(self, sessions: str | None = None) -> None:
        self._sessions = sessions
        self._known: dict[int, tuple[str, dict[str, Level]]] = {}

    def __call__(self, levels: Mapping[str, Level]) -> tuple[str, dict[str, Level]]:
        known = self._known.get(id(levels))
        if known is None:
            known = self._known[id(levels)] = cell_of(levels, self._sessions)
        return known


def gather(tables: Tables, sessions: str | None = None) -> Samples:
    """Values of complete runs, planned and failed runs counted. ``sessions`` is a factor that makes no cells."""
    cells: dict[str, dict[str, Level]] = {}
    groups: dict[str, dict[str, CellRuns]] = {}
    of_run: dict[str, CellRuns] = {}
    name_of, order_of = Named(sessions), _Order(tables)

    def group(levels: Mapping[str, Level], testbed: str) -> CellRuns:
        name, rest = name_of(levels)
        cells.setdefault(name, rest)
        return groups.setdefault(name, {}).setdefault(testbed, CellRuns())

    only = tables.outline.reference if len(tables.outline.testbeds) == 1 else None
    records = tables.records
    testbeds = {record.id: str(record.settings["testbed"]["name"]) for record in records}
    # The file lists levels in the order that it means; runs come in random order.
    for planned in sorted(tables.planned, key=lambda run: order_of(run.levels)):
        testbed = planned.levels.get("testbed", testbeds.get(planned.id, only))
        if testbed is not None:
            group(planned.levels, str(testbed)).planned += 1
    for record in sorted(records, key=lambda record: (order_of(record.levels), record.replicate)):
        group_of_run = of_run[record.id] = group(record.levels, testbeds[record.id])
        (group_of_run.complete if record.status is Status.COMPLETE else group_of_run.failed).append(record.id)
    metrics = _measured(tables.table("metrics"), of_run)
    _resolve(metrics, groups)
    names = tables.outline.testbeds
    return Samples(cells, groups, metrics, tuple(name for name in names if any(name in of_cell for of_cell in groups.values())))


def _measured(table: pa.Table, of_run: Mapping[str, CellRuns]) -> dict[str, Declared]:
    """Lays the values of the table beside the runs, in the order of ``of_run``; what it says of each metric. Columns are worked
    on as a whole, since there may be millions of rows."""
    metrics: dict[str, Declared] = {}
    if not table.num_rows or not of_run:
        return metrics
    import pyarrow as pa
    import pyarrow.compute as pc

    runs = list(of_run)
    table = table.append_column("at", pc.index_in(table["run"], pa.array(runs, pa.string())))
    table = table.filter(pc.is_valid(table["at"]))
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
    numbers = {id(each): number for number, each in enumerate({id(each): each for each in of_run.values()}.values())}
    group_of_run = np.array([numbers[id(each)] for each in of_run.values()], dtype=np.int64)
    place = group_of_run[at] * len(keys) + of_row
    values = table["value"].to_numpy()[order]
    missing = pc.is_null(table["value"]).to_numpy()[order]
    together = np.argsort(place, kind="stable")
    begins = np.flatnonzero(np.diff(place[together], prepend=-1))
    # As they first come, so that what iterates over a group does so in the order of its rows.
    for begin, end in sorted(zip(begins, [*begins[1:], len(together)], strict=True), key=lambda span: together[span[0]]):
        rows = together[begin:end]
        group, key = of_run[runs[at[rows[0]]]], key_of[of_row[rows[0]]]
        group.known.add(key)
        rows = rows[~missing[rows]]
        if len(rows):
            group.values[key] = values[rows].tolist()
            group.runs[key] = [runs[each] for each in at[rows].tolist()]
    return metrics


def _resolve(metrics: dict[str, Declared], groups: Mapping[str, Mapping[str, CellRuns]]) -> None:
    """The step of each metric, found from all of its values. What is counted is not rounded, nor is what was divided by a
    count, such as packets per request."""
    values: dict[str, list[float]] = {}
    for group in (group for of_cell in groups.values() for group in of_cell.values()):
        for (metric, _, _), of_key in group.values.items():
            values.setdefault(metric, []).extend(of_key)
    for metric, of_metric in values.items():
        about = metrics[metric]
        resolution = step(of_metric)
        whole = about.unit in COUNTED and resolution >= 1
        exact = whole or "/" in about.unit.removesuffix("/s")
        events = whole and about.unit == "1" and any(value != 1 for value in of_metric)
        metrics[metric] = replace(about, step=0.0 if exact else resolution, events=events)


class _Order:
    """Where levels stand in the order that the study lists them in; once for levels that runs share."""

    def __init__(self, tables: Tables) -> None:
        factors = tables.outline.data.get("factors") or {}
        self._factors = factors if isinstance(factors, dict) else {}
        self._known: dict[int, tuple[int, ...]] = {}

    def __call__(self, levels: Mapping[str, Level]) -> tuple[int, ...]:
        known = self._known.get(id(levels))
        if known is None:
            known = tuple(_position(given, levels.get(name)) for name, given in self._factors.items())
            self._known[id(levels)] = known
        return known


def _position(given: object, level: Level) -> int:
    return given.index(level) if isinstance(given, list) and level in given else 0
