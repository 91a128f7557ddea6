"""Runs by columns, for questions about all runs.

A run becomes an object only when asked for: a million records with their settings would be gigabytes of Python's objects, the
same columns are some hundred megabytes.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from operator import lt
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast, overload

from twinbed.model.record import Record, Settings
from twinbed.model.run import Level, Status
from twinbed.model.tables import TESTBED, Planned

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_AT_ONCE = 10_000
"""Objects that are made at once when iterating over all runs."""
T = TypeVar("T")
Made = TypeVar("Made")
Other = TypeVar("Other")
Run = TypeVar("Run", Record, Planned)


class Column(Generic[T]):
    """A value of each run, as a list that does not change."""

    def __init__(self, values: Sequence[T]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def listed(self, begin: int = 0, end: int | None = None) -> Sequence[T]:
        """Return the values of these rows."""
        return self._values[begin:end]

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> Column[T]:
        """Return the column of these rows, in this order."""
        return Column([self._values[row] for row in rows])

    def distinct(self) -> Sequence[T]:
        """Return every value once, by identity: equal values may occur more than once."""
        return list({id(value): value for value in self.listed()}.values())

    def coded(self) -> Coded[T]:
        """Return the same column, with the values of ``distinct`` by their numbers."""
        import numpy as np

        number: dict[int, int] = {}
        listed = self.listed()
        codes = np.fromiter((number.setdefault(id(value), len(number)) for value in listed), np.intp, len(listed))
        return Coded(codes, list({id(value): value for value in listed}.values()))

    def numbers(self) -> NDArray[np.float64]:
        import numpy as np

        return np.array(self.listed(), dtype=np.float64)

    def integers(self) -> NDArray[np.int64]:
        import numpy as np

        return np.array(self.listed(), dtype=np.int64)


class Coded(Column[T]):
    """A column of few different values: row -> which of ``values`` it has."""

    def __init__(self, codes: NDArray[np.intp], values: Sequence[T]) -> None:
        self.codes = codes
        self.values = values

    def __len__(self) -> int:
        return len(self.codes)

    def listed(self, begin: int = 0, end: int | None = None) -> Sequence[T]:
        return list(map(self.values.__getitem__, self.codes[begin:end].tolist()))

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> Coded[T]:
        return Coded(self.codes[rows], self.values)

    def distinct(self) -> Sequence[T]:
        import numpy as np

        return [self.values[code] for code in np.unique(self.codes)]

    def coded(self) -> Coded[T]:
        return self

    def rows(self) -> list[NDArray[np.intp]]:
        """Return the rows of each value, in their order."""
        import numpy as np

        ends = np.cumsum(np.bincount(self.codes, minlength=len(self.values)))
        return np.split(np.argsort(self.codes, kind="stable"), ends[:-1]) if len(ends) else []

    def with_other(self, other: Coded[Other]) -> Coded[tuple[T, Other]]:
        """Return both columns as one of the existing pairs, in the order in which they first come."""
        pairs, codes = first_come(self.codes * len(other.values) + other.codes)
        pair_codes = (divmod(pair, len(other.values)) for pair in pairs.tolist())
        return Coded(codes, [(self.values[index], other.values[other_index]) for index, other_index in pair_codes])

    def renamed(self, name: Callable[[T], Made]) -> Coded[Made]:
        """Return a column of what ``name`` gives for each value; results must be hashable, and equal ones become one."""
        import numpy as np

        names = [name(value) for value in self.values]
        number = {made: code for code, made in enumerate(dict.fromkeys(names))}
        return Coded(np.array([number[made] for made in names], dtype=np.intp)[self.codes], list(number))


class ArrowColumn(Column[T]):
    """A column of a table. Its values become Python's when they are asked for."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def listed(self, begin: int = 0, end: int | None = None) -> Sequence[T]:
        part = self._array[begin:end]
        if part.null_count or str(part.type) == "string":
            return cast(Sequence[T], part.to_pylist())
        return cast(Sequence[T], part.to_numpy().tolist())  # several times as fast, of numbers

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> ArrowColumn[T]:
        import numpy as np

        return ArrowColumn(self._array.take(np.asarray(rows, dtype=np.int64)))

    def numbers(self) -> NDArray[np.float64]:
        return cast("NDArray[np.float64]", self._array.to_numpy())

    def integers(self) -> NDArray[np.int64]:
        return cast("NDArray[np.int64]", self._array.to_numpy())


class MadeColumn(Column[T]):
    """Values made from the texts of another column, again each time."""

    def __init__(self, texts: Column[str], make: Callable[[str], T]) -> None:
        self._texts = texts
        self._make = make

    def __len__(self) -> int:
        return len(self._texts)

    def listed(self, begin: int = 0, end: int | None = None) -> Sequence[T]:
        return list(map(self._make, self._texts.listed(begin, end)))

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> MadeColumn[T]:
        return MadeColumn(self._texts.take(rows), self._make)


class Runs(Sequence[Run], Generic[Run]):
    """Runs of one class, whose fields are columns."""

    kind: type[Run]

    def __init__(self, columns: Mapping[str, Column[object]]) -> None:
        assert columns.keys() == self.kind.__dataclass_fields__.keys()
        self._columns = dict(columns)
        self._number = len(columns["id"])
        self._ids: Sequence[str] | None = None

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Self:
        """Return objects as columns; columns stay as they are."""
        if isinstance(runs, cls):
            return runs
        return cls({name: Column([getattr(run, name) for run in runs]) for name in cls.kind.__dataclass_fields__})

    def __len__(self) -> int:
        return self._number

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice[int | None, int | None, int | None]) -> Sequence[Run]: ...
    def __getitem__(self, index: int | slice[int | None, int | None, int | None]) -> Run | Sequence[Run]:
        rows = range(self._number)[index]
        return self.take(rows) if isinstance(rows, range) else self._made(rows, rows + 1)[0]

    def __iter__(self) -> Iterator[Run]:
        for begin in range(0, self._number, _AT_ONCE):
            yield from self._made(begin, begin + _AT_ONCE)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        return f"<{self._number} of {self.kind.__name__}>"

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> Self:
        """Return these runs, in this order."""
        return type(self)({name: column.take(rows) for name, column in self._columns.items()})

    def where(self, of_id: Callable[[str], bool]) -> Self:
        """Return the runs whose identity ``of_id`` accepts."""
        rows = [row for row, run in enumerate(self.ids) if of_id(run)]
        return self if len(rows) == self._number else self.take(rows)

    def in_order(self) -> Self:
        """Return the runs sorted by position, then by identity."""
        positions = cast(Sequence[int], self._columns["position"].listed())
        if all(map(lt, positions, islice(positions, 1, None))):
            return self
        keys = zip(positions, self.ids, range(self._number), strict=True)
        return self.take([row for *_, row in sorted(keys)])

    @property
    def ids(self) -> Sequence[str]:
        if self._ids is None:
            self._ids = cast(Sequence[str], self._columns["id"].listed())
        return self._ids

    @property
    def levels(self) -> Column[Mapping[str, Level]]:
        return cast(Column[Mapping[str, Level]], self._columns["levels"])

    @property
    def cells(self) -> Column[str]:
        return cast(Column[str], self._columns["cell"])

    @property
    def replicates(self) -> NDArray[np.int64]:
        return self._columns["replicate"].integers()

    @property
    def blocks(self) -> NDArray[np.int64]:
        return self._columns["block"].integers()

    @property
    def positions(self) -> NDArray[np.int64]:
        return self._columns["position"].integers()

    def _made(self, begin: int, end: int) -> list[Run]:
        """Make objects of a class with slots, column by column, without a call for each. Nothing made here can be part of a
        circle, so the search for circles would only cost time."""
        looked = gc.isenabled()
        gc.disable()
        try:
            made = list(map(object.__new__, repeat(self.kind, min(end, self._number) - begin)))
            for name, column in self._columns.items():
                deque(map(getattr(self.kind, name).__set__, made, column.listed(begin, end)), maxlen=0)
            return made
        finally:
            if looked:
                gc.enable()


class PlannedRuns(Runs[Planned]):
    """The runs that a study asks for."""

    kind = Planned

    def held(
        self, testbeds: Coded[str | None], change: Callable[[Mapping[str, Level], str | None], Mapping[str, Level]]
    ) -> PlannedRuns:
        """Return the same runs with other levels, which follow from theirs and from their testbeds."""
        pairs = self.levels.coded().with_other(testbeds)
        return PlannedRuns({**self._columns, "levels": Coded(pairs.codes, [change(*pair) for pair in pairs.values])})


class Records(Runs[Record]):
    """Finished runs."""

    kind = Record

    @property
    def settings(self) -> Column[Settings]:
        return cast(Column[Settings], self._columns["settings"])

    @property
    def statuses(self) -> Column[Status]:
        return cast(Column[Status], self._columns["status"])

    @property
    def machines(self) -> Column[str]:
        return cast(Column[str], self._columns["machine"])

    @property
    def started_s(self) -> NDArray[np.float64]:
        return self._columns["started_s"].numbers()

    @property
    def testbeds(self) -> Coded[str]:
        """Return the testbeds' names, whether or not they are a factor of the study."""
        return self.settings.coded().renamed(testbed_named)

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Return for each run whether it is complete."""
        import numpy as np

        coded = self.statuses.coded()
        return np.array([status is Status.COMPLETE for status in coded.values], dtype=np.bool_)[coded.codes]

    def held(self, change: Callable[[Mapping[str, Level], Settings], tuple[Mapping[str, Level], Settings]]) -> Records:
        """Return the same runs with other levels and settings, made once for each existing pair of those."""
        pairs = self.levels.coded().with_other(self.settings.coded())
        changed = [change(*pair) for pair in pairs.values]
        levels: Column[object] = Coded(pairs.codes, [own_levels for own_levels, _ in changed])
        settings: Column[object] = Coded(pairs.codes, [own_settings for _, own_settings in changed])
        return Records({**self._columns, "levels": levels, "settings": settings})


def first_come(codes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct codes in the order in which they first come, and the place of each row's code among them."""
    import numpy as np

    different, firsts, of_row = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return different[order], place[of_row]


def testbed_named(settings: Settings) -> str:
    return str(settings["testbed"]["name"])


def _testbed_level(levels: Mapping[str, Level]) -> str | None:
    level = levels[TESTBED]
    return None if level is None else str(level)


def planned_testbeds(planned: PlannedRuns, records: Records, other: str | None) -> Coded[str | None]:
    """Return the testbed of each planned run: from its levels, or else from its record; ``other`` if neither has it."""
    import numpy as np

    levels = planned.levels.coded()
    if all(TESTBED in of_run for of_run in levels.values):
        return levels.renamed(_testbed_level)
    made = dict(zip(records.ids, records.testbeds.listed(), strict=True))
    names = [
        _testbed_level(own_levels) if TESTBED in own_levels else made.get(run, other)
        for run, own_levels in zip(planned.ids, levels.listed(), strict=True)
    ]
    number = {name: code for code, name in enumerate(dict.fromkeys(names))}
    return Coded(np.fromiter(map(number.__getitem__, names), np.intp, len(names)), list(number))
