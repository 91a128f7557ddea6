"""Pieces of a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")


def notes(said: Sequence[str]) -> str:
    """A list of sentences, with options as code."""
    items = "".join(f"<li>{escape(each)}</li>" for each in said)
    items = OPTION.sub(r"<code>\1</code>", items)
    return f'<ul class="notes">{items}</ul>' if said else ""
