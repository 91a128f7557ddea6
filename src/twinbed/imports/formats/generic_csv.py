"""Tables of anybody's own making: CSV whose columns a manifest names. Never recognised by content.

Options: ``columns`` (column -> metric), ``units``, ``facts``, ``testbed``, ``levels``, ``replicate``, ``rows`` (each, mean),
``wide`` (columns that are replicates, testbeds or levels), ``delimiter``, ``decimal``, ``header``, ``comment``: docs/formats.md
has examples.  Without a header columns are numbered from 1.  An empty cell, NA, nan, null or - is missing;
any other that is no number is a flaw with its line; means are over what there is.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pydantic import Field, model_validator

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.column_mapping import ColumnMapping, Row, checked, is_missing, measurements
from twinbed.imports.text.figures import real
from twinbed.imports.text.levels import number_or_text
from twinbed.imports.text.wide import CELL, HEADING, expanded
from twinbed.imports.text.wide import lines as lines_of
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document


class CsvOptions(ColumnMapping):
    """What a manifest says of a table."""

    columns: dict[str, str] = Field(min_length=1, description="column -> metric")
    wide: tuple[str, ...] = Field((), description="the columns each cell of which is a line, as ``expanded`` gives them")
    delimiter: str = Field(
        ",", min_length=1, max_length=1, description="between cells; a space is any number of spaces and tabs"
    )
    decimal: Literal[".", ","] = Field(".", description="between whole and fraction")
    header: bool = Field(True, description="whether the first line names the columns; else they are 1, 2, ...")
    comment: str = Field("", max_length=10, description="what lines that are left out begin with")

    @model_validator(mode="after")
    def _told_apart(self) -> CsvOptions:
        if self.delimiter in (self.decimal, '"', "\n", "\r"):
            raise ValueError(f"cells and fractions cannot both be told by {self.delimiter!r}")
        return self

    def places(self) -> Mapping[str, str]:
        return self.columns


class GenericCsv(Format):
    """The format."""

    name = "generic-csv"
    summary = "a table whose columns the manifest names"
    metrics: Sequence[Metric] = ()

    def recognises(self, head: bytes) -> bool:
        return False

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
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
            for row in lines_of(whole, asked.wide):
                diagnostics = (
                    [] if len(cells) == len(names) else [Diagnostic(f"{len(cells)} cells for {len(names)} columns", number)]
                )
                numbers = {column: _number(asked, column, row, number, diagnostics) for column in asked.columns}
                facts = {fact: row[column].strip() for column, fact in asked.facts.items() if column in row}
                of = asked.of(_levels_with_points(asked, row), number, diagnostics)
                rows.append(Row(numbers, facts, diagnostics, of))
        in_long = (*asked.columns, *asked.facts, *asked.key_places())
        named = [*(column for column in in_long if column not in (HEADING, CELL)), *asked.wide]
        if asked.header and (absent := [column for column in named if column not in header]):
            raise FormatError(f"no column {', '.join(absent)}; there are {', '.join(header)[:300]}")
        if twice := [column for column in named if header.count(column) > 1]:
            raise FormatError(f"column {twice[0]} is there {header.count(twice[0])} times")
        if not rows:
            raise FormatError("no row in it")
        return measurements(asked, rows)


def _sure(cells: Sequence[str], columns: int, may_be_cut: bool) -> Sequence[str]:
    """Cells that are surely their columns': none where there are too many; of too few all but one that may be cut."""
    if len(cells) > columns:
        return []
    return cells[:-1] if len(cells) < columns and may_be_cut else cells


def _lines(text: str, asked: CsvOptions) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of those that count. Raises FormatError."""
    lines = text.split("\n")
    if asked.delimiter == " ":
        lines = [" ".join(line.split()) for line in lines]
    reader = csv.reader(lines, delimiter=asked.delimiter)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise FormatError(f"is no CSV: {error}", reader.line_num) from None
        if not any(cell.strip() for cell in cells) or (asked.comment and cells[0].startswith(asked.comment)):
            continue
        yield reader.line_num, [cell.strip() for cell in cells]


def _levels_with_points(asked: CsvOptions, row: Mapping[str, str]) -> Mapping[str, str]:
    """The cells, with numbers that are levels written as ``RowKeys`` reads them."""
    if asked.decimal == ".":
        return row
    pointed = {column: row[column].replace(",", ".", 1) for column in asked.levels if column in row}
    return {**row, **{column: text for column, text in pointed.items() if not isinstance(number_or_text(text), str)}}


def _number(asked: CsvOptions, column: str, row: Mapping[str, str], line: int, diagnostics: list[Diagnostic]) -> float | None:
    text = row.get(column)
    if text is None:  # the row's number of cells is a flaw already
        return None
    if is_missing(text):
        return None
    if column in asked.words:
        place = asked.worded(column, text)
        if place is None:
            diagnostics.append(Diagnostic(f"{column} is none of its words: {text.strip()[:40]}", line))
        return place
    if asked.decimal == ",":
        text = "no number" if "." in text else text.replace(",", ".", 1)
    number = real(text)
    if number is None:
        diagnostics.append(Diagnostic(f"{column} is no number: {row[column][:40]}", line))
    return number


generic_csv = GenericCsv()
