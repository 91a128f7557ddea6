"""Numbers in the text of any program, found as a study file declares: by a regular expression, in CSV, in JSON, or one a line.

A regular expression is searched for in each line, by RE2 (as pyarrow has it), whose time grows with the text alone.  A number
keeps its place, so that a reader can look at the text that it came from.  A text that lacks a number raises ValueError, which
says how far the declaration matches.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from statistics import fmean, median
from typing import TYPE_CHECKING, Literal

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from twinbed.metrics.own import UNITS
from twinbed.model.amount import amount
from twinbed.model.json import Json, foreign
from twinbed.model.run import level_text
from twinbed.model.units import Switch

if TYPE_CHECKING:
    import pyarrow as pa

LEAST = 3
"""Characters that the beginning of a pattern must match to be worth a word."""
SHOWN = 80
"""Characters of a text in a message."""
MOST_IN_A_LINE = 1000
"""The most matches in one line."""
MOST_LINES = 1_000_000
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII)
_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t"}
_QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)", re.ASCII)
_TAKES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "first": lambda numbers: numbers[0],
    "last": lambda numbers: numbers[-1],
    "mean": fmean,
    "median": median,
    "min": min,
    "max": max,
    "sum": math.fsum,
}
COUNT = "count"
TAKE_ALLOWED = ", ".join([*_TAKES, COUNT, "a quantile such as p99, or the number of a match from 1"])


@dataclass(frozen=True, slots=True)
class Spot:
    """A text that was found; line and column count from 1, and are 0 where there is none."""

    text: str
    line: int = 0
    column: int = 0
    excerpt: str = ""
    more: int = 0
    """The count of further numbers."""
    number: float | None = None
    """The text as a number, where it is one already: JSON has binary ones."""

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        return f"{place}{_cut(self.excerpt or self.text)!r}" + (f" and {self.more:,} more" if self.more else "")


@dataclass(frozen=True, slots=True)
class Found:
    """A number in its base unit, the text that it was read from, and all numbers if it was made of several."""

    value: float
    spot: Spot
    numbers: Sequence[float]


class CsvCell(BaseModel):
    """A cell of a table. With names of columns, its head is the first line that has them all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: str | int = Field(examples=["rps"], description="column of the number: its name, or its number from 1")
    row: dict[str, str | int | float | bool] | int | None = Field(
        None, examples=[{"test": "GET"}], description="cells of the row by column, or its number from 1; null: every row"
    )
    separator: Literal["comma", "semicolon", "tab", "space"] = Field(
        "comma", description="what is between cells; space: any white space"
    )


class Reading(BaseModel):
    """A way to find numbers in a text: one of regex, csv, json, values."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    regex: str | None = Field(
        None, max_length=500, examples=["p99=([0-9.]+) ms"], description="pattern in a line, with the number in its one group"
    )
    after: str | None = Field(
        None, max_length=500, examples=["^GET"], description="regex and csv: only below the first line with this pattern"
    )
    csv: CsvCell | None = Field(None, description="cell of a table")
    json_: str | None = Field(
        None, alias="json", max_length=500, examples=["summary.latency.p99"], description="path in JSON (jmespath.org)"
    )
    values: Switch = Field(False, description="on: the text is a number a line, each of one request")
    take: str | int | None = Field(
        None, examples=["max"], description=f"what is made of several numbers: {TAKE_ALLOWED}; null: several are an error"
    )

    @field_validator("regex", "after")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            groups(pattern)
        return pattern

    @field_validator("regex")
    @classmethod
    def _has_a_group(cls, pattern: str | None) -> str | None:
        count = 1 if pattern is None else groups(pattern)
        if count != 1:
            fix = "put the number in brackets, as in p99=([0-9.]+) ms" if not count else "begin the others with (?:"
            raise ValueError(f"{pattern!r} has {amount(count, 'group')}, and one is read: {fix}")
        return pattern

    @field_validator("json_")
    @classmethod
    def _is_a_path(cls, path: str | None) -> str | None:
        try:
            if path is not None:
                jmespath.compile(path)
        except JMESPathError as error:
            raise ValueError(f"{path!r} is no path of jmespath.org: {str(error).splitlines()[0]}") from None
        return path

    @field_validator("take")
    @classmethod
    def _is_known(cls, take: str | int | None) -> str | int | None:
        known = take in (*_TAKES, COUNT, None) or (isinstance(take, str) and _QUANTILE.fullmatch(take))
        if not known and not (isinstance(take, int) and not isinstance(take, bool) and take >= 1):
            raise ValueError(f"{take!r} is not known; allowed: {TAKE_ALLOWED}")
        return take

    @model_validator(mode="after")
    def _one_way(self) -> Reading:
        if self.after and not (self.regex or self.csv):
            raise ValueError("after is for regex and csv")
        return self

    @property
    def ways(self) -> Sequence[str]:
        """Return the ways that are given."""
        given = {"regex": self.regex, "csv": self.csv, "json": self.json_, "values": self.values or None}
        return [name for name, way in given.items() if way is not None]

    def find(self, text: str, unit: str) -> Found:
        """Return the number in a text. Raises ValueError."""
        if self.values:
            return self._of_values(text, unit)
        spots, take = list(self._spots(text)), self.take
        if take == COUNT:
            return Found(float(len(spots)), spots[0] if spots else Spot("nothing matches"), ())
        if not spots:
            raise ValueError("holds no number")
        if isinstance(take, int):
            if take > len(spots):
                raise ValueError(f"has {amount(len(spots), 'match', 'matches')}, so none with number {take}")
            spots, take = spots[take - 1 : take], None
        if take is None and len(spots) > 1:
            raise ValueError(
                f"matches {len(spots)} times, first at {spots[0]}, then at {spots[1]}; let it match once, or give take"
            )
        numbers = [number_of(spot, unit) for spot in spots]
        spot = spots[-1] if take == "last" else spots[0]
        more = 0 if take in ("first", "last") else len(spots) - 1
        return Found(_taken(take or "first", numbers), replace(spot, more=more), numbers)

    def _of_values(self, text: str, unit: str) -> Found:
        """Read a number a line: millions of requests have no place each."""
        numbers: Sequence[float] | None = _column(text, unit)
        if numbers is None:
            lines = enumerate(text.split("\n"), start=1)
            numbers = [number_of(Spot(line, at, 1), unit) for at, line in lines if line.strip()]
        if not len(numbers):
            raise ValueError("holds no number")
        take = self.take or "mean"
        if isinstance(take, int) and take > len(numbers):
            raise ValueError(f"has {amount(len(numbers), 'line')}, so none with number {take}")
        value = numbers[take - 1] if isinstance(take, int) else len(numbers) if take == COUNT else _taken(take, numbers)
        first = next(Spot(line, at, 1) for at, line in enumerate(io.StringIO(text), start=1) if line.strip())
        return Found(float(value), replace(first, more=len(numbers) - 1), numbers)

    def _spots(self, text: str) -> Iterator[Spot]:
        if self.json_ is not None:
            return _in_json(text, self.json_)
        lines = text.split("\n")
        first = 0
        if self.after is not None:
            counts = _counts(lines, self.after)
            first = next((at + 1 for at, count in enumerate(counts) if count), 0)
            if not first:
                raise ValueError(f"no line has {self.after!r}; {_end(lines, self.after)}")
        if self.regex is not None:
            spots = _in_lines(lines[first:], self.regex, first)
            return spots if self.take != COUNT or any(_counts(lines[first:], self.regex)) else iter(())
        return _in_csv(lines[first:], self.csv, first) if self.csv is not None else iter(())


def _column(text: str, unit: str) -> Sequence[float] | None:
    """Return the plain numbers of a text in base units; None if any line is something else."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv as table

    if unit not in UNITS or not text.strip():
        return None
    column = table.ReadOptions(column_names=["value"])
    plain, numbers_only = (
        table.ParseOptions(quote_char=False),
        table.ConvertOptions(column_types={"value": pa.float64()}, null_values=[]),
    )
    try:
        read = table.read_csv(pa.BufferReader(text.encode()), column, plain, numbers_only)
    except pa.ArrowInvalid:
        return None
    _, times, over = UNITS[unit]
    numbers: Sequence[float] = read["value"].to_numpy() * times / over
    return numbers if np.isfinite(numbers).all() else None


def _taken(take: str, numbers: Sequence[float]) -> float:
    if take in _TAKES:
        return float(_TAKES[take](numbers))
    import numpy as np

    return float(np.percentile(np.asarray(numbers), float(take[1:])))


def number_of(spot: Spot, unit: str) -> float:
    """Return the number of a text in its base unit. A unit that the text has itself counts. Raises ValueError."""
    text = spot.text.strip()
    match = _THOUSANDS.match(text) or _NUMBER.match(text)
    own = text[match.end() :].strip() if match else ""
    base, times, over = UNITS.get(own or unit, (own or unit, 1.0, 1.0))
    if match is None or (own and (own not in UNITS or base != UNITS.get(unit, (unit,))[0])):
        raise ValueError(f"{spot} is no number{f' of {unit}' if own else ''}")
    digits = match[0].replace(",", "")
    if spot.number is not None:
        number = spot.number * times / over
    elif times == 1 and "e" not in digits.lower():
        number = float(f"{digits}e-{len(f'{over:.0f}') - 1}")  # exact, so that 0.12 ms is 0.00012 s
    else:
        number = float(Decimal(digits) * Decimal(times) / Decimal(over))
    if not math.isfinite(number):
        raise ValueError(f"{spot} is no finite number")
    return number


def groups(pattern: str) -> int:
    """Return how many groups a pattern has. Raises ValueError for one that Python or RE2 does not know."""
    try:
        count = re.compile(pattern).groups
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{pattern!r} is no pattern: {error}") from None
    _counts([""], pattern)
    return count


def _array(lines: Sequence[str]) -> pa.Array:
    import pyarrow as pa

    return pa.array(lines, pa.large_string())


def _counts(lines: Sequence[str], pattern: str) -> Sequence[int]:
    """Return how often each line has the pattern. Raises ValueError for a pattern that RE2 does not know."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        counts: Sequence[int] = pc.count_substring_regex(_array(lines), pattern).to_pylist()
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        raise ValueError(
            f"{pattern!r} is no pattern of RE2, which has neither look-around nor back-references: {reason}"
        ) from None
    return counts


def _parts(lines: Sequence[str], pattern: str) -> list[tuple[str, str, str]]:
    """Return of lines that have the pattern: what is before the match, in its group (all of it without one), and after it."""
    import pyarrow.compute as pc

    inner = "2" if groups(pattern) == 0 else "3"
    whole, array = f"^(.*?)({pattern})(.*)$", _array(lines)
    after = "3" if inner == "2" else "4"
    columns = (
        pc.replace_substring_regex(array, pattern=whole, replacement=f"\\{at}").to_pylist() for at in ("1", inner, after)
    )
    return list(zip(*columns, strict=True))


def matcher(pattern: str) -> Callable[[bytes], bool]:
    """Return whether any line of an output has the pattern."""
    return lambda output: any(_counts(lines_of(output), pattern))


def matched(lines: Sequence[str], pattern: str) -> list[str]:
    """Return the match's first group, or all of it without one, of each line that has the pattern."""
    having = [line for line, count in zip(lines, _counts(lines, pattern), strict=True) if count]
    return [group for _, group, _ in _parts(having, pattern)]


def lines_of(content: bytes) -> list[str]:
    return decoded(content).split("\n")


def decoded(content: bytes) -> str:
    """Return a text with line ends alike; a line that overwrites another (a progress bar) is a line."""
    return content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")


def _in_lines(lines: Sequence[str], pattern: str, first: int) -> Iterator[Spot]:
    counts = _counts(lines, pattern)
    places = [at for at, count in enumerate(counts) if count]
    if not places:
        raise ValueError(f"{pattern!r} matches nowhere; {_end(lines, pattern, first)}")
    if len(places) > MOST_LINES:
        raise ValueError(f"{pattern!r} matches in {len(places):,} lines; at most {MOST_LINES:,} are read: use values: on")
    for at, (before, text, rest) in zip(places, _parts([lines[at] for at in places], pattern), strict=True):
        if counts[at] > MOST_IN_A_LINE:
            raise ValueError(f"line {first + at + 1} has {pattern!r} {counts[at]:,} times; at most {MOST_IN_A_LINE:,} are read")
        yield Spot(text, first + at + 1, len(before) + 1, lines[at].strip())
        for _ in range(counts[at] - 1):
            _, text, rest = _parts([rest], pattern)[0]
            yield Spot(text, first + at + 1, len(lines[at]) - len(rest) + 1, lines[at].strip())


def _end(lines: Sequence[str], pattern: str, first: int = 0) -> str:
    """Say how far a pattern matches: where the match of its longest beginning ended, and what is there instead."""
    some = lines[:10_000]
    for length in range(len(pattern) - 1, 0, -1):
        beginning = pattern[:length]
        try:
            at = (
                next((at for at, count in enumerate(_counts(some, beginning)) if count), None)
                if groups(beginning) < 2
                else None
            )
        except ValueError:
            continue
        if at is not None and _matched(parts := _parts([some[at]], beginning)[0], some[at]) >= LEAST:
            rest = parts[2]
            column = len(some[at]) - len(rest) + 1
            return f"its beginning {beginning!r} ends at line {first + at + 1}, column {column}, before {_cut(rest)!r}"
    filled = [line for line in lines if line.strip()]
    return f"not even its beginning does: {amount(len(filled), 'line')}{f', the last {_cut(filled[-1])!r}' if filled else ''}"


def _matched(parts: tuple[str, str, str], line: str) -> int:
    return len(line) - len(parts[0]) - len(parts[2])


def _in_csv(lines: Sequence[str], cell: CsvCell, first: int) -> Iterator[Spot]:
    wanted = {} if not isinstance(cell.row, Mapping) else {name: level_text(value) for name, value in cell.row.items()}
    names = [wanted_name for wanted_name in (cell.column, *wanted) if isinstance(wanted_name, str)]
    head: list[str] | None = None if names else []
    place = cell.column - 1 if isinstance(cell.column, int) else 0
    rows, has_row = 0, False
    for line, cells in _rows(lines, cell.separator):
        if head is None:
            if set(names) <= set(cells):
                head, place = cells, cells.index(cell.column) if isinstance(cell.column, str) else place
            continue
        if place >= len(cells):
            continue
        rows += 1
        own = {name: cells[head.index(name)] for name in wanted if head.index(name) < len(cells)}
        if cell.row in (None, rows) or (wanted and all(_alike(own.get(name, ""), value) for name, value in wanted.items())):
            has_row = True
            yield Spot(cells[place], first + line, place + 1, lines[line - 1].strip())
    if head is None:
        raise ValueError(f"no line has the columns {', '.join(names)}; the first is {_cut(next(iter(lines), ''))!r}")
    if not has_row:
        row = ", ".join(f"{name} {value}" for name, value in wanted.items()) or f"number {cell.row}"
        raise ValueError(f"no row is {row}; there are {rows}" if cell.row is not None else "has no row with this column")


def _rows(lines: Sequence[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line and cells; each line is a row."""
    for at, line in enumerate(lines, start=1):
        if line.strip():
            try:
                cells = line.split() if separator == "space" else next(csv.reader([line], delimiter=_SEPARATORS[separator]))
            except csv.Error as error:
                raise ValueError(f"line {at} is no row: {error}") from None
            yield at, [cell.strip() for cell in cells]


def _alike(cell: str, wanted: str) -> bool:
    """Return whether a cell is as wanted: as a text, or as a number."""
    if cell == wanted:
        return True
    return bool(_NUMBER.fullmatch(cell) and _NUMBER.fullmatch(wanted)) and float(cell) == float(wanted)


def _in_json(text: str, path: str) -> Iterator[Spot]:
    try:
        result: Json = jmespath.search(path, _document(text))
    except JMESPathError as error:
        raise ValueError(f"{path}: {str(error).splitlines()[0]}") from None
    for item in result if isinstance(result, list) else [result]:
        if isinstance(item, bool) or not isinstance(item, int | float | str):
            kind = {dict: "an object", list: "a list", bool: str(item).lower()}.get(type(item), "nothing")
            raise ValueError(f"the path {path} leads to {kind}, not to a number; the text is {_cut(text)!r}")
        yield Spot(str(item), excerpt=f"{path} = {item}", number=None if isinstance(item, str) else float(item))


@lru_cache(maxsize=4)
def _document(text: str) -> Json:
    """Return the document of a text, or the list of its documents if each line is one. Raises ValueError."""
    try:
        return foreign(text)
    except ValueError as error:
        lines = [line for line in text.split("\n") if line.strip()]
        try:
            return [foreign(line) for line in lines] if len(lines) > 1 else foreign(text)
        except ValueError:
            raise ValueError(f"is not JSON: {error}; the text is {_cut(text)!r}") from None


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
