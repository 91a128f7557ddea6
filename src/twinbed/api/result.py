"""The result of an analysis in Python: its rows, its text and its figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from markupsafe import Markup

from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.near import instead
from twinbed.render import standing
from twinbed.render.collected import Figure
from twinbed.render.html import html
from twinbed.show.words import heading

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

    def __init__(self, analysis: AnyAnalysis, outcome: Reported, source: Tables, columns: Mapping[str, str]) -> None:
        self._analysis, self._found, self._source, self._columns = analysis, outcome, source, columns
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
        return data_frame(self.to_arrow(table))

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
            noted.append(f"! ... and {rest} more: cautions and left_out list them all")
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

        body = as_html([*parts(self._section)])
        count = len(self._notes)
        noted = html("<details><summary>{} to note</summary>{}</details>", count, notes(self._notes)) if count else ""
        return str(html("<div>{}{}<p>Tables: {}</p></div>", body, noted, self._counted))

    @property
    def _counted(self) -> str:
        return ", ".join(f"{name} ({len(table)} rows)" for name, table in self._tables.items())

    @cached_property
    def _tables(self) -> Mapping[str, pa.Table]:
        return {name: self._named(arrow(of)) for name, of in self._analysis.tables(self._found).items()}

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


def arrow(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Return a table with a column for each key of any row; without rows there are none."""
    import pyarrow as pa

    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: column([row.get(name) for row in rows]) for name in names})


def column(values: Sequence[object]) -> pa.Array:
    """Return values of one kind as they are; of several kinds (1, ``auto``) as text."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pa.array(values, pa.float64())
    if kinds and all(issubclass(kind, str) for kind in kinds):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    if len(kinds) < 2:
        try:
            return pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # inner values of several kinds
            pass
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: object) -> str:
    from twinbed.model.run import level_text

    return level_text(value) if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)


def data_frame(table: pa.Table) -> pd.DataFrame:
    """Return a data frame with pyarrow's types. Raises TwinbedError without pandas. Columns with missing values have pandas'
    nullable types, so that integers stay integers."""
    try:
        import pandas as pd
    except ImportError as error:
        raise TwinbedError(
            "pandas is not installed", advice="pip install pandas; to_arrow() gives the same table without it"
        ) from error
    import pyarrow as pa

    nullable = {
        pa.bool_(): pd.BooleanDtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.string(): pd.StringDtype(),
    }
    frame = table.to_pandas()
    for name in table.column_names:
        if table[name].null_count:
            frame[name] = table[name].to_pandas(types_mapper=nullable.get)
    return frame


VEGA_LITE = "application/vnd.vegalite.v5+json"


class Plot:
    """One figure. ``name`` and ``label`` describe it."""

    def __init__(self, figure: Figure) -> None:
        self._figure = figure
        self.name, self.label = figure.name, figure.label

    @cached_property
    def spec(self) -> Document | None:
        """Return its Vega-Lite specification with its data; None for a chain's picture or a ladder, which have none."""
        return None if self._figure.spec is None else standing.specification(self._figure)

    @cached_property
    def svg(self) -> str:
        """Return the drawn figure, as in the report."""
        return standing.svg(self._figure)

    def __repr__(self) -> str:
        return f"<figure {self.name}: {self.label}>"

    def _repr_html_(self) -> str:
        drawn = Markup(self.svg)  # Its texts were escaped as it was drawn.
        return str(html("<figure><figcaption>{}</figcaption>{}</figure>", heading(self.name), drawn))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        """Return the forms among which a notebook chooses."""
        vega = {} if self.spec is None else {VEGA_LITE: self.spec}
        return {**vega, "text/html": self._repr_html_(), "text/plain": repr(self)}


class Figures:
    """The figures of a result, in the order of the report."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self._plots = tuple(map(Plot, figures))

    def __len__(self) -> int:
        return len(self._plots)

    def __getitem__(self, at: int) -> Plot:
        return self._plots[at]

    def __iter__(self) -> Iterator[Plot]:
        return iter(self._plots)

    def __repr__(self) -> str:
        return "\n".join(f"[{number}] {plot.name}: {plot.label}" for number, plot in enumerate(self))

    def _repr_html_(self) -> str:
        return "".join(plot._repr_html_() for plot in self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        """Return a single figure's own bundle; several figures are drawn one below the other."""
        if len(self) == 1:
            return self[0]._repr_mimebundle_()
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}
