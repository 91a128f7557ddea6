"""Run records as a table, and back: frequent questions have columns of their own, rare ones stay JSON until asked.

JSON columns: levels, settings, cautions, drawn, and about, which has the rest. Column raw: the object with the run's artifacts,
if they were published.

Lists and objects of a JSON text that are read when asked for: most belong to one run record among a million.
"""

from __future__ import annotations

import json
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, overload

from twinbed.model.caution import Caution
from twinbed.model.clients import ClientTimes
from twinbed.model.columns import ArrowColumn, Coded, Column, MadeColumn, PlannedRuns, Records
from twinbed.model.drawn import Drawn
from twinbed.model.error import TwinbedError
from twinbed.model.event import Happened
from twinbed.model.json import WRONG, Document, Json, document, documents, named, number, parsed, tuple_of, value_of, why
from twinbed.model.record import Artifact, Record, Settings, artifact, requirement, settings
from twinbed.model.run import Level, Status, level
from twinbed.model.tables import Planned
from twinbed.model.usage import ProgramUsage

if TYPE_CHECKING:
    import pyarrow as pa

FEW = ("levels", "settings", "cautions", "drawn", "status", "failed_phase", "reason", "twinbed", "lab", "cell", "machine")
"""Columns of few different texts: each text is read once, from dictionaries."""
READ = (*FEW, "run", "digest", "replicate", "block", "position", "started_s", "start_skew_s", "about")
"""Columns that records are made of."""
PLANNED_FEW = ("cell", "levels")
_LAZY = ("phases", "artifacts", "clients", "programs", "events", "plugins")
_NUMBERS = ("replicate", "block", "position")
T = TypeVar("T")


class Entry(NamedTuple):
    """A run of a catalogue: its record, the hash of its run.json, the key of its rows in tables, and the object with its
    artifacts."""

    record: Record
    digest: str
    key: str
    raw: str | None = None


def table_of(entries: Sequence[Entry]) -> pa.Table:
    """Return the catalogue of these runs."""
    import pyarrow as pa

    rows = [entry.record.to_json() for entry in entries]
    text, whole, real = pa.string(), pa.int64(), pa.float64()

    def of(kind: pa.DataType, *names: str) -> dict[str, pa.Array]:
        return {name: pa.array([row[name] for row in rows], kind) for name in names}

    def written(name: str, empty: Json) -> pa.Array:
        return pa.array([json.dumps(row.get(name, empty), ensure_ascii=False) for row in rows], text)

    lazy = [json.dumps({name: row[name] for name in _LAZY if name in row}, ensure_ascii=False) for row in rows]
    return pa.table(
        {
            "run": pa.array([entry.record.id for entry in entries], text),
            "digest": pa.array([entry.digest for entry in entries], text),
            "key": pa.array([entry.key for entry in entries], text),
            "raw": pa.array([entry.raw for entry in entries], text),
            **of(text, "cell", "status", "twinbed", "lab", "failed_phase", "reason"),
            **of(whole, *_NUMBERS),
            **of(real, "started_s", "start_skew_s"),
            **{name: written(name, {}) for name in ("levels", "settings", "drawn")},
            "cautions": written("cautions", []),
            "machine": pa.array([entry.record.machine for entry in entries], text),
            "about": pa.array(lazy, text),
        }
    )


def records_of(table: pa.Table) -> Records:
    """Return the records of a catalogue. Raises the errors of ``Record.from_json``. The first text of each kind is read as
    strictly as a run.json, and so is the first record."""
    lazy: Column[str] = _column(table, "about")
    columns: dict[str, Column[object]] = {
        "id": _column(table, "run"),
        **{name: _column(table, name) for name in (*_NUMBERS, "started_s", "start_skew_s")},
        **{name: _each_once(table, name, _plain) for name in ("cell", "failed_phase", "reason", "twinbed", "lab", "machine")},
        "status": _each_once(table, "status", Status),
        "levels": _each_once(table, "levels", _levels),
        "settings": _each_once(table, "settings", _settings),
        "cautions": _each_once(table, "cautions", _cautions),
        "drawn": _each_once(table, "drawn", _drawn),
        "phases": MadeColumn(lazy, partial(LazyMapping, read=_phases)),
        "artifacts": MadeColumn(lazy, partial(LazySequence, read=_artifacts)),
        "clients": MadeColumn(lazy, partial(LazySequence, read=_clients)),
        "programs": MadeColumn(lazy, partial(LazySequence, read=_programs)),
        "events": MadeColumn(lazy, partial(LazySequence, read=_events)),
        "plugins": MadeColumn(lazy, partial(LazyMapping, read=_plugins)),
    }
    records = Records(columns)
    for record in records[:1]:
        Record.from_json(record.to_json())
    return records


def planned_table(planned: Sequence[Planned]) -> pa.Table:
    """Return the planned runs of a study."""
    import pyarrow as pa

    return pa.table(
        {
            "run": pa.array([run.id for run in planned], pa.string()),
            "cell": pa.array([run.cell for run in planned], pa.string()),
            "levels": pa.array([json.dumps(run.levels, ensure_ascii=False) for run in planned], pa.string()),
            "replicate": pa.array([run.replicate for run in planned], pa.int64()),
            "block": pa.array([run.block for run in planned], pa.int64()),
            "position": pa.array([run.position for run in planned], pa.int64()),
        }
    )


def planned_of(table: pa.Table) -> PlannedRuns:
    columns: dict[str, Column[object]] = {
        "id": _column(table, "run"),
        "cell": _each_once(table, "cell", _plain),
        "levels": _each_once(table, "levels", _levels),
        **{name: _column(table, name) for name in _NUMBERS},
    }
    return PlannedRuns(columns)


def _column(table: pa.Table, name: str) -> ArrowColumn[T]:
    return ArrowColumn(table[name].combine_chunks())


def _each_once(table: pa.Table, name: str, read: Callable[[str], T]) -> Coded[T | None]:
    """Return a column of few different texts: each is read once, and shared by its rows."""
    coded = table[name].unify_dictionaries().combine_chunks()
    values: list[T | None] = [read(text) for text in coded.dictionary.to_pylist()]
    if coded.null_count:
        values.append(None)
    return Coded(coded.indices.fill_null(len(values) - 1).to_numpy(), values)


def _plain(text: str) -> str:
    return text


def _levels(text: str) -> Mapping[str, Level]:
    return named(level)(parsed(text))


def _settings(text: str) -> Settings:
    return settings(parsed(text))


def _cautions(text: str) -> tuple[Caution, ...]:
    return tuple(Caution.from_json(caution) for caution in documents(parsed(text)))


def _drawn(text: str) -> Mapping[str, Drawn]:
    return {name: Drawn.from_json(document(drawn)) for name, drawn in document(parsed(text)).items()}


def _phases(data: Document) -> Mapping[str, float]:
    return value_of(data, "phases", named(number))


def _artifacts(data: Document) -> Sequence[Artifact]:
    return value_of(data, "artifacts", tuple_of(artifact))


def _clients(data: Document) -> Sequence[ClientTimes]:
    return [ClientTimes.from_json(client) for client in documents(data.get("clients", []))]


def _events(data: Document) -> Sequence[Happened]:
    return [Happened.from_json(event) for event in documents(data.get("events", []))]


def _programs(data: Document) -> Sequence[ProgramUsage]:
    return [ProgramUsage.from_json(program) for program in documents(data.get("programs", []))]


def _plugins(about: Document) -> Mapping[str, str]:
    return named(requirement)(about.get("plugins", {}))


def _read(text: str, read: Callable[[Document], T]) -> T:
    try:
        return read(document(parsed(text)))
    except WRONG as error:
        raise TwinbedError(f"a run's record cannot be read: {why(error)}", advice="publish the results again") from error


class LazySequence(Sequence[T], Generic[T]):
    """A list that ``read`` makes of ``text``, again each time: a million of them would not fit if kept."""

    __slots__ = ("_read", "_text")

    def __init__(self, text: str, read: Callable[[Document], Sequence[T]]) -> None:
        self._text = text
        self._read = read

    def _all(self) -> Sequence[T]:
        return _read(self._text, self._read)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice[int | None, int | None, int | None]) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice[int | None, int | None, int | None]) -> T | Sequence[T]:
        return self._all()[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __deepcopy__(self, memo: object) -> list[T]:
        return list(self)


class LazyMapping(Mapping[str, T], Generic[T]):
    """The same for an object."""

    __slots__ = ("_read", "_text")

    def __init__(self, text: str, read: Callable[[Document], Mapping[str, T]]) -> None:
        self._text = text
        self._read = read

    def _all(self) -> Mapping[str, T]:
        return _read(self._text, self._read)

    def __getitem__(self, name: str) -> T:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def values(self) -> ValuesView[T]:
        return ValuesView(self._all())

    def items(self) -> ItemsView[str, T]:
        return ItemsView(self._all())

    def __deepcopy__(self, memo: object) -> dict[str, T]:
        return dict(self._all())
