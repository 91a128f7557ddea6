"""The options of a manifest for anybody's own tables and documents: which numbers are which metrics, and of which run a row is.

Nothing is guessed.  A number without a named unit is a plain number, and a unit that is not listed here needs a factor.  A row
without a testbed, or with a level that is not plain text, is of no run, and a diagnostic says so.  In a wide table, whose
columns hold one metric for several replicates, testbeds or levels, each such cell is read as a line.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator, model_validator

from twinbed.contracts.format import Diagnostic, FormatError, Measurement, RunKey
from twinbed.imports.text.figures import of_json
from twinbed.imports.text.levels import RESERVED, is_plain, number_or_text, replicate_of
from twinbed.metrics.counted import COUNT
from twinbed.metrics.metric import Value
from twinbed.model.json import Document, Json
from twinbed.model.run import Level

_NOBODY = RunKey(known=False)


class RowKeys(BaseModel):
    """Options that name the columns or paths."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    testbed: str = Field("", description="the column or path with the testbed of a row")
    levels: dict[str, str] = Field(
        {}, description="column or path -> factor; or a list of columns or paths that have the factors' names"
    )
    replicate: str = Field("", description="the column or path with the replicate of a row")

    @field_validator("levels", mode="before")
    @classmethod
    def _listed(cls, levels: object) -> object:
        if not isinstance(levels, list | tuple) or not all(isinstance(place, str) for place in levels):
            return levels
        if len(set(levels)) < len(levels):
            raise ValueError("has an entry twice")
        return {place: place for place in levels}

    @model_validator(mode="after")
    def _factors(self) -> RowKeys:
        for place, factor in self.levels.items():
            if factor in RESERVED:
                raise ValueError(
                    f"levels: {factor} has a meaning of its own and cannot be a factor; give it another name: {place}: name"
                )
            if not place or not factor or not is_plain(factor):
                raise ValueError(f"levels: {place!r}: {factor!r} cannot be a factor's name")
        if len(set(self.levels.values())) < len(self.levels):
            raise ValueError("levels: two entries have the same factor")
        places = self.key_places()
        if twice := next((place for place in places if places.count(place) > 1), None):
            raise ValueError(f"{twice} is named twice in testbed, replicate and levels")
        return self

    def key_places(self) -> list[str]:
        """Return the columns or paths."""
        return [place for place in (self.testbed, *self.levels, self.replicate) if place]

    def of(self, cells: Document, line: int | None, diagnostics: list[Diagnostic]) -> RunKey | None:
        """Return the run of a row, or None where no option asks for it. ``cells``: those that are there."""
        if not self.key_places():
            return None
        wrong = next((f"{place} {why}" for place in self.key_places() if (why := self._wrong(place, cells))), "")
        if wrong:
            diagnostics.append(Diagnostic(f"{wrong}, so the row belongs to no run", line))
            return _NOBODY
        replicate = cells.get(self.replicate)
        return RunKey(
            str(cells.get(self.testbed, "")),
            {factor: _level(cells[place]) for place, factor in self.levels.items()},
            None if replicate is None else replicate_of(str(replicate)),
        )

    def _wrong(self, place: str, cells: Document) -> str:
        """Return why a cell cannot be a testbed, level or replicate; empty if it can."""
        if place not in cells:
            return "is missing"
        value = cells[place]
        if isinstance(value, str) and not is_plain(value):
            return "is not plain text"
        if place == self.testbed:
            return "is empty" if value in (None, "") else "" if isinstance(value, str) else "is not text"
        if value is None or isinstance(value, str):
            return ""
        if isinstance(value, bool) and place != self.replicate:
            return ""
        return "is neither plain text nor a number" if of_json(value) is None else ""


def _level(value: Json) -> Level:
    if isinstance(value, str):
        return number_or_text(value) if value else None
    return value if isinstance(value, int | float) else None


HEADING, CELL = "(heading)", "(cell)"
"""Columns of the long table: the heading of a cell, and its content."""


class Wide(BaseModel):
    """The option ``wide``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[str, ...] = Field(min_length=2, description="the columns that hold the metric")
    are: str = Field(min_length=1, description="the meaning of their headings: replicate, testbed, or a factor")
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
        place = ".".join(map(str, ("wide", *wrong["loc"])))
        raise FormatError(f"the manifest's options: {place}: {_reason(wrong['msg'])}") from None
    if len(set(wide.columns)) < len(wide.columns):
        raise FormatError("the manifest's options: wide: has a column twice")
    if wide.are not in ("replicate", "testbed") and (wide.are in RESERVED or not is_plain(wide.are)):
        raise FormatError(f"the manifest's options: wide: are is {wide.are}; allowed: replicate, testbed or a factor's name")
    long: dict[str, Json] = {**options, "wide": list(wide.columns)}
    if wide.are in ("replicate", "testbed"):
        if options.get(wide.are):
            raise FormatError(f"the manifest's options give {wide.are} twice: in wide and as an option; keep one")
        long[wide.are] = HEADING
    else:
        levels = options.get("levels", {})
        named = levels if isinstance(levels, Mapping) else {str(place): str(place) for place in levels or ()}  # type: ignore[union-attr]
        long["levels"] = {**named, HEADING: wide.are}
    for name, of_cell in (("columns", wide.metric), ("units", wide.unit)):
        others = options.get(name, {})
        long[name] = {**(others if isinstance(others, Mapping) else {}), CELL: of_cell}
    return long


def long_rows(row: Mapping[str, str], columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Yield the row once for each of its wide columns, with the heading and the cell; the row itself where there are none."""
    if not columns:
        yield dict(row)
    rest = {name: cell for name, cell in row.items() if name not in columns}
    for column in columns:
        yield {**rest, HEADING: column, **({CELL: row[column]} if column in row else {})}


_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
UNITS: Mapping[str, tuple[float, str]] = {
    "1": (1.0, "1"),
    COUNT: (1.0, COUNT),
    "%": (0.01, "1"),
    "ppm": (1.0, "ppm"),
    **{name: (seconds, "s") for name, seconds in _TIMES.items()},
    **{f"{prefix}B": (float(size), "bytes") for prefix, size in {**_DECIMAL, **_BINARY}.items()},
    **{f"{prefix}B/s": (float(size), "bytes/s") for prefix, size in {**_DECIMAL, **_BINARY}.items()},
    **{f"{prefix}bit/s": (float(size), "bit/s") for prefix, size in {**_DECIMAL, **_BINARY}.items()},
    **{f"{prefix}rps": (float(size), "1/s") for prefix, size in _DECIMAL.items()},
    "bytes": (1.0, "bytes"),
    "bytes/s": (1.0, "bytes/s"),
    "1/s": (1.0, "1/s"),
    "1/min": (1 / 60, "1/s"),
}
"""Name -> (factor to the base unit, the base unit)."""
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
"""Texts that tables have for a missing number."""

Rows = Literal["each", "mean"]
Options = TypeVar("Options", bound=BaseModel)


class Factor(BaseModel):
    """A unit of one's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    factor: float = Field(gt=0, lt=1e18, description="factor to the base unit, such as 8e6 for MB/s in bit/s")
    unit: str = Field(min_length=1, max_length=40, description="the base unit, such as bit/s")


class ColumnMapping(RowKeys):
    """The options that tables and documents share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    units: dict[str, str | Factor] = Field({}, description="the unit of a column or path; without one its numbers are plain")
    words: dict[str, list[str]] = Field(
        {},
        description="the words of a column or path, in their order: a value is the place of its word, from 0",
    )
    facts: dict[str, str] = Field({}, description="column or path -> the name of a fact of the circumstances")
    rows: Rows = Field(
        "each", description="each: every row is a measurement; mean: the mean over the rows of a run is one measurement"
    )

    @model_validator(mode="after")
    def _known(self) -> ColumnMapping:
        for place, unit in self.units.items():
            if place not in self.places():
                raise ValueError(f"units names {place}, which is not read")
            if isinstance(unit, str) and unit not in UNITS:
                known = ", ".join(UNITS)
                raise ValueError(f"{place} has the unknown unit {unit}; known: {known}; or give a factor and a unit")
        for place, words in self.words.items():
            if place not in self.places():
                raise ValueError(f"words names {place}, which is not read")
            if len({word.strip() for word in words}) < max(len(words), 2) or any(is_missing(word) for word in words):
                raise ValueError(f"words of {place}: give at least two, each once, and none that means missing")
            if place in self.units or self.rows == "mean":
                raise ValueError(f"{place} holds words, so it can have no unit and no mean")
        metrics = list(self.places().values())
        if len(set(metrics)) < len(metrics):
            raise ValueError(
                "two entries have the same metric; if the columns are its replicates, testbeds or levels, use the option wide"
                " (docs/own-tables.md)"
            )
        if both := next((place for place in self.key_places() if place in self.places()), None):
            raise ValueError(f"{both} is both a metric and one of testbed, replicate and levels")
        return self

    @abstractmethod
    def places(self) -> Mapping[str, str]:
        """Return column or path -> metric."""

    def worded(self, place: str, text: str) -> float | None:
        """Return the place of a word among the column's words, from 0; None for another word."""
        words = [word.strip() for word in self.words[place]]
        return float(words.index(text.strip())) if text.strip() in words else None

    def conversion(self, place: str) -> tuple[float, str]:
        unit = self.units.get(place, "1")
        return UNITS[unit] if isinstance(unit, str) else (unit.factor, unit.unit)


def checked(kind: type[Options], options: Document) -> Options:
    """Return checked options. Raises FormatError."""
    try:
        return kind.model_validate(dict(options))
    except ValidationError as error:
        problems = "; ".join(": ".join((*_place(problem["loc"]), _reason(problem["msg"]))) for problem in error.errors())
        raise FormatError(f"the manifest's options: {problems}") from None


def _place(location: Sequence[int | str]) -> list[str]:
    return [".".join(map(str, location))] if location else []


def _reason(message: str) -> str:
    """Return pydantic's message without the name of our own exception."""
    return message.removeprefix("Value error, ")


def row_keys_of(options: Document) -> tuple[str, ...]:
    """Return what options read from files: testbed, replicate, names of factors. Raises FormatError."""
    keys = checked(RowKeys, expanded(options))
    named = {"testbed": keys.testbed, "replicate": keys.replicate}
    return (*(name for name, place in named.items() if place), *keys.levels.values())


def is_missing(text: str) -> bool:
    return text.strip().lower() in _MISSING


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, or an item of a document."""

    numbers: Mapping[str, float | None]
    """Numbers by their columns or paths, in the file's units."""
    facts: Mapping[str, str | int | float | bool]
    diagnostics: Sequence[Diagnostic]
    run_key: RunKey | None

    @property
    def of_no_run(self) -> bool:
        return self.run_key is not None and not self.run_key.known


def measurements(named: ColumnMapping, rows: Sequence[Row]) -> list[Measurement]:
    """Return a measurement for each row, or for each run. Raises FormatError."""
    known = [row for row in rows if not row.of_no_run]
    if not known:
        raise FormatError(f"has no row that names its run: {rows[0].diagnostics[-1]}")
    if not any(number is not None for row in known for number in row.numbers.values()):
        raise FormatError(_why(known))
    if named.rows == "each":
        return [_mean_of(named, [row]) for row in rows]
    runs: dict[str, list[Row]] = {}
    for row in rows:
        runs.setdefault("" if row.run_key is None else row.run_key.key if row.run_key.known else "no run", []).append(row)
    return [_mean_of(named, members) for members in runs.values()]


def _mean_of(named: ColumnMapping, rows: Sequence[Row]) -> Measurement:
    """Return the measurement of rows of one run; rows of no run have only the reason."""
    diagnostics = [diagnostic for row in rows for diagnostic in row.diagnostics]
    if rows[0].of_no_run:
        return Measurement(diagnostics=diagnostics, run_key=rows[0].run_key)
    means = {place: _mean([row.numbers.get(place) for row in rows]) for place in named.places()}
    shared = {name: fact for name, fact in rows[0].facts.items() if all(row.facts.get(name) == fact for row in rows)}
    return Measurement(list(_values(named, means)), {}, (), diagnostics, shared, run_key=rows[0].run_key)


def _values(named: ColumnMapping, row: Mapping[str, float | None]) -> Iterator[Value]:
    for place, metric in named.places().items():
        factor, unit = named.conversion(place)
        number = row.get(place)
        yield Value(metric, None if number is None else number * factor, unit)


def _mean(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) / len(known) if known else None


def _why(rows: Sequence[Row]) -> str:
    first = next((diagnostic for row in rows for diagnostic in row.diagnostics), None)
    return f"has no number in a column or path of the manifest{'' if first is None else f': {first}'}"
