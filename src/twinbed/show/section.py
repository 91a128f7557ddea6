"""Hold what an analysis has to say, as data: a sentence, then tables, figures, lists, notes and inner sections, in their order.

Every form follows from it: text, CSV, JSON, Arrow, Markdown, LaTeX and HTML (``render/sections``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from twinbed.model.result import Verdict
from twinbed.show.figure import Figure
from twinbed.show.table import Table


@dataclass(frozen=True, slots=True)
class Section:
    """A sentence that answers the question, and what it rests on."""

    key: str
    """The anchor of the section in a page, and the name of its first table in LaTeX."""
    title: str
    """Its name in headings and in a page's contents."""
    sentence: str = ""
    items: Sequence[Item] = ()
    notes: tuple[str, ...] = ()
    """Notes at the end of a report and a page, with the cautions of the result and what it leaves out, which both have."""
    kicker: str = ""
    """A few words above the title on a page of its own."""
    layer: str = ""
    """The layer of metrics that it belongs into; empty for a section of its own."""
    folded: bool = False
    """True if a page shows only its title until it is opened."""
    on_paper: bool | None = None
    """True if a folded one is printed whole, and its tables belong into Markdown, LaTeX and notebooks too. None: it is printed
    if it has figures."""
    in_text: bool = True
    """True if a terminal shows it."""
    mark: str = ""
    """The verdict that a page colours it by; empty for none."""

    @property
    def answers(self) -> tuple[str, ...]:
        """The sentences that answer the question: the sentence, or the list that stands in its place."""
        first = self.items[0] if self.items else ()
        return (self.sentence,) if self.sentence else first if isinstance(first, tuple) else ()

    def texts(self) -> Iterator[str]:
        """Yield the sentences and lists, those of inner sections too."""
        yield from (self.sentence,) if self.sentence else ()
        for item in self.items:
            if isinstance(item, tuple):
                yield from item
            elif isinstance(item, Listing):
                yield from item.texts
            elif isinstance(item, Section):
                yield from item.texts()

    def tables(self, *, folded: bool = True) -> Iterator[Table]:
        """Yield the tables, those of inner sections too, with or without those that are folded on paper too."""
        for item in self.items:
            if isinstance(item, Table):
                yield item
            elif isinstance(item, Section) and (folded or not item.folded or item.on_paper):
                yield from item.tables(folded=folded)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list below a title of a few words: what to use a testbed for, or one caution with its details."""

    title: str
    texts: tuple[str, ...]
    ending: str = ""
    """The advice after the list."""
    mark: str = ""
    """A verdict or the rank of a caution, which gives the colour and the sign."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell of a matrix: a ratio in words with its verdict, and the numbers behind it."""

    word: str
    verdict: Verdict
    why: tuple[tuple[str, str], ...] = ()
    """(what, its value), for who asks why."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """The entries of one metric in one cell; None where a testbed has no such cell."""

    group: str
    label: str
    cell: str
    entries: tuple[Entry | None, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Verdicts at a glance: a row a metric and cell, a column a testbed."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[MatrixRow, ...]


Item: TypeAlias = Table | Figure | Section | Listing | Matrix | str | tuple[str, ...]
"""A text is a paragraph, a tuple of texts a list."""
