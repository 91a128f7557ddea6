"""Results in Python: the object that ``twinbed.open`` returns.

Tables are Arrow's (``pyarrow.Table``), with the testbed and the level of every factor in columns of their own, in base units,
null for missing values.  Method ``.to_pandas()`` gives a data frame if pandas is installed; ``polars.from_arrow`` gives one
too, and DuckDB reads tables by their variables' names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.api.result import Result
from twinbed.api.result import column as column_of_values
from twinbed.model.error import TwinbedError
from twinbed.model.near import instead
from twinbed.model.run import Status

if TYPE_CHECKING:
    import pyarrow as pa

    from twinbed.contracts.analysis import Reported
    from twinbed.contracts.plugins import AnyAnalysis
    from twinbed.model.caution import Caution
    from twinbed.results.store import Store


class Results:
    """The runs of a study in its present form.

    They come from a results folder of ``twinbed run``, ``twinbed import`` or ``twinbed merge``, an archive of one, or the
    address of a folder that ``twinbed publish`` wrote. Runs of other settings, which a folder may also hold, are left out.
    """

    def __init__(self, path: Path | str, on_progress: Callable[[int, int], None] | None = None) -> None:
        """Open ``path``. Raises ``twinbed.TwinbedError`` if it is no results folder. ``on_progress`` is called with runs read
        and runs to read, when artifacts have to be read: the first time, and after runs were added."""
        from twinbed.results.archive.unpack import folder_of
        from twinbed.results.bucket.address import address_of
        from twinbed.results.store import Store

        self._shown = address_of(path) or Path(path)
        self.path = folder_of(self._shown)
        self._on_progress = on_progress
        self._opened = Store.open(self.path, self._shown)

    @cached_property
    def _store(self) -> Store:
        from twinbed import registry
        from twinbed.results.extract import extract

        if self._opened.published:
            return self._opened.as_it_stands()
        return extract(
            self.path, registry.PLUGINS.read, registry.PLUGINS.accompanying, self._on_progress, self._shown
        ).as_it_stands()

    def __repr__(self) -> str:
        from twinbed.model.columns import Records

        made = self._store.records
        failed = sum(status is not Status.COMPLETE for status in Records.of(made).statuses.listed())
        of = ", ".join(f"{name} (reference)" if name == self.reference else name for name in self.testbeds)
        return f"<{self.name}: {len(made)} runs of {of}{f'; {failed} failed' if failed else ''}>"

    def _repr_html_(self) -> str:
        """Return a summary and the verdicts by the study's own settings."""
        from markupsafe import Markup

        from twinbed.render.html import html

        try:
            verdicts = Markup(self._compared._repr_html_())
        except TwinbedError as error:
            verdicts = html("<p>{}</p>", error.message)
        return str(html("<div><p><strong>{}</strong></p>{}</div>", repr(self)[1:-1], verdicts))

    @cached_property
    def _compared(self) -> Result:
        return self.compare()

    @property
    def name(self) -> str:
        """Return the names of the testbeds, in the order of the study."""
        return self._store.outline.name

    @property
    def testbeds(self) -> tuple[str, ...]:
        """Return the testbed that the others are compared with."""
        return self._store.outline.testbeds

    @property
    def reference(self) -> str | None:
        """Return the testbed that the others are compared with."""
        return self._store.outline.reference

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """Return the names of the varied factors, in the order of the study, without the testbed."""
        from twinbed.model.columns import Records

        present = dict.fromkeys(name for levels in Records.of(self._store.records).levels.distinct() for name in levels)
        names = dict.fromkeys([*(self._store.outline.data.get("factors") or ()), *present])
        return tuple(name for name in names if name in present and name != "testbed")

    def column_of(self, factor: str) -> str:
        """Return the column that has a factor's levels, the same in all tables. It is the factor's name, or ``factor:NAME`` if
        values have another column of that name, such as ``direction``."""
        return f"factor:{factor}" if factor in self._own_columns else factor

    @cached_property
    def _own_columns(self) -> frozenset[str]:
        tables = (name for name in ("runs", "metrics") if name in self.tables())
        return frozenset(column for name in tables for column in self._store.table(name).column_names)

    def cautions(self) -> tuple[Caution, ...]:
        """Return the cautions of the folder itself; those of runs are the table ``cautions``, those of verdicts come with
        ``compare``."""
        return self._store.cautions

    def tables(self) -> tuple[str, ...]:
        """Return the names of the existing tables, for ``table``."""
        return self._store.names()

    def table(self, name: str) -> pa.Table:
        """Return one table, with the columns ``testbed`` and the factors after ``run``. Raises TwinbedError if there is
        none."""
        if name not in self.tables():
            raise TwinbedError(f"{self._shown} has no table {name}", advice=instead(name, self.tables()))
        return self._with_levels(self._store.table(name))

    def runs(self) -> pa.Table:
        """Return a row a run: its levels, replicate, block, place in the order, status; the phase and reason of a failure;
        ``started_s`` since the epoch."""
        return self.table("runs").drop_columns(["levels", "key"])

    def metrics(self, *names: str) -> pa.Table:
        """Return a row a measured value. Raises TwinbedError for an unknown metric. Columns: run, levels, host, direction,
        metric, unit, layer, scale, headline, description, value; ``low`` and ``high`` of a total that was estimated from a
        sample of the hosts. ``names`` selects metrics."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self.table("metrics")
        known: list[str] = sorted(values["metric"].unique().to_pylist())
        if unknown := [name for name in names if name not in known]:
            raise TwinbedError(_no_metric(unknown[0], known), advice=f"metrics() lists all {len(known)}")
        return values.filter(pc.is_in(values["metric"], pa.array(names, pa.string()))) if names else values

    def flows(self) -> pa.Table:
        """Return a row a TCP connection of the captures, with tcptrace's statistics (docs/flows.md)."""
        return self.table("flows")

    def connections(self) -> pa.Table:
        """Return a row a connection of the captures, as in Zeek's conn.log (docs/connections.md)."""
        return self.table("connections")

    def compare(
        self,
        reference: str | None = None,
        *,
        by: str | None = None,
        margin: float | None = None,
        confidence: float | None = None,
        sessions: str | None = None,
        headlines: bool = False,
    ) -> Result:
        """Compare testbeds with the reference: a row a metric, cell and testbed, with means, ratio, intervals, verdict and
        reason.

        See docs/statistics.md. Factor ``by`` has levels that are compared in place of testbeds; ``reference`` is a testbed or
        such a level; ``margin`` is a share. As ``sessions`` give the factor that names a run's session, ``time``, or ``none``.
        Settings that are not given are the study's. Raises TwinbedError for an unknown testbed, factor or level.
        """
        from twinbed import registry

        analysis = registry.analysis("compare")
        asked = analysis.params(by=by, reference=reference, margin=margin, confidence=confidence, sessions=sessions)
        outcome = analysis.run(self._store, asked)
        if headlines:
            outcome = replace(
                outcome, comparisons=tuple(comparison for comparison in outcome.comparisons if comparison.headline)
            )
        return self._result(analysis, outcome, self._store)

    def analyse(self, name: str, reference: str | None = None, **settings: object) -> Result:
        """Return the result of ``twinbed NAME`` or ``twinbed analyse NAME``: ``anova``, ``explain``, ``tails`` ...
        (docs/analyse.md). ``settings`` are the command's: ``response="requests_per_second"``. Raises TwinbedError for an
        unknown analysis or setting, and if the data allow no result."""
        from pydantic import ValidationError

        from twinbed import registry

        try:
            store, analysis = self._store, registry.analysis(name)
        except KeyError:
            raise TwinbedError(f"there is no analysis {name!r}", advice=instead(name, registry.analysis_names())) from None
        if "reference" in analysis.params.model_fields:
            settings["reference"] = reference
        else:
            store = with_reference(store, reference)
        try:
            params = analysis.params(**settings)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise TwinbedError(
                f"{name}: {where}: {first['msg']}", advice=f"its settings are: {', '.join(analysis.params.model_fields)}"
            ) from error
        return self._result(analysis, analysis.run(store, params), store)

    def _result(self, analysis: AnyAnalysis, outcome: Reported, store: Store) -> Result:
        return Result(analysis, outcome, store, {f"factor:{factor}": self.column_of(factor) for factor in self.factors})

    def advise(
        self,
        *others: Results,
        reference: str | None = None,
        margin: float | None = None,
        error: float = 0.05,
        everything: bool = False,
    ) -> pa.Table:
        """Return a row a rule of thumb that these results and ``others`` show (docs/advise.md).

        A row has its sentence, the estimates and bounds of the cells within and beyond the margin, runs, cautions, and the
        command that shows more. The chance that any rule is wrong is ``error``. With ``everything`` rules cover every metric,
        not only the headlines. Raises TwinbedError if there is no run, or no such testbed.
        """
        import pyarrow as pa

        from twinbed.report.advice.analysis import advise
        from twinbed.report.advice.rows import rows
        from twinbed.report.advice.study import Settings

        stores = [with_reference(results._store, reference) for results in (self, *others)]
        return pa.Table.from_pylist(rows(advise(stores, Settings(margin, error, everything, reference))))

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
            table = table.add_column(at, column, column_of_values(levels))
        if "testbed" not in taken:
            names = [None if record is None else str(record.settings["testbed"]["name"]) for record in of_rows]
            table = table.add_column(at, "testbed", _strings(names))
        return table


def _no_metric(name: str, known: Collection[str]) -> str:
    from twinbed import registry
    from twinbed.model.near import did_you_mean, nearest

    near = nearest(name, known, {key: metric.also for key, (metric, _) in registry.every_metric().items()})
    return f"there is no metric {name!r}" + (f"; {did_you_mean(near)}" if near else "")


def with_reference(store: Store, reference: str | None) -> Store:
    """Return the same results compared with another testbed; for None with the study's own reference."""
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
