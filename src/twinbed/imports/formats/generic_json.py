"""Documents of anybody's own making: JSON with paths to numbers that a manifest names. Never recognised by content.

Options: ``paths`` (path -> metric), ``units``, ``facts``, ``testbed``, ``levels``, ``replicate``, ``each`` (the path of a list,
every item of which is a row; paths are then within an item), ``lines`` (a document a line, each a row), ``rows`` (each, mean);
docs/formats.md, "Your own tables", has examples.  A path is names joined by dots, ``[2]`` for the third item of a list,
``["a.b"]`` for a name with a dot in it.  A path that leads nowhere, or to what is no number, is a flaw; null is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field, field_validator, model_validator

from twinbed.contracts.format import Diagnostic, FormatError, Measurement, Source
from twinbed.imports.text.column_mapping import ColumnMapping, Row, checked, is_missing, measurements
from twinbed.imports.text.documents import document
from twinbed.imports.text.figures import of_json, real
from twinbed.metrics.metric import Metric

_STEP = re.compile(r'(?:^|\.)([^.\[\]"]+)|\[(\d{1,9})\]|\["([^"]+)"\]')
_NOWHERE = object()


def steps(path: str) -> list[str | int]:
    """Names and places in lists. Raises ValueError."""
    found: list[str | int] = []
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None or (path[at] == "." and not at):
            raise ValueError(f"{path} is no path such as results.rates[0].mean")
        found.append(int(step[2]) if step[2] else step[1] or step[3])
        at = step.end()
    return found


class JsonOptions(ColumnMapping):
    """What a manifest says of a document."""

    paths: dict[str, str] = Field(min_length=1, description="path -> metric")
    each: str = Field("", description="the path of the list of rows")
    lines: bool = Field(False, description="whether every line is a document and a row")

    @field_validator("paths", "facts")
    @classmethod
    def _paths(cls, found: dict[str, str]) -> dict[str, str]:
        for path in found:
            steps(path)
        return found

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


class GenericJson:
    """The format."""

    name = "generic-json"
    summary = "a JSON document with paths that the manifest names"
    metrics: Sequence[Metric] = ()
    work = ""
    rate = ""

    def recognises(self, head: bytes) -> bool:
        return False

    def read(self, source: Source, options: Mapping[str, Any]) -> Sequence[Measurement]:
        said = checked(JsonOptions, options)
        rows = []
        for line, item in _items(source.text(), said):
            diagnostics = [item] if isinstance(item, Diagnostic) else []
            found = None if isinstance(item, Diagnostic) else item
            numbers = {path: _number(found, path, line, diagnostics) for path in said.paths}
            facts = {fact: each for path, fact in said.facts.items() if (each := _fact(found, path)) is not None}
            key_cells = {path: each for path in said.key_places() if (each := _at(found, path)) is not _NOWHERE}
            rows.append(Row(numbers, facts, diagnostics, said.of(key_cells, line, diagnostics)))
        if not rows:
            raise FormatError("no row in it")
        return measurements(said, rows)


def _items(text: str, said: JsonOptions) -> Iterator[tuple[int | None, Any]]:
    """(line or None, row); a Flaw instead of a line that is no JSON. Raises FormatError."""
    if not said.lines:
        yield from ((None, item) for item in _listed(document(text), said))
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            whole = document(line)
        except FormatError as error:
            yield number, Diagnostic(error.reason, number)
            continue
        yield from ((number, item) for item in _listed(whole, said))


def _listed(whole: Any, said: JsonOptions) -> Sequence[Any]:
    """Raises FormatError."""
    if not said.each:
        return [whole]
    found = _at(whole, said.each)
    if not isinstance(found, list):
        raise FormatError(f"{said.each} is no list in it")
    return found


def _at(item: Any, path: str) -> Any:
    for step in steps(path):
        if isinstance(step, int):
            item = item[step] if isinstance(item, list) and step < len(item) else _NOWHERE
        else:
            item = item.get(step, _NOWHERE) if isinstance(item, dict) else _NOWHERE
    return item


def _number(item: Any, path: str, line: int | None, diagnostics: list[Diagnostic]) -> float | None:
    if item is None:
        return None
    found = _at(item, path)
    if found is None or (isinstance(found, str) and is_missing(found)):
        return None
    number = real(found.strip()) if isinstance(found, str) else of_json(found)
    if number is None:
        said = "leads nowhere" if found is _NOWHERE else f"leads to no number: {str(found)[:40]}"
        diagnostics.append(Diagnostic(f"{path} {said}", line))
    return number


def _fact(item: Any, path: str) -> str | int | float | bool | None:
    found = _at(item, path)
    if isinstance(found, str):
        return found.encode(errors="replace").decode()[:200]
    return found if isinstance(found, bool) else of_json(found)


generic_json = GenericJson()
