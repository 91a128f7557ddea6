"""Wide tables, whose columns hold one metric for several replicates, testbeds or levels: each such cell is read as a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from twinbed.contracts.format import FormatError
from twinbed.imports.text.levels import RESERVED, is_plain
from twinbed.model.json import Document, Json

HEADING, CELL = "(heading)", "(cell)"
"""Columns of the long table: the heading that a cell stood below, and what stood there."""


class Wide(BaseModel):
    """The option ``wide``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[str, ...] = Field(min_length=2, description="the columns that hold the metric")
    are: str = Field(min_length=1, description="what their headings name: replicate, testbed, or a factor")
    metric: str = Field(min_length=1, description="the metric that they hold")
    unit: str | dict[str, JsonValue] = Field("1", description="the unit of its numbers")


def expanded(options: Document) -> dict[str, Json]:
    """Return the options of the long table. Raises FormatError where ``wide`` is no such option, or another says the same."""
    if "wide" not in options:
        return dict(options)
    try:
        wide = Wide.model_validate(options["wide"])
    except ValidationError as error:
        wrong = error.errors()[0]
        raise FormatError(f"the manifest's options: {'.'.join(map(str, ('wide', *wrong['loc'])))}: {wrong['msg']}") from None
    if len(set(wide.columns)) < len(wide.columns):
        raise FormatError("the manifest's options: wide: one of its columns is there twice")
    if wide.are not in ("replicate", "testbed") and (wide.are in RESERVED or not is_plain(wide.are)):
        raise FormatError(f"the manifest's options: wide: {wide.are} is no factor, nor replicate or testbed")
    long: dict[str, Json] = {**options, "wide": list(wide.columns)}
    if wide.are in ("replicate", "testbed"):
        if options.get(wide.are):
            raise FormatError(f"the manifest's options give {wide.are}, and so does wide")
        long[wide.are] = HEADING
    else:
        levels = options.get("levels", {})
        named = levels if isinstance(levels, Mapping) else {str(place): str(place) for place in levels or ()}  # type: ignore[union-attr]
        long["levels"] = {**named, HEADING: wide.are}
    for name, of_cell in (("columns", wide.metric), ("units", wide.unit)):
        others = options.get(name, {})
        long[name] = {**(others if isinstance(others, Mapping) else {}), CELL: of_cell}
    return long


def lines(row: Mapping[str, str], columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Yield the row once for each of its wide columns, with the heading and the cell; the row itself where there are none."""
    if not columns:
        yield dict(row)
    rest = {name: cell for name, cell in row.items() if name not in columns}
    for column in columns:
        yield {**rest, HEADING: column, **({CELL: row[column]} if column in row else {})}
