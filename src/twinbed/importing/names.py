"""Names of files and levels: how they are shown and ordered."""

from __future__ import annotations

import re

from twinbed.model.run import Level

_PARTS = re.compile(r"(\d+)")


def shown(text: str) -> str:
    """On one line of any terminal: what cannot be printed is escaped, bytes that are no UTF-8 as ``\\xNN``."""
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape", "backslashreplace").decode()


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key by which ``run2`` comes before ``run10``."""
    return tuple((0, int(part[:18]), part) if part.isdecimal() else (1, 0, part) for part in _PARTS.split(text) if part)


def level_key(level: Level) -> tuple[int, float, tuple[tuple[int, int, str], ...]]:
    """A key that puts numbers by size before texts by nature; a level that is missing last."""
    if isinstance(level, int | float):
        return (0, float(level), ())
    return (1, 0.0, natural(level)) if level is not None else (2, 0.0, ())
