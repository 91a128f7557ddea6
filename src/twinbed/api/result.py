"""The result of an analysis in Python: its rows, its text and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from twinbed.api import rows
from twinbed.api.figures import Figures
from twinbed.model.error import TwinbedError
from twinbed.model.near import instead

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from twinbed.contracts.analysis import Reported
    from twinbed.contracts.plugins import AnyAnalysis
    from twinbed.model.caution import Caution
    from twinbed.model.tables import Tables
    from twinbed.show.section import Section

MOST_NOTES = 5
"""The most cautions in the text."""


class Result:
    """A result, which a notebook shows with its verdict first.

    It has all that its first table has: ``column_names``, ``to_pylist``, ``filter``, columns by their names. ``columns`` maps
    factors to their columns in the tables of the results.
    """

    def __init__(self, analysis: AnyAnalysis, found: Reported, source: Tables, columns: Mapping[str, str]) -> None:
        self._analysis, self._found, self._source, self._columns = analysis, found, source, columns
        self.name = analysis.name

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """Return the reasons to doubt it."""
        return tuple(self._found.cautions)

    @property
    def left_out(self) -> Mapping[str, int]:
        """Return reason -> number of runs that are not in it."""
        return self._found.left_out

    def tables(self) -> tuple[str, ...]:
        """Return the names of its tables, for ``to_arrow`` and ``to_pandas``."""
        return tuple(self._tables)

    def to_arrow(self, table: str | None = None) -> pa.Table:
        """Return the rows of a table, the first by default. Raises TwinbedError for an unknown name."""
        name = table if table is not None else next(iter(self._tables), "")
        if name not in self._tables:
            raise TwinbedError(f"{self.name} has no table {name!r}", advice=instead(name, self._tables))
        return self._tables[name]

    def to_pandas(self, table: str | None = None) -> pd.DataFrame:
        """Return the same as a data frame. Raises TwinbedError without pandas."""
        return rows.data_frame(self.to_arrow(table))

    def plot(self) -> Figures:
        """Return its figures, as in the report and on its own page. Raises TwinbedError if it has none."""
        from twinbed.render.collected import collected
        from twinbed.render.sections import body

        with collected() as drawn:
            body(self._section)
        if not drawn:
            raise TwinbedError(f"{self.name} has nothing to draw here", advice="to_pandas() and to_arrow() give its rows")
        return Figures(drawn)

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # asked for by notebooks and by copies, which take what is not there for an answer
            raise AttributeError(name)
        return getattr(self.to_arrow(), name)

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self.to_arrow()[name]

    def __len__(self) -> int:
        return len(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a stream of Arrow data, which DuckDB, polars and others read."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        from twinbed.render.parts import as_text
        from twinbed.render.sections import parts

        noted = [f"! {text}" for text in self._notes[:MOST_NOTES]]
        if (rest := len(self._notes) - MOST_NOTES) > 0:
            noted.append(f"! ... and {rest} more: cautions and left_out have all")
        return "\n".join(
            [
                f"{self.name} of {self._source.outline.name}",
                as_text([*parts(self._section)]),
                *noted,
                f"Tables: {self._counted}",
            ]
        )

    def _repr_html_(self) -> str:
        from twinbed.render.html import html, notes
        from twinbed.render.parts import as_html
        from twinbed.render.sections import parts

        said = as_html([*parts(self._section)])
        count = len(self._notes)
        noted = html("<details><summary>{} to note</summary>{}</details>", count, notes(self._notes)) if count else ""
        return str(html("<div>{}{}<p>Tables: {}</p></div>", said, noted, self._counted))

    @property
    def _counted(self) -> str:
        return ", ".join(f"{name} ({len(table)} rows)" for name, table in self._tables.items())

    @cached_property
    def _tables(self) -> Mapping[str, pa.Table]:
        return {name: self._named(rows.arrow(of)) for name, of in self._analysis.tables(self._found).items()}

    def _named(self, table: pa.Table) -> pa.Table:
        """Rename factors' columns as in all tables, unless the table has another column of that name."""
        taken = set(table.column_names)
        names = {name: column for name, column in self._columns.items() if column not in taken}
        return table.rename_columns([names.get(name, name) for name in table.column_names])

    @cached_property
    def _section(self) -> Section:
        return self._analysis.section(self._found)

    @cached_property
    def _notes(self) -> list[str]:
        from twinbed.show.words import caution_sentences, left_out

        return [*left_out(self.left_out), *caution_sentences(self.cautions)]
