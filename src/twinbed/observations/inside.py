"""Shared parts of analyses of single runs: complete runs by cell and testbed, rows of tables, and the requests of each run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from twinbed.model.record import Record
from twinbed.model.run import Level, Status
from twinbed.model.tables import Tables
from twinbed.observations.samples import cell_of
from twinbed.show.quantities import two_digits

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from twinbed.statistics.steady import Settling

Run = TypeVar("Run")
CLIENT = "client"
"""The beginning of the names of clients and of their links."""


@dataclass(frozen=True, slots=True)
class Cell(Generic[Run]):
    """Runs of one combination of levels."""

    levels: Mapping[str, Level]
    """The levels of all factors but the testbed."""
    runs: Mapping[str, Sequence[Run]]
    """By testbed, in the order of the study."""


def complete(tables: Tables) -> list[Record]:
    """Return the complete runs."""
    return [record for record in tables.records if record.status is Status.COMPLETE]


def by_cell(tables: Tables, runs: Iterable[Run], record: Callable[[Run], Record]) -> list[Cell[Run]]:
    """Return the runs by cell, in the order in which cells first come. ``record`` returns that of a run."""
    cells: dict[str, tuple[dict[str, Level], dict[str, list[Run]]]] = {}
    for run in runs:
        name, levels = cell_of(record(run).levels)
        of_cell = cells.setdefault(name, (levels, {}))[1]
        of_cell.setdefault(str(record(run).settings["testbed"]["name"]), []).append(run)
    order = tables.outline.testbeds
    return [Cell(levels, {name: of_cell[name] for name in order if name in of_cell}) for levels, of_cell in cells.values()]


def read(tables: Tables, name: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield these columns of each row of a table; nothing for a table without rows, which may have no columns."""
    table = tables.table(name)
    if table.num_rows:
        yield from zip(*(table[column].to_pylist() for column in columns), strict=True)


def in_whole_seconds(tables: Tables) -> bool:
    """Return whether the table ``requests`` has starts in whole seconds, as ab writes them; its durations are in milliseconds.
    A histogram, which has no starts, may be ab's."""
    import pyarrow as pa

    table = tables.table("requests")
    return "start_s" not in table.column_names or pa.types.is_integer(table["start_s"].type)


def matching(tables: Tables, name: str, column: str, pattern: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield these columns of the rows of a table whose ``column`` matches a pattern and whose last column has a value."""
    table = tables.table(name)
    if table.num_rows:
        import pyarrow.compute as pc

        kept = table.filter(pc.and_(pc.is_valid(table[columns[-1]]), pc.match_substring_regex(table[column], pattern)))
        yield from zip(*(kept[other].to_pylist() for other in columns), strict=True)


def of_clients(table: pa.Table) -> NDArray[np.bool_]:
    """Return which rows are of clients' links. A request that its server's link shows too counts once."""
    import numpy as np

    return np.array([link.startswith(CLIENT) for link in table["link"].to_pylist()], bool)


def numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column as an array, NaN for missing. pyarrow's own way takes a second, as it loads pandas if installed."""
    import numpy as np

    return np.array(column.to_pylist(), dtype=np.float64)


def by_run(table: pa.Table, kept: NDArray[np.bool_], order: NDArray[np.float64] | None = None) -> dict[str, NDArray[np.intp]]:
    """Return the ``kept`` rows of each run: in the table's order, or in that of the values of ``order``."""
    import numpy as np

    runs = table["run"].combine_chunks().dictionary_encode()
    indices = np.array(runs.indices.to_pylist(), dtype=np.int64)
    rows = np.flatnonzero(kept)
    rows = rows[np.lexsort((indices[rows],) if order is None else (order[rows], indices[rows]))]
    bounds = np.searchsorted(indices[rows], np.arange(len(runs.dictionary) + 1))
    return {run: rows[bounds[at] : bounds[at + 1]] for at, run in enumerate(runs.dictionary.to_pylist())}


def unsettled(settling: Settling) -> str | None:
    """Return the detail of the caution; None if nothing shows that runs do not settle."""
    if settling.settles is False:
        return f"the rate {_way(settling.over.mean)} in the second half of runs"
    if settling.astray is not None:
        others = f"by {two_digits(100 * settling.astray.others, '+')} % in the mean of the others"
        return f"the rate {_way(settling.astray.value)} in the second half of one run, {others}"
    return None


def _way(change: float) -> str:
    return f"{'rises' if change > 0 else 'falls'} by {two_digits(100 * abs(change))} %"
