"""A response with variables that may explain it: one row an observation, such as a run; the input of `analyse` commands.

``of_tables`` takes a metric of a results folder: one row a complete run, with the levels of its factors, its testbed, block,
position, replicate and run as columns.  Rows without a value are left out, and counted by their reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import fmean
from typing import TYPE_CHECKING

from twinbed.metrics.metric import Layer, Scale
from twinbed.model.caution import Caution, Kind, counted
from twinbed.model.error import TwinbedError
from twinbed.model.near import instead
from twinbed.model.record import Record
from twinbed.model.result import Pairing
from twinbed.model.run import Level, Status, level_text
from twinbed.model.tables import Tables

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OF_A_RUN = ("testbed", "block", "position", "replicate", "run")
"""Columns that every frame of a results folder has in addition to its factors."""
MOST_NAMED = 6
"""The most combinations of levels that a caution names."""


@dataclass(frozen=True, slots=True)
class Column:
    """One explaining variable: row i has the level ``levels[codes[i]]``; levels that no row has are not listed."""

    name: str
    levels: tuple[Level, ...]
    """In the order of the study file, else sorted: numbers, sizes such as 1MiB, rates and durations by size, texts by
    alphabet."""
    codes: NDArray[np.intp]

    @property
    def numeric(self) -> bool:
        """Return whether every level is a number, so that the column may also be taken as numbers."""
        return all(isinstance(level, int | float) and not isinstance(level, bool) for level in self.levels)

    @property
    def ordered(self) -> bool:
        """Return whether its levels have an order: all are numbers, or all are sizes such as 500B and 1MiB."""
        return self.numeric or all(size is not None and size[0] == "bytes" for size in _sizes(self.levels))

    def numbers(self) -> NDArray[np.float64]:
        """Return each row's level as a number. Raises TwinbedError if one is not a number."""
        import numpy as np

        for level in self.levels:
            if not isinstance(level, int | float) or isinstance(level, bool):
                raise TwinbedError(
                    f"{self.name} has the level {level!r}, which is not a number",
                    advice="use it as a categorical column",
                )
        return np.array([float(level) for level in self.levels if level is not None])[self.codes]  # None was refused above


@dataclass(frozen=True, slots=True)
class Frame:
    """The response ``y`` (finite, in its unit) and the columns of the same length."""

    source: str
    response: str
    unit: str
    """Empty if unknown."""
    scale: Scale | None
    """None if unknown, as in files."""
    y: NDArray[np.float64]
    columns: Mapping[str, Column]
    factors: tuple[str, ...]
    """The default explaining variables: a study's factors that vary, or the requested columns of a file."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of rows left out."""
    cautions: tuple[Caution, ...] = ()
    """The cautions of the runs, each kind once for each testbed."""
    reference: str | None = None
    """A study's reference testbed; None for a file."""
    paired: bool = False
    """True if the study compares within blocks."""

    def __len__(self) -> int:
        return len(self.y)

    def column(self, name: str) -> Column:
        """Return a column. Raises TwinbedError for an unknown one."""
        try:
            return self.columns[name]
        except KeyError:
            raise TwinbedError(f"{self.source} has no column {name!r}", advice=instead(name, self.columns)) from None

    def only(self, name: str, levels: Sequence[str]) -> Frame:
        """Return the rows whose level of a column is one of ``levels`` (texts, which set the new order). Raises TwinbedError
        for an unknown level."""
        import numpy as np

        column = self.column(name)
        texts = [level_text(level) for level in column.levels]
        for level in levels:
            if level not in texts:
                raise TwinbedError(f"{name} has no level {level!r}", advice=instead(level, texts))
        order = [texts.index(level) for level in dict.fromkeys(levels)]
        codes = np.full(len(texts), -1, dtype=np.intp)
        codes[order] = np.arange(len(order))
        column = Column(name, tuple(column.levels[at] for at in order), codes[column.codes])
        kept = column.codes >= 0
        absent = int(np.sum(~kept))
        left_out = {**self.left_out, f"rows where {name} is not {' or '.join(levels)}": absent} if absent else self.left_out
        return replace(self, columns={**self.columns, name: column}).rows(kept, left_out)

    def rows(self, kept: NDArray[np.bool_], left_out: Mapping[str, int]) -> Frame:
        """Return the rows where ``kept`` is true; ``left_out`` counts all others."""
        columns = {name: column_of(name, column, kept) for name, column in self.columns.items()}
        return replace(self, y=self.y[kept], columns=columns, left_out=left_out)


def column_of(name: str, column: Column, kept: NDArray[np.bool_]) -> Column:
    """Return the kept rows of a column, without the levels that none of them has."""
    import numpy as np

    present, codes = np.unique(column.codes[kept], return_inverse=True)
    return Column(name, tuple(column.levels[at] for at in present), codes.astype(np.intp))


def encoded(name: str, values: Sequence[Level], order: Sequence[Level] = ()) -> Column:
    """Return a column of values; levels in ``order`` come first in that order, the others sorted after them."""
    import numpy as np

    seen: dict[tuple[bool, Level], int] = {}
    codes = np.fromiter((seen.setdefault(_key(value), len(seen)) for value in values), np.intp, len(values))
    return arranged(name, [level for _, level in seen], codes, order)


def arranged(name: str, levels: Sequence[Level], codes: NDArray[np.intp], order: Sequence[Level] = ()) -> Column:
    """Return a column from codes of distinct levels, arranged as by ``encoded``; every level occurs in some row."""
    import numpy as np

    wanted = [_key(level) for level in order]
    keys = [_key(level) for level in levels]
    first = sorted((at for at, key in enumerate(keys) if key in wanted), key=lambda at: wanted.index(keys[at]))
    ranks = [_rank(level, size) for level, size in zip(levels, _sizes(levels), strict=True)]
    rest = sorted((at for at, key in enumerate(keys) if key not in wanted), key=lambda at: ranks[at])
    arrangement = [*first, *rest]
    position = np.empty(len(levels), dtype=np.intp)
    position[arrangement] = np.arange(len(levels))
    return Column(name, tuple(levels[at] for at in arrangement), position[codes])


def _key(level: Level) -> tuple[bool, Level]:
    """Distinguish True from 1, which are equal in Python and two levels here."""
    return isinstance(level, bool), level


def _sizes(levels: Sequence[Level]) -> Sequence[tuple[str, float] | None]:
    from twinbed.model.units import magnitudes

    return magnitudes(levels)


def _rank(level: Level, size: tuple[str, float] | None) -> tuple[int, str, float, str]:
    if isinstance(level, int | float) and not isinstance(level, bool) and not (size and size[0]):
        return 0, "", level, ""
    unit, value = size or ("", 0)
    return 1 if unit else 2, unit, value, level_text(level)


def of_tables(
    tables: Tables, response: str | None, host: str | None = None, direction: str | None = None, *, partial: bool = False
) -> Frame:
    """Return a metric of a results folder as a frame. Raises TwinbedError if there is none. ``host`` and ``direction`` choose
    among several places that have it. None takes the whole run's value. If ``partial``, None takes the mean over the hosts that
    have one, if the run as a whole has none. Response None takes the first headline metric, in the order of layers."""
    import numpy as np

    name, host, direction, kind = _metric(tables, response, host, direction)
    values = _values(tables, name, host, direction)
    if partial:
        of_hosts = _of_hosts(tables, name)
        values |= {run: fmean(known) for run, known in of_hosts.items() if values.get(run) is None}
    left_out: dict[str, int] = {}
    rows = []
    for record in tables.records:
        value = values.get(record.id)
        if record.status is not Status.COMPLETE:
            left_out["failed runs"] = left_out.get("failed runs", 0) + 1
        elif value is None:
            left_out["runs without a value"] = left_out.get("runs without a value", 0) + 1
        else:
            rows.append((record, value))
    given = tables.outline.data.get("factors")
    orders: dict[str, Sequence[Level]] = {"testbed": tables.outline.testbeds}
    if isinstance(given, dict):
        orders |= {factor: levels for factor, levels in given.items() if isinstance(levels, list)}
    levels_of: dict[str, list[Level]] = {"testbed": [str(record.settings["testbed"]["name"]) for record, _ in rows]}
    names = dict.fromkeys([*orders, *(factor for record, _ in rows for factor in record.levels)])
    for factor in names:
        if factor != "testbed":
            levels_of[factor] = [record.levels.get(factor) for record, _ in rows]
    of_run = {attribute: [getattr(record, attribute) for record, _ in rows] for attribute in OF_A_RUN[1:4]}
    columns = {factor: encoded(factor, levels, orders.get(factor, ())) for factor, levels in levels_of.items()}
    columns |= {attribute: encoded(attribute, levels) for attribute, levels in of_run.items() if attribute not in columns}
    columns["run"] = encoded("run", [record.id for record, _ in rows])
    where = "".join(f"@{place}" for place in (host, direction) if place)
    return Frame(
        source=str(tables.shown),
        response=f"{name}{where}",
        unit=kind["unit"],
        scale=Scale(kind["scale"]),
        y=np.array([value for _, value in rows], dtype=np.float64),
        columns=columns,
        factors=tuple(factor for factor in names if len(columns[factor].levels) > 1),
        left_out=left_out,
        cautions=tuple(_cautions(tables, {record.id: str(record.settings["testbed"]["name"]) for record, _ in rows})),
        reference=tables.outline.reference,
        paired=tables.outline.data.get("comparison") == Pairing.PAIRED,
    )


def _cautions(tables: Tables, testbeds: Mapping[str, str]) -> Iterator[Caution]:
    """Yield the cautions of the folder, of failed runs, of testbeds measured apart in time, and of the runs here. ``testbeds``
    maps these runs to their testbeds."""
    from twinbed.observations.apart import in_succession

    yield from tables.cautions
    yield from _failed(tables.records)
    runs_of: dict[str, list[str]] = {}
    for run, testbed in testbeds.items():
        runs_of.setdefault(testbed, []).append(run)
    yield from in_succession(tables, runs_of)
    table = tables.table("cautions")
    if not table.num_rows:
        return
    runs: dict[tuple[str, Kind], dict[str, str]] = {}
    for run, kind, detail in zip(*(table[name].to_pylist() for name in ("run", "kind", "detail")), strict=True):
        if run in testbeds:
            caution = Caution.of(kind, detail)
            runs.setdefault((testbeds[run], caution.kind), {}).setdefault(run, caution.detail)
    for (testbed, kind), of in runs.items():
        count = sum(other == testbed for other in testbeds.values())
        yield Caution(kind, counted(len(of), count, of.values()), testbed)


def _failed(records: Sequence[Record]) -> Iterator[Caution]:
    """Yield a caution for each testbed: how many runs failed, and at which levels; failures are rarely at random."""
    cells: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        at = ", ".join(f"{name} {level_text(level)}" for name, level in record.levels.items() if name != "testbed")
        cells.setdefault(str(record.settings["testbed"]["name"]), {}).setdefault(at, []).append(record)
    for testbed, of in cells.items():
        failed = {at: [record for record in runs if record.status is not Status.COMPLETE] for at, runs in of.items()}
        named = [f"{len(failed[at])} of {len(of[at])}{f' at {at}' if at else ''}" for at in of if failed[at]]
        if named:
            more = f"; at {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
            first = next(record for runs in failed.values() for record in runs)
            detail = f"{', '.join(named[:MOST_NAMED])}{more}: {first.failed_phase}: {first.reason}"
            yield Caution(Kind.FAILED_RUNS, detail, testbed)


def headlines(tables: Tables, layer: Layer) -> tuple[str, ...]:
    """Return the names of a layer's headline metrics, in the order of the tables."""
    return tuple(dict.fromkeys(kind.metric for kind in _kinds(tables) if kind.headline and kind.layer == layer))


def headline_places(tables: Tables) -> Sequence[tuple[str, str, str]]:
    """Return (metric, host, direction) of every headline, in the order of layers; the whole run's value if there is one."""
    layers = [str(layer) for layer in Layer]
    kinds = sorted((kind for kind in _kinds(tables) if kind.headline), key=lambda kind: layers.index(kind.layer))
    whole = {kind.metric for kind in kinds if not kind.host and not kind.direction}
    places = [(kind.metric, kind.host, kind.direction) for kind in kinds]
    return [place for place in places if place[0] not in whole or not (place[1] or place[2])]


@dataclass(frozen=True, slots=True)
class _Kind:
    """One measured quantity: the columns that are the same in all its rows of the table of metrics."""

    metric: str
    host: str
    direction: str
    unit: str
    scale: str
    headline: bool
    layer: str


def _kinds(tables: Tables) -> list[_Kind]:
    """Return the measured quantities, each once."""
    table = tables.table("metrics")
    if not table.num_rows:
        return []
    names = [column.name for column in fields(_Kind)]
    # In one thread, so that the order is that of the rows.
    kinds = table.group_by(names, use_threads=False).aggregate([])
    return [_Kind(*values) for values in zip(*(kinds[column].to_pylist() for column in names), strict=True)]


def _metric(
    tables: Tables, response: str | None, host: str | None, direction: str | None
) -> tuple[str, str, str, Mapping[str, str]]:
    kinds = _kinds(tables)
    if not kinds:
        raise TwinbedError(f"{tables.shown} has no values yet", advice="`twinbed run` makes runs")
    if response is None:
        layers = [str(layer) for layer in Layer]
        headlines = sorted((kind for kind in kinds if kind.headline), key=lambda kind: layers.index(kind.layer))
        if not headlines:
            choices = ", ".join(sorted({kind.metric for kind in kinds}))
            raise TwinbedError(f"{tables.shown} has no headline metric", advice=f"choose one with --response NAME: {choices}")
        response = headlines[0].metric
    of_name = [kind for kind in kinds if kind.metric == response]
    if not of_name:
        known = sorted({kind.metric for kind in kinds})
        raise TwinbedError(f"{tables.shown} has no metric {response!r}", advice=instead(response, known))
    places = [
        kind for kind in of_name if (host is None or kind.host == host) and (direction is None or kind.direction == direction)
    ]
    whole = [kind for kind in places if not kind.host and not kind.direction]
    if whole and host is None and direction is None:
        places = whole
    if len(places) != 1:
        choices = "; ".join(" ".join(f"--{what} {json.dumps(at)}" for what, at in _where(kind) if at) for kind in of_name)
        wrong = "is measured at several places" if places else "is not measured there"
        raise TwinbedError(f"{response} {wrong}", advice=f"choose one: {choices}")
    kind = places[0]
    return response, kind.host, kind.direction, {"unit": kind.unit, "scale": kind.scale}


def _of_hosts(tables: Tables, metric: str) -> Mapping[str, list[float]]:
    """Return run -> the values of its hosts that have one."""
    import pyarrow.compute as pc

    table = tables.table("metrics")
    of_hosts = pc.and_(pc.not_equal(table["host"], ""), pc.equal(table["direction"], ""))
    table = table.filter(pc.and_(pc.equal(table["metric"], metric), pc.and_(of_hosts, pc.is_valid(table["value"]))))
    of_run: dict[str, list[float]] = {}
    for run, value in zip(table["run"].to_pylist(), table["value"].to_pylist(), strict=True):
        of_run.setdefault(run, []).append(value)
    return of_run


def _where(kind: _Kind) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("host", kind.host), ("direction", kind.direction)


def _values(tables: Tables, metric: str, host: str, direction: str) -> dict[str, float | None]:
    import pyarrow.compute as pc

    table = tables.table("metrics")
    for name, wanted in (("metric", metric), ("host", host), ("direction", direction)):
        table = table.filter(pc.equal(table[name], wanted))
    return dict(zip(table["run"].to_pylist(), table["value"].to_pylist(), strict=True))
