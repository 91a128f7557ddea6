"""A table as data: records, and columns that say what programs and readers get of each record.

Programs (CSV, JSON, Arrow) get the columns that have a key, in base units, None for missing.  Readers (text, Markdown, LaTeX,
HTML) get the columns that have a head, as texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from twinbed.model.run import Level
from twinbed.show.quantities import NONE
from twinbed.show.words import cell_title

GroupT = TypeVar("GroupT")
ItemT = TypeVar("ItemT")
Row: TypeAlias = Mapping[str, Any]
"""Column -> a value of JSON: a number, a text, None for missing, or lists and mappings of those. Base units."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Without ``key`` only readers have it, without ``head`` only programs do."""

    key: str = ""
    head: str = ""
    unit: str = ""
    """Shown behind the head."""
    format: str | Callable[[Any], str | None] = ""
    """How readers see a value: a format specification, or a function of the value. A column that has one stands to the right;
    a missing value is a dash in it, and empty in others. "s" is for texts that stand to the right."""
    value: str | Callable[[Any], object] = ""
    """Returns the value of a record, or is where it is: attributes such as ``interval.low``, None where one of them is None. By
    default the record's attribute, or item, ``key``."""

    def of(self, record: object) -> Any:
        """Return the value of a record, as programs get it."""
        if callable(self.value):
            return self.value(record)
        if isinstance(record, Mapping):
            return record.get(self.value or self.key)
        value: Any = record
        for name in (self.value or self.key).split("."):
            value = None if value is None else getattr(value, name)
        return value

    def text(self, record: object) -> str:
        """Return the value of a record, as readers get it."""
        value = self.of(record)
        if value is None:
            return NONE if self.format else ""
        return self.format(value) or "" if callable(self.format) else format(value, self.format)

    @property
    def title(self) -> str:
        """The head with its unit: ``for (s)``."""
        return f"{self.head} ({self.unit})" if self.unit else self.head


@dataclass(frozen=True, slots=True)
class Table:
    """Records in columns. ``key`` names the table for programs, ``title`` and ``caption`` are for readers. A table without a
    column that has a key is for readers alone, one without a head for programs (``plain``)."""

    key: str
    title: str
    caption: str
    columns: Sequence[Column]
    records: Sequence[Any]
    rule: int = 0
    """The number of records above a rule; 0 for none."""

    def rows(self) -> list[Row]:
        """Return a row a record, as programs get it."""
        columns = self.keyed
        return [{column.key: column.of(record) for column in columns} for record in self.records]

    @property
    def keyed(self) -> Sequence[Column]:
        """The columns that programs get."""
        return [column for column in self.columns if column.key]

    def for_readers(self) -> Table:
        """Return the table without what programs get of it, who get all records from another one."""
        return replace(self, columns=[replace(column, key="", value=column.value or column.key) for column in self.shown])

    def for_programs(self) -> Table:
        """Return the table without what readers get of it, who get other records or another order."""
        return replace(self, columns=[replace(column, head="") for column in self.keyed])

    @property
    def is_for_programs(self) -> bool:
        """True if programs get the table; one without records may have no columns."""
        return bool(self.keyed or not self.columns)

    @property
    def shown(self) -> Sequence[Column]:
        """The columns that readers get."""
        return [column for column in self.columns if column.head]


class Of(NamedTuple, Generic[GroupT, ItemT]):
    """A record of a table over several groups, with its group."""

    group: GroupT
    item: ItemT


def plain(key: str, rows: Sequence[Row]) -> Table:
    """Return a table for programs alone, of rows that are ready."""
    return Table(key, "", "", [Column(name) for name in dict.fromkeys(name for row in rows for name in row)], rows)


def readable(
    key: str, title: str, caption: str, heads: Sequence[str], rows: Sequence[Sequence[str | None]], texts: int = 1
) -> Table:
    """Return a table for readers alone, of texts that are ready; the columns after the first ``texts`` stand to the right."""
    columns = [
        Column(head=head, format="s" if at >= texts else "", value=partial(_text_at, at)) for at, head in enumerate(heads)
    ]
    return Table(key, title, caption, columns, rows)


def _text_at(at: int, row: Sequence[str | None]) -> str:
    return row[at] or ""


def cell_columns(records: Sequence[Any], cell: Callable[[Any], Mapping[str, Level]] = attrgetter("cell")) -> list[Column]:
    """Return the columns that say of which cell a record is: a factor each for programs, one title of all for readers."""
    factors = dict.fromkeys(name for record in records for name in cell(record))
    title = [Column(head="Cell", value=_title(cell))] if factors else []
    return [*(Column(name, value=_level(cell, name)) for name in factors), *title]


def _level(cell: Callable[[Any], Mapping[str, Level]], factor: str) -> Callable[[Any], Level | None]:
    return lambda record: cell(record).get(factor)


def _title(cell: Callable[[Any], Mapping[str, Level]]) -> Callable[[Any], str]:
    return lambda record: cell_title(cell(record))
