"""The values of every metric by cell and testbed, from the tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from twinbed.metrics.metric import Layer
from twinbed.model.run import Level, Status
from twinbed.model.tables import Tables
from twinbed.statistics.resolution import step

COUNTED = ("1", "bytes")
"""Units of what is counted one by one."""
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


def cell_of(levels: Mapping[str, Level], sessions: str | None = None) -> tuple[str, dict[str, Level]]:
    """A cell's name and its levels, which are those of all factors but the testbed and the one that says the session."""
    rest = {factor: level for factor, level in levels.items() if factor not in ("testbed", sessions)}
    return json.dumps(rest, sort_keys=True), rest


def gather(tables: Tables, sessions: str | None = None) -> Samples:
    """Values of complete runs, planned and failed runs counted. ``sessions`` is a factor that makes no cells."""
    cells: dict[str, dict[str, Level]] = {}
    groups: dict[str, dict[str, CellRuns]] = {}
    of_run: dict[str, CellRuns] = {}

    def group(levels: Mapping[str, Level], testbed: str) -> CellRuns:
        name, rest = cell_of(levels, sessions)
        cells.setdefault(name, rest)
        return groups.setdefault(name, {}).setdefault(testbed, CellRuns())

    only = tables.outline.reference if len(tables.outline.testbeds) == 1 else None
    testbeds = {record.id: str(record.settings["testbed"]["name"]) for record in tables.records}
    # The file lists levels in the order that it means; runs come in random order.
    for planned in sorted(tables.planned, key=lambda run: _order(tables, run.levels)):
        testbed = planned.levels.get("testbed", testbeds.get(planned.id, only))
        if testbed is not None:
            group(planned.levels, str(testbed)).planned += 1
    for record in sorted(tables.records, key=lambda record: (_order(tables, record.levels), record.replicate)):
        group_of_run = of_run[record.id] = group(record.levels, testbeds[record.id])
        (group_of_run.complete if record.status is Status.COMPLETE else group_of_run.failed).append(record.id)
    metrics: dict[str, Declared] = {}
    table = tables.table("metrics")
    if table.num_rows:
        position = {run: index for index, run in enumerate(of_run)}
        rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
        at = {name: index for index, name in enumerate(table.column_names)}
        run, metric, value = at["run"], at["metric"], at["value"]
        for row in sorted((row for row in rows if row[run] in position), key=lambda row: position[row[run]]):
            if row[metric] not in metrics:
                about = {name: row[at[name]] for name in ("unit", "layer", "scale", "headline", "description")}
                metrics[row[metric]] = Declared(**about, margin=row[at["margin"]] if "margin" in at else None)
            key = (row[metric], row[at["host"]], row[at["direction"]])
            of_run[row[run]].known.add(key)
            if row[value] is not None:
                of_run[row[run]].values.setdefault(key, []).append(row[value])
                of_run[row[run]].runs.setdefault(key, []).append(row[run])
    _resolve(metrics, groups)
    names = tables.outline.testbeds
    return Samples(cells, groups, metrics, tuple(name for name in names if any(name in of_cell for of_cell in groups.values())))


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


def _order(tables: Tables, levels: Mapping[str, Level]) -> tuple[int, ...]:
    factors = tables.outline.data.get("factors") or {}
    return tuple(_position(given, levels.get(name)) for name, given in factors.items()) if isinstance(factors, dict) else ()


def _position(given: object, level: Level) -> int:
    return given.index(level) if isinstance(given, list) and level in given else 0
