"""Documents of anybody's own making: JSON with paths to numbers that a manifest names. Never recognised by content.

Options: ``paths`` (path -> metric), ``units``, ``facts``, ``testbed``, ``levels``, ``replicate``, ``each`` (the path of a list,
every item of which is a row; paths are then within an item), ``lines`` (a document a line, each a row), ``rows`` (each, mean);
docs/own-tables.md has examples.  A path is names joined by dots, ``[2]`` for the third item of a list,
``["a.b"]`` for a name with a dot in it.  A path that leads nowhere, or to what is no number, is a flaw; null is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import Field, field_validator, model_validator

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.column_mapping import ColumnMapping, Row, checked, is_missing, measurements
from twinbed.imports.text.documents import document
from twinbed.imports.text.figures import of_json, real
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document, Json

_STEP = re.compile(r'(?:^|\.)([^.\[\]"]+)|\[(\d{1,9})\]|\["([^"]+)"\]')


class _Nowhere:
    """Where a path leads that does not lead to anything, not even to null."""


_NOWHERE = _Nowhere()


def steps(path: str) -> list[str | int]:
    """Names and places in lists. Raises ValueError."""
    path_steps: list[str | int] = []
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None or (path[at] == "." and not at):
            raise ValueError(f"{path} is no path such as results.rates[0].mean")
        path_steps.append(int(step[2]) if step[2] else step[1] or step[3])
        at = step.end()
    return path_steps


class JsonOptions(ColumnMapping):
    """What a manifest says of a document."""

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


class GenericJson(Format):
    """The format."""

    name = "generic-json"
    summary = "a JSON document with paths that the manifest names"
    metrics: Sequence[Metric] = ()

    def recognises(self, head: bytes) -> bool:
        return False

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        named = checked(JsonOptions, options)
        rows = []
        for line, item in _items(source.text(), named):
            diagnostics = [item] if isinstance(item, Diagnostic) else []
            row = None if isinstance(item, Diagnostic) else item
            numbers = {path: _number(named, row, path, line, diagnostics) for path in named.paths}
            facts = {fact: each for path, fact in named.facts.items() if (each := _fact(row, path)) is not None}
            key_cells = {path: cell for path in named.key_places() if not isinstance(cell := _at(row, path), _Nowhere)}
            rows.append(Row(numbers, facts, diagnostics, named.of(key_cells, line, diagnostics)))
        if not rows:
            raise FormatError("no row in it")
        return measurements(named, rows)


def _items(text: str, named: JsonOptions) -> Iterator[tuple[int | None, Json | Diagnostic]]:
    """(line or None, row); a diagnostic instead of a line that is no JSON. Raises FormatError."""
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
    """Raises FormatError."""
    if not named.each:
        return [whole]
    rows = _at(whole, named.each)
    if not isinstance(rows, list):
        raise FormatError(f"{named.each} is no list in it")
    return rows


def _at(item: Json, path: str) -> Json | _Nowhere:
    value: Json | _Nowhere = item
    for step in steps(path):
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else _NOWHERE
        else:
            value = value.get(step, _NOWHERE) if isinstance(value, dict) else _NOWHERE
    return value


def _number(named: JsonOptions, item: Json, path: str, line: int | None, diagnostics: list[Diagnostic]) -> float | None:
    if item is None:
        return None
    value = _at(item, path)
    if value is None or (isinstance(value, str) and is_missing(value)):
        return None
    if path in named.words and isinstance(value, str):
        place = named.worded(path, value)
        if place is None:
            diagnostics.append(Diagnostic(f"{path} leads to none of its words: {value.strip()[:40]}", line))
        return place
    number = None if path in named.words else real(value.strip()) if isinstance(value, str) else of_json(value)
    if number is None:
        reason = "leads nowhere" if value is _NOWHERE else f"leads to no number: {str(value)[:40]}"
        diagnostics.append(Diagnostic(f"{path} {reason}", line))
    return number


def _fact(item: Json, path: str) -> str | int | float | bool | None:
    value = _at(item, path)
    if isinstance(value, str):
        return value.encode(errors="replace").decode()[:200]
    return value if isinstance(value, bool) else of_json(value)


generic_json = GenericJson()
