"""What an analysis has to say, as data: a sentence, then tables, figures, notes and sections of its own, in their order.

Every form follows from it: text, CSV, JSON, Arrow, Markdown, LaTeX and HTML (``render/sections``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from twinbed.show.figure import Figure
from twinbed.show.table import Table


@dataclass(frozen=True, slots=True)
class Section:
    """A sentence that answers the question, and what it rests on."""

    key: str
    """The anchor of the section in a page, and the name of its first table in LaTeX."""
    title: str
    """What headings and a page's navigation call it."""
    sentence: str = ""
    items: Sequence[Item] = ()
    notes: tuple[str, ...] = ()
    """What comes last in a report and a page, beside the cautions of the result and what it leaves out, which both have."""
    kicker: str = ""
    """What a page of its own has above its title, in a few words."""
    layer: str = ""
    """The layer of metrics that it belongs into; empty for a section of its own."""
    folded: bool = False
    """Whether a page shows only its title until it is opened."""
    on_paper: bool | None = None
    """Whether a folded one is printed whole, and its tables belong into Markdown, LaTeX and notebooks too. None: it is printed
    where it has figures."""
    in_text: bool = True
    """Whether a terminal shows it."""
    drawn: Callable[[], str] | None = None
    """Makes the HTML that a page shows in place of the items, all of it escaped."""

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
            elif isinstance(item, Section):
                yield from item.texts()

    def tables(self, *, folded: bool = True) -> Iterator[Table]:
        """Yield the tables, those of inner sections too, with or without those that are folded on paper too."""
        for item in self.items:
            if isinstance(item, Table):
                yield item
            elif isinstance(item, Section) and (folded or not item.folded or item.on_paper):
                yield from item.tables(folded=folded)


Item: TypeAlias = Table | Figure | Section | str | tuple[str, ...]
"""A text is a paragraph, a tuple of texts a list."""
