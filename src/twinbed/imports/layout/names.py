"""Names of files and levels: how they are shown and ordered."""

from __future__ import annotations

import re
from typing import TypeAlias

from twinbed.model.run import Level
from twinbed.model.units import magnitude

NaturalKey: TypeAlias = tuple[tuple[int, int, str], ...]
LevelKey: TypeAlias = tuple[int, str, float, NaturalKey]
_PARTS = re.compile(r"(\d+)")


def shown(text: str) -> str:
    """On one line of any terminal: what cannot be printed is escaped, bytes that are no UTF-8 as ``\\xNN``."""
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape", "backslashreplace").decode()


def natural(text: str) -> NaturalKey:
    """A key by which ``run2`` comes before ``run10``."""
    return tuple((0, int(part[:18]), part) if part.isdecimal() else (1, 0, part) for part in _PARTS.split(text) if part)


def level_key(level: Level) -> LevelKey:
    """A key that puts numbers first, then sizes, rates and durations, each by size, then texts by nature; one that is missing
    last."""
    if isinstance(level, int | float):
        return (0, "", level, ())
    if level is None:
        return (3, "", 0, ())
    unit, value = magnitude(level) or ("", 0)
    return (1 if unit else 2, unit, value, natural(level))
