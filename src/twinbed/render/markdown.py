"""Texts and tables as Markdown (GitHub's) prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from twinbed.render.tabular import Tabular

_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_<>|[]~$"})
_ENTITY = re.compile(r"&(?=#?\w+;)")
_TICKS = re.compile("`+")


def plain(text: str) -> str:
    """Return a text that Markdown reads as itself, in one line: no emphasis, link, formula, HTML or cell of a table."""
    text = _ENTITY.sub(r"\\&", " ".join(text.split()).translate(_SPECIAL))
    return text.replace("://", "\\://").replace("www.", "www\\.")


def code(text: str) -> str:
    """Return a text as code, whatever backticks it has."""
    fence = "`" * (1 + max(map(len, _TICKS.findall(text)), default=0))
    space = " " if len(fence) > 1 else ""
    return f"{fence}{space}{' '.join(text.split())}{space}{fence}"


def row(cells: Sequence[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(plain(cell) for cell in cells)} |"


def table(shown: Tabular) -> Iterator[str]:
    """Yield a table's lines, without its title."""
    yield row(shown.heads)
    yield row([*["---"] * shown.texts, *["---:"] * (len(shown.heads) - shown.texts)])
    yield from (row([cell or "" for cell in cells]) for cells in shown.rows)
