"""A terminal with styles. Colours are rich's matter: none where standard output is no terminal, or NO_COLOR is set."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from twinbed.terminal import columns, one_line, visible

_MARKS = {"! ": "yellow", "-> ": "", "- ": ""}
"""Marks of a list's items, with their styles."""


class Terminal(Console):
    """The console of every command: texts are printed as they are, never as markup, and what a terminal obeys is escaped before
    styles are applied."""

    def __init__(
        self,
        *,
        err: bool = False,
        quiet: bool = False,
        file: IO[str] | None = None,
        width: int | None = None,
        force_terminal: bool | None = None,
        record: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        stream = file or (sys.stderr if err else sys.stdout)
        if width is None and (os.environ.get("COLUMNS") or not stream.isatty()):
            width = columns(stream)
        super().__init__(
            stderr=err,
            quiet=quiet,
            file=file,
            width=width,
            force_terminal=force_terminal,
            record=record,
            _environ=environ,
            markup=False,
            emoji=False,
            highlight=False,
        )

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def say(self, text: str, style: str = "") -> None:
        """Print one line, as long as it is: columns stay columns."""
        self.print(Text(one_line(text), style), soft_wrap=True)

    def words(self, text: str, style: str = "") -> None:
        """Print a paragraph. Its lines go on where the first began; after the mark of a list's item, if it has one."""
        text = one_line(text)
        begin = len(text) - len(text.lstrip())
        mark = next((known for known in _MARKS if text.startswith(known, begin)), "")
        below = " " * (begin + len(mark))
        wrapped = textwrap.wrap(text, self.width, subsequent_indent=below, break_long_words=False, break_on_hyphens=False)
        shown = Text("\n".join(wrapped), style)
        shown.stylize(_MARKS.get(mark, ""), begin, begin + len(mark))
        self.print(shown)
