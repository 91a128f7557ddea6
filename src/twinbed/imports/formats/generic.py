"""Formats ``generic-csv`` and ``generic-json``: anybody's own tables and documents. Never recognised by content.

A manifest names the columns (``columns``: column -> metric) or paths (``paths``: path -> metric) of numbers, and ``units``,
``facts``, ``testbed``, ``levels``, ``replicate``, ``rows`` (each, mean); docs/own-tables.md has examples.

CSV has the further options ``wide`` (columns that are replicates, testbeds or levels), ``delimiter``, ``decimal``, ``header``,
``comment``.  Without a header columns are numbered from 1.  An empty cell, NA, nan, null or - is missing.  Any other cell that
is no number is a diagnostic with its line; means are over the numbers that are there.

JSON has the further options ``each`` (the path of a list, every item of which is a row; paths are then within an item) and
``lines`` (a document a line, each a row).  A path is names joined by dots, ``[2]`` for the third item of a list, ``["a.b"]``
for a name with a dot in it.  A path that leads nowhere, or to a value that is no number, is a diagnostic; null is missing.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pydantic import Field, field_validator, model_validator

from twinbed.contracts.format import Diagnostic, Fact, Format, FormatError, Measurement, Source
from twinbed.imports.text.column_mapping import (
    CELL,
    HEADING,
    ColumnMapping,
    Row,
    checked,
    expanded,
    is_missing,
    long_rows,
    measurements,
)
from twinbed.imports.text.documents import document
from twinbed.imports.text.figures import of_json, real
from twinbed.imports.text.levels import number_or_text
from twinbed.model.json import Document, Json


class CsvOptions(ColumnMapping):
    """A manifest's options of a table."""

    columns: dict[str, str] = Field(min_length=1, description="column -> metric")
    wide: tuple[str, ...] = Field((), description="the columns whose cells are lines of their own, as ``expanded`` gives them")
    delimiter: str = Field(
        ",", min_length=1, max_length=1, description="between cells; a space is any number of spaces and tabs"
    )
    decimal: Literal[".", ","] = Field(".", description="between whole and fraction")
    header: bool = Field(True, description="whether the first line names the columns; else they are 1, 2, ...")
    comment: str = Field("", max_length=10, description="the beginning of lines that are left out")

    @model_validator(mode="after")
    def _delimiters_differ(self) -> CsvOptions:
        if self.delimiter in (self.decimal, '"', "\n", "\r"):
            raise ValueError(f"the delimiter {self.delimiter!r} is also the decimal sign, a quote or a line end")
        return self

    def places(self) -> Mapping[str, str]:
        return self.columns


def _never(head: bytes) -> bool:
    return False


def _read_csv(source: Source, options: Document) -> Sequence[Measurement]:
    asked = checked(CsvOptions, expanded(options))
    text = source.text()
    lines = _lines(text, asked)
    unended = 0 if text.endswith("\n") else text.count("\n") + 1
    header = next(lines, (0, list[str]()))[1] if asked.header else []
    rows: list[Row] = []
    names = header
    for number, cells in lines:
        names = names or [str(at) for at in range(1, len(cells) + 1)]
        whole = dict(zip(names, _sure(cells, len(names), number == unended), strict=False))
        for row in long_rows(whole, asked.wide):
            diagnostics = (
                [] if len(cells) == len(names) else [Diagnostic(f"has {len(cells)} cells for {len(names)} columns", number)]
            )
            numbers = {column: _csv_number(asked, column, row, number, diagnostics) for column in asked.columns}
            facts = {fact: row[column].strip() for column, fact in asked.facts.items() if column in row}
            of = asked.of(_levels_with_points(asked, row), number, diagnostics)
            rows.append(Row(numbers, facts, diagnostics, of))
    in_long = (*asked.columns, *asked.facts, *asked.key_places())
    named = [*(column for column in in_long if column not in (HEADING, CELL)), *asked.wide]
    if asked.header and (absent := [column for column in named if column not in header]):
        raise FormatError(f"has no column {', '.join(absent)}; its columns are {', '.join(header)[:300]}")
    if twice := [column for column in named if header.count(column) > 1]:
        raise FormatError(f"has the column {twice[0]} {header.count(twice[0])} times")
    if not rows:
        raise FormatError("has no row")
    return measurements(asked, rows)


def _sure(cells: Sequence[str], columns: int, may_be_cut: bool) -> Sequence[str]:
    """Return cells that surely belong to their columns: none of too many; all of too few, but not the last if it may be cut."""
    if len(cells) > columns:
        return []
    return cells[:-1] if len(cells) < columns and may_be_cut else cells


def _lines(text: str, asked: CsvOptions) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of the rows that count. Raises FormatError."""
    lines = text.split("\n")
    if asked.delimiter == " ":
        lines = [" ".join(line.split()) for line in lines]
    # A quoted cell keeps its line ends, so that it is not plain text.
    reader = csv.reader([f"{line}\n" for line in lines], delimiter=asked.delimiter)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise FormatError(f"is not CSV: {error}", reader.line_num) from None
        if not any(cell.strip() for cell in cells) or (asked.comment and cells[0].startswith(asked.comment)):
            continue
        yield reader.line_num, [cell.strip() for cell in cells]


def _levels_with_points(asked: CsvOptions, row: Mapping[str, str]) -> Mapping[str, str]:
    """Return the cells, with numbers that are levels written as ``RowKeys`` reads them."""
    if asked.decimal == ".":
        return row
    pointed = {column: row[column].replace(",", ".", 1) for column in asked.levels if column in row}
    return {**row, **{column: text for column, text in pointed.items() if not isinstance(number_or_text(text), str)}}


def _csv_number(
    asked: CsvOptions, column: str, row: Mapping[str, str], line: int, diagnostics: list[Diagnostic]
) -> float | None:
    text = row.get(column)
    if text is None:  # the row's number of cells is a diagnostic already
        return None
    if is_missing(text):
        return None
    if column in asked.words:
        place = asked.worded(column, text)
        if place is None:
            diagnostics.append(Diagnostic(f"{column} is not one of the declared words: {text.strip()[:40]}", line))
        return place
    if asked.decimal == ",":
        text = "no number" if "." in text else text.replace(",", ".", 1)
    number = real(text)
    if number is None:
        diagnostics.append(Diagnostic(f"{column} is not a number: {row[column][:40]}", line))
    return number


_STEP = re.compile(r'(?:^|\.)([^.\[\]"]+)|\[(\d{1,9})\]|\["([^"]+)"\]')


class _Nowhere:
    """The end of a path that leads to nothing, not even to null."""


_NOWHERE = _Nowhere()


def steps(path: str) -> list[str | int]:
    """Return a path's names and places in lists. Raises ValueError."""
    path_steps: list[str | int] = []
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None or (path[at] == "." and not at):
            raise ValueError(f"{path} is not a path; write names and places such as results.rates[0].mean")
        path_steps.append(int(step[2]) if step[2] else step[1] or step[3])
        at = step.end()
    return path_steps


class JsonOptions(ColumnMapping):
    """A manifest's options of a document."""

    paths: dict[str, str] = Field(min_length=1, description="path -> metric")
    each: str = Field("", description="the path of the list of rows")
    lines: bool = Field(False, description="whether every line is a document and a row")

    @field_validator("paths", "facts")
    @classmethod
    def _paths(cls, paths: dict[str, str]) -> dict[str, str]:
        for path in paths:
            steps(path)
        return paths

    @field_validator("each")
    @classmethod
    def _each(cls, path: str) -> str:
        steps(path)
        return path

    @model_validator(mode="after")
    def _own(self) -> JsonOptions:
        for path in self.key_places():
            steps(path)
        return self

    def places(self) -> Mapping[str, str]:
        return self.paths


def _read_json(source: Source, options: Document) -> Sequence[Measurement]:
    named = checked(JsonOptions, options)
    rows = []
    for line, item in _items(source.text(), named):
        diagnostics = [item] if isinstance(item, Diagnostic) else []
        row = None if isinstance(item, Diagnostic) else item
        numbers = {path: _json_number(named, row, path, line, diagnostics) for path in named.paths}
        facts = {fact: stated for path, fact in named.facts.items() if (stated := _fact(row, path)) is not None}
        key_cells = {path: cell for path in named.key_places() if not isinstance(cell := _at(row, path), _Nowhere)}
        rows.append(Row(numbers, facts, diagnostics, named.of(key_cells, line, diagnostics)))
    if not rows:
        raise FormatError("has no row")
    return measurements(named, rows)


def _items(text: str, named: JsonOptions) -> Iterator[tuple[int | None, Json | Diagnostic]]:
    """Yield (line or None, row); a diagnostic instead of a line that is no JSON. Raises FormatError."""
    if not named.lines:
        yield from ((None, item) for item in _listed(document(text), named))
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            whole = document(line)
        except FormatError as error:
            yield number, Diagnostic(error.reason, number)
            continue
        yield from ((number, item) for item in _listed(whole, named))


def _listed(whole: Json, named: JsonOptions) -> Sequence[Json]:
    """Return the rows of a document. Raises FormatError."""
    if not named.each:
        return [whole]
    rows = _at(whole, named.each)
    if not isinstance(rows, list):
        raise FormatError(f"has no list at {named.each}")
    return rows


def _at(item: Json, path: str) -> Json | _Nowhere:
    value: Json | _Nowhere = item
    for step in steps(path):
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else _NOWHERE
        else:
            value = value.get(step, _NOWHERE) if isinstance(value, dict) else _NOWHERE
    return value


def _json_number(named: JsonOptions, item: Json, path: str, line: int | None, diagnostics: list[Diagnostic]) -> float | None:
    if item is None:
        return None
    value = _at(item, path)
    if value is None or (isinstance(value, str) and is_missing(value)):
        return None
    if path in named.words and isinstance(value, str):
        place = named.worded(path, value)
        if place is None:
            diagnostics.append(Diagnostic(f"{path} does not lead to one of the declared words: {value.strip()[:40]}", line))
        return place
    number = None if path in named.words else real(value.strip()) if isinstance(value, str) else of_json(value)
    if number is None:
        reason = "leads nowhere" if value is _NOWHERE else f"does not lead to a number: {str(value)[:40]}"
        diagnostics.append(Diagnostic(f"{path} {reason}", line))
    return number


def _fact(item: Json, path: str) -> Fact | None:
    value = _at(item, path)
    if isinstance(value, str):
        return value.encode(errors="replace").decode()[:200]
    return value if isinstance(value, bool) else of_json(value)


FORMATS = (
    Format("generic-csv", "a table whose columns the manifest names", (), _never, _read_csv),
    Format("generic-json", "a JSON document with paths that the manifest names", (), _never, _read_json),
)
