"""Markdown of generated pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table, a line a row. Cells are Markdown; a cell without a value is empty."""
    return "".join(f"| {' | '.join(map(_cell, row))} |\n" for row in (heads, ["---"] * len(heads), *rows))


def code(text: str) -> str:
    """Return a text as code, or nothing where it is empty."""
    return f"`{text}`" if text else ""


def _cell(value: object) -> str:
    """Return a value as a cell. The site's builder takes no bar in code for a border, and would show its escape."""
    parts = re.split(r"(`[^`]*`)", "" if value is None else str(value))
    return "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)
