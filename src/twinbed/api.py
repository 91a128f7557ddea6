"""Results in Python: what ``twinbed.open`` returns.

Tables are Arrow's (``pyarrow.Table``), with the testbed and the level of every factor in columns of their own, in base units,
null where something is missing.  ``.to_pandas()`` of any of them gives a data frame where pandas is installed; so does
``polars.from_arrow``, and DuckDB reads them by their variables' names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.model.error import TwinbedError

if TYPE_CHECKING:
    import pyarrow as pa

    from twinbed.model.caution import Caution
    from twinbed.model.run import Level
    from twinbed.results.store import Store


class Results:
    """A results folder of ``twinbed run``, ``twinbed import`` or ``twinbed merge``, or an archive of one: the runs of the study
    as it stands.
    Those of other settings, which a folder may hold as well, are left out."""

    def __init__(self, path: Path | str, on_progress: Callable[[int, int], None] | None = None) -> None:
        """Raises ``twinbed.TwinbedError`` where ``path`` is no results folder. ``on_progress`` is called with runs read and
        runs to read, when artifacts have to be: the first time, and after runs were added."""
        from twinbed.results.archive.unpack import folder_of
        from twinbed.results.store import Store

        self._shown = Path(path)
        self.path = folder_of(self._shown)
        self._on_progress = on_progress
        Store.open(self.path, self._shown)

    @cached_property
    def _store(self) -> Store:
        from twinbed import registry
        from twinbed.results.extract import extract

        return extract(
            self.path, registry.PLUGINS.read, registry.PLUGINS.accompanying, self._on_progress, self._shown
        ).as_it_stands()

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self._store.records)} runs of {', '.join(self.testbeds)}>"

    @property
    def name(self) -> str:
        """The study's."""
        return self._store.outline.name

    @property
    def testbeds(self) -> tuple[str, ...]:
        """Their names, in the order of the study."""
        return self._store.outline.testbeds

    @property
    def reference(self) -> str | None:
        """The testbed that the others are held against."""
        return self._store.outline.reference

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of what varies, in the order of the study, the testbed left out."""
        there = dict.fromkeys(name for record in self._store.records for name in record.levels)
        names = dict.fromkeys([*(self._store.outline.data.get("factors") or ()), *there])
        return tuple(name for name in names if name in there and name != "testbed")

    def column_of(self, factor: str) -> str:
        """The column that has a factor's levels, the same in all tables: its name, or ``factor:NAME`` where values have one of
        that name which is another thing, such as ``direction``."""
        return f"factor:{factor}" if factor in self._own_columns else factor

    @cached_property
    def _own_columns(self) -> frozenset[str]:
        tables = (name for name in ("runs", "metrics") if name in self.tables())
        return frozenset(column for name in tables for column in self._store.table(name).column_names)

    def cautions(self) -> tuple[Caution, ...]:
        """About the folder itself; those of runs are the table ``cautions``, those of verdicts come with ``compare``."""
        return self._store.cautions

    def tables(self) -> tuple[str, ...]:
        """Names of the tables that there are, for ``table``."""
        return self._store.names()

    def table(self, name: str) -> pa.Table:
        """One table, with the columns ``testbed`` and the factors after ``run``. Raises TwinbedError where there is none."""
        if name not in self.tables():
            raise TwinbedError(f"{self._shown} has no table {name}", advice=f"there are: {', '.join(self.tables())}")
        return self._with_levels(self._store.table(name))

    def runs(self) -> pa.Table:
        """A row a run: its levels, replicate, block, place in the order, status; the phase and reason of a failure;
        ``started_s`` since the epoch."""
        return self.table("runs").drop_columns(["levels", "key"])

    def metrics(self, *names: str) -> pa.Table:
        """A row a measured value: run, levels, host, direction, metric, unit, layer, scale, headline, description, value;
        ``low`` and ``high`` of a total that was estimated from a sample of the hosts.
        ``names``: those metrics alone. Raises TwinbedError for a metric that there is not."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = self.table("metrics")
        known = set(rows["metric"].unique().to_pylist())
        if unknown := [name for name in names if name not in known]:
            raise TwinbedError(_no_metric(unknown[0], known), advice=f"there are: {', '.join(sorted(known))}")
        return rows.filter(pc.is_in(rows["metric"], pa.array(names, pa.string()))) if names else rows

    def flows(self) -> pa.Table:
        """A row a TCP connection of the captures, with tcptrace's statistics (docs/flows.md)."""
        return self.table("flows")

    def connections(self) -> pa.Table:
        """A row a connection of the captures, as in Zeek's conn.log (docs/connections.md)."""
        return self.table("connections")

    def compare(
        self,
        reference: str | None = None,
        *,
        margin: float | None = None,
        confidence: float | None = None,
        sessions: str | None = None,
        headlines: bool = False,
    ) -> pa.Table:
        """A row a metric, cell and testbed against the reference: means, ratio, intervals, verdict, and why
        (docs/statistics.md). ``margin`` is a share; ``sessions`` the factor that says in which session a run was made, or
        ``time``; what is not given is the study's. Raises TwinbedError for a testbed or a factor that there is not."""
        import pyarrow as pa

        from twinbed import registry

        store = with_reference(self._store, reference)
        analysis = registry.analysis("compare")
        result = analysis.run(store, analysis.params(margin=margin, confidence=confidence, sessions=sessions))
        rows = analysis.tables(result)["comparisons"]
        table = pa.Table.from_pylist([row for row in rows if row["headline"] or not headlines])
        names = {f"factor:{factor}": self.column_of(factor) for factor in self.factors if factor not in table.column_names}
        return table.rename_columns([names.get(name, name) for name in table.column_names])

    def _with_levels(self, table: pa.Table) -> pa.Table:
        import pyarrow as pa

        if "run" not in table.column_names:
            return table
        records = {record.id: record for record in self._store.records}
        if self._store.other_settings:
            table = table.filter(pa.array([run in records for run in table["run"].to_pylist()], pa.bool_()))
        of_rows = [records.get(run) for run in table["run"].to_pylist()]
        at = table.column_names.index("run") + 1
        taken = set(table.column_names)
        for name in reversed(self.factors):
            column = f"factor:{name}" if name in taken else self.column_of(name)
            levels = [None if record is None else record.levels.get(name) for record in of_rows]
            table = table.add_column(at, column, _column(levels))
        if "testbed" not in taken:
            names = [None if record is None else str(record.settings["testbed"]["name"]) for record in of_rows]
            table = table.add_column(at, "testbed", _strings(names))
        return table


def _no_metric(name: str, known: Collection[str]) -> str:
    from twinbed import registry
    from twinbed.model.near import did_you_mean, nearest

    near = nearest(name, known, {each: metric.also for each, (metric, _) in registry.every_metric().items()})
    return f"there is no metric {name!r}" + (f"; {did_you_mean(near)}" if near else "")


def with_reference(store: Store, reference: str | None) -> Store:
    """The same results held against another testbed; against the study's own for None."""
    if reference is None:
        return store
    if reference not in store.outline.testbeds:
        raise TwinbedError(
            f"{store.shown} has no testbed {reference!r}", advice=f"it has: {', '.join(store.outline.testbeds) or 'none'}"
        )
    return replace(store, outline=replace(store.outline, reference=reference))


def _strings(values: Iterable[str | None]) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.string())


def _column(levels: Sequence[Level]) -> pa.Array:
    """Levels of one kind as they are; of several kinds (1, ``auto``) as text."""
    import pyarrow as pa

    from twinbed.model.run import level_text

    kinds = {type(level) for level in levels if level is not None}
    if kinds == {int, float}:
        return pa.array(levels, pa.float64())
    if len(kinds) < 2:
        return pa.array(levels)
    return _strings(None if level is None else level_text(level) for level in levels)
