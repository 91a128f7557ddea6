"""What a manifest says of tables and documents of anybody's own making: which numbers are which metrics, and in what units.

Nothing is guessed: a number whose unit is not named is a plain number, and a unit that is not listed here needs a factor.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from twinbed.contracts.format import Diagnostic, FormatError, Measurement, RunKey
from twinbed.imports.text.row_keys import RowKeys
from twinbed.imports.text.wide import expanded
from twinbed.metrics.counted import COUNT
from twinbed.metrics.metric import Value
from twinbed.model.json import Document

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
"""Name -> (how many of the base unit one is, the base unit)."""
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
"""What tables write where there is nothing."""

Rows = Literal["each", "mean"]
Options = TypeVar("Options", bound=BaseModel)


class Factor(BaseModel):
    """A unit of one's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    factor: float = Field(gt=0, lt=1e18, description="how many of the base unit one is, such as 8e6 for MB/s in bit/s")
    unit: str = Field(min_length=1, max_length=40, description="the base unit, such as bit/s")


class ColumnMapping(RowKeys):
    """What tables and documents have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    units: dict[str, str | Factor] = Field(
        {}, description="the unit of a column or path; those that are not named: plain numbers"
    )
    words: dict[str, list[str]] = Field(
        {},
        description="the words of a column or path that holds words, in their order: a value is the place of its word, from 0",
    )
    facts: dict[str, str] = Field({}, description="columns or paths that say something of the circumstances, and its name")
    rows: Rows = Field("each", description="each: every row is a measurement; mean: the mean over the rows of a run is one")

    @model_validator(mode="after")
    def _known(self) -> ColumnMapping:
        for place, unit in self.units.items():
            if place not in self.places():
                raise ValueError(f"units names {place}, which is not read")
            if isinstance(unit, str) and unit not in UNITS:
                known = ", ".join(UNITS)
                raise ValueError(f"the unit {unit} of {place} is not known; known: {known}; or give a factor and a unit")
        for place, words in self.words.items():
            if place not in self.places():
                raise ValueError(f"words names {place}, which is not read")
            if len({word.strip() for word in words}) < max(len(words), 2) or any(is_missing(word) for word in words):
                raise ValueError(f"words of {place}: at least two, each once, and none that says that nothing is there")
            if place in self.units or self.rows == "mean":
                raise ValueError(f"{place} holds words, which have no unit and no mean")
        metrics = list(self.places().values())
        if len(set(metrics)) < len(metrics):
            raise ValueError(
                "two of them are the same metric: columns that are replicates, testbeds or levels of it are the option wide"
                " (docs/own-tables.md)"
            )
        if both := next((place for place in self.key_places() if place in self.places()), None):
            raise ValueError(f"{both} is a metric, and what a row is of")
        return self

    @abstractmethod
    def places(self) -> Mapping[str, str]:
        """Column or path -> metric."""

    def worded(self, place: str, text: str) -> float | None:
        """The place of a word among those of its column, from 0; None where it is none of them."""
        words = [word.strip() for word in self.words[place]]
        return float(words.index(text.strip())) if text.strip() in words else None

    def conversion(self, place: str) -> tuple[float, str]:
        unit = self.units.get(place, "1")
        return UNITS[unit] if isinstance(unit, str) else (unit.factor, unit.unit)


def checked(kind: type[Options], options: Document) -> Options:
    """Raises FormatError."""
    try:
        return kind.model_validate(dict(options))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'options'}: {each['msg']}" for each in error.errors())
        raise FormatError(f"the manifest's options: {problems}") from None


def row_keys_of(options: Document) -> tuple[str, ...]:
    """What options say that files themselves say: testbed, replicate, names of factors. Raises FormatError."""
    keys = checked(RowKeys, expanded(options))
    named = {"testbed": keys.testbed, "replicate": keys.replicate}
    return (*(name for name, place in named.items() if place), *keys.levels.values())


def is_missing(text: str) -> bool:
    return text.strip().lower() in _MISSING


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, or an item of a document."""

    numbers: Mapping[str, float | None]
    """The numbers by their places, as they stand in the file."""
    facts: Mapping[str, str | int | float | bool]
    diagnostics: Sequence[Diagnostic]
    run_key: RunKey | None

    @property
    def nobodys(self) -> bool:
        return self.run_key is not None and not self.run_key.known


def measurements(named: ColumnMapping, rows: Sequence[Row]) -> list[Measurement]:
    """Raises FormatError."""
    known = [row for row in rows if not row.nobodys]
    if not known:
        raise FormatError(f"no row says of which run it is: {rows[0].diagnostics[-1]}")
    if not any(number is not None for row in known for number in row.numbers.values()):
        raise FormatError(_why(known))
    if named.rows == "each":
        return [_mean_of(named, [row]) for row in rows]
    runs: dict[str, list[Row]] = {}
    for row in rows:
        runs.setdefault("" if row.run_key is None else row.run_key.key if row.run_key.known else "nobody's", []).append(row)
    return [_mean_of(named, members) for members in runs.values()]


def _mean_of(named: ColumnMapping, rows: Sequence[Row]) -> Measurement:
    """The measurement of rows of one run; rows of no run have only the reason."""
    diagnostics = [diagnostic for row in rows for diagnostic in row.diagnostics]
    if rows[0].nobodys:
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
    return f"no number that the manifest names{'' if first is None else f': {first}'}"
