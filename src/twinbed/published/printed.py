"""The seeds' printed tables as data: sources, tables, cells with their labels, and the facts of the setting that rules need.

Data: ``data/<table>.tsv`` has one row for each printed number.  Its columns are the table's own labels, metric, kind, unit,
printed, decimals and note.  Digits in ``printed`` are as on the page (``80,286`` and ``E+5531`` too).  The source of each table
is in ``tables.tsv``, the text's statements on how it was made in ``settings.tsv``, and the meaning of a payload's name in bytes
in ``sizes.tsv``.  Statements of the text about the numbers are in ``claims.tsv`` and ``equations.tsv``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources

from twinbed.model.error import TwinbedError
from twinbed.model.near import instead
from twinbed.published import rounding
from twinbed.published.rounding import Range

FIXED = ("metric", "kind", "unit", "printed", "decimals", "note")
"""The columns that every table has after its labels."""
EXACT = ("count", "sum", "degrees of freedom", "probability")
"""Kinds of numbers that are not rounded: whole by nature, or made up for an example."""


EVIDENT = (
    "testbed",
    "payload",
    "link",
    "congestion_control",
    "component",
    "term",
    "class",
    "parameter",
    "setting",
    "placement",
)
"""Labels whose values need no name."""
LINKS = {"1Gbps": 10**9, "10Gbps": 10**10}
"""Names of rates as printed -> bit/s."""
ROMAN = {"1": "i", "2": "ii", "3": "iii", "4": "iv", "5": "v", "6": "vi", "7": "vii", "8": "viii", "9": "ix"}


@dataclass(frozen=True, slots=True)
class Source:
    """A seed."""

    id: str
    title: str
    authors: str
    date: str
    number: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One printed number, or mark or text."""

    table: str
    labels: Mapping[str, str]
    metric: str
    kind: str
    unit: str
    printed: str
    value: Fraction | None
    """None for marks and text."""
    decimals: int | None
    note: str

    @property
    def name(self) -> str:
        """Return its place in the table, for people."""
        return f"{self.place} {self.kind}"

    @property
    def place(self) -> str:
        return " ".join(value if name in EVIDENT else f"{name}={value}" for name, value in self.labels.items())

    @property
    def number(self) -> Fraction:
        if self.value is None:
            raise TypeError(f"{self.table} {self.name} is not a number")
        return self.value

    @property
    def range(self) -> Range:
        """Return all numbers that are printed like this."""
        if self.kind in EXACT:
            return Range.exactly(self.number)
        return rounding.printed_range(self.number, self.decimals or 0)

    @property
    def significant_digits(self) -> int | None:
        """Return the significant digits as printed; None for 0 and for text."""
        digits = "".join(character for character in self.printed if character.isdigit()).lstrip("0")
        return len(digits) if self.value else None


@dataclass(frozen=True, slots=True)
class Table:
    """A printed table. ``n`` is the number of runs behind each value, None where the source has none."""

    id: str
    source: str
    caption: str
    page: int | None
    n: int | None
    n_said: str
    note: str
    settings: Mapping[str, str]
    cells: Sequence[Cell]

    @property
    def labels(self) -> Sequence[str]:
        return tuple(self.cells[0].labels)

    def where(self, **wanted: str) -> list[Cell]:
        """Return the cells of these labels, kind or metric, in the table's order."""
        return [cell for cell in self.cells if all(part_of(cell, name) == value for name, value in wanted.items())]

    def cell(self, **wanted: str) -> Cell:
        cells = self.where(**wanted)
        if len(cells) != 1:
            raise LookupError(f"{self.id} has {len(cells)} cells {wanted}")
        return cells[0]


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence about cells that can be checked; see ``claims`` for the words."""

    id: str
    source: str
    place: str
    quote: str
    quantifier: str
    measure: str
    left: str
    right: str
    third: str
    relation: str
    bound: str


@dataclass(frozen=True, slots=True)
class Equation:
    """A printed result with its inputs. ``relation``: ``=`` displayed as an equation, ``about`` stated in words."""

    id: str
    source: str
    place: str
    quote: str
    expression: str
    printed: str
    value: Fraction
    decimals: int
    unit: str
    relation: str
    note: str


@dataclass(frozen=True, slots=True)
class Size:
    """The bytes that a payload's name means: as read, and another possible meaning."""

    bytes: int
    otherwise: int | None
    note: str


@dataclass(frozen=True, slots=True)
class Library:
    """All that is printed."""

    sources: Mapping[str, Source]
    tables: Mapping[str, Table]
    sizes: Mapping[str, Size]
    claims: Sequence[Claim]
    equations: Sequence[Equation]

    def table(self, name: str) -> Table:
        """Return the table with an id, in any case, with arabic numerals too (icnc-3). Raises TwinbedError."""
        known = {table_name.casefold(): table_name for table_name in self.tables}
        wanted = name.casefold()
        source, _, number = wanted.partition("-")
        table = known.get(wanted) or known.get(f"{source}-{ROMAN.get(number, number)}")
        if table is None:
            raise TwinbedError(f"no printed table {name!r}", advice=instead(name, self.tables))
        return self.tables[table]

    def select(self, text: str) -> list[Cell]:
        """Return cells by ``TABLE[label=value|value;kind=...]``, several joined by ``+``; means without a kind."""
        cells: list[Cell] = []
        for part in text.split("+"):
            table, _, inner = part.partition("[")
            wanted = {"kind": ["mean"], **conditions(inner)}
            cells += [
                cell
                for cell in self.tables[table].cells
                if all(part_of(cell, name) in values for name, values in wanted.items())
            ]
        if not cells:
            raise LookupError(f"nothing is selected by {text!r}")
        return cells


def conditions(inner: str) -> dict[str, list[str]]:
    """Return ``label=value|value;kind=...]`` as label -> values."""
    pairs = (item.partition("=") for item in inner.rstrip("]").split(";") if item)
    return {name: values.split("|") for name, _, values in pairs}


def part_of(cell: Cell, name: str) -> str | None:
    if name == "kind":
        return cell.kind
    return cell.metric if name == "metric" else cell.labels.get(name)


@cache
def library() -> Library:
    """Return the tables that are shipped with twinbed."""
    settings: dict[str, dict[str, str]] = {}
    for row in _rows("settings"):
        settings.setdefault(row["table"], {})[row["setting"]] = row["value"]
    tables = [
        Table(
            id=row["table"],
            source=row["source"],
            caption=row["caption"],
            page=int(row["page"]) if row["page"] else None,
            n=int(row["n"]) if row["n"] else None,
            n_said=row["n_said"],
            note=row["note"],
            settings=settings.get(row["table"], {}),
            cells=tuple(_cells(row["table"])),
        )
        for row in _rows("tables")
    ]
    return Library(
        sources={row["source"]: Source(*row.values()) for row in _rows("sources")},
        tables={table.id: table for table in tables},
        sizes={
            row["payload"]: Size(int(row["bytes"]), int(row["otherwise"]) if row["otherwise"] else None, row["note"])
            for row in _rows("sizes")
        },
        claims=tuple(Claim(*row.values()) for row in _rows("claims")),
        equations=tuple(_equation(row) for row in _rows("equations")),
    )


def table_names() -> tuple[str, ...]:
    """Return the names of all tables, without reading them."""
    return tuple(row["table"] for row in _rows("tables"))


def _cells(table: str) -> Iterator[Cell]:
    for row in _rows(table):
        value, decimals = _value(row["printed"], row["decimals"]) if row["unit"] else (None, None)
        yield Cell(
            table=table,
            labels={name: text for name, text in row.items() if name not in FIXED},
            metric=row["metric"],
            kind=row["kind"],
            unit=row["unit"],
            printed=row["printed"],
            value=value,
            decimals=decimals,
            note=row["note"],
        )


def _equation(row: Mapping[str, str]) -> Equation:
    value, decimals = _value(row["printed"], row["decimals"])
    return Equation(
        id=row["equation"],
        source=row["source"],
        place=row["place"],
        quote=row["quote"],
        expression=row["expression"],
        printed=row["printed"],
        value=value,
        decimals=decimals,
        unit=row["unit"],
        relation=row["relation"],
        note=row["note"],
    )


def _value(printed: str, decimals: str) -> tuple[Fraction, int]:
    number = rounding.parse(printed)
    if number is None:
        raise ValueError(f"{printed!r} is not a number")
    return number[0], int(decimals) if decimals else number[1]


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files("twinbed.published").joinpath(f"data/{name}.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))
