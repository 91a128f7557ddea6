"""Names of files and levels: how they are shown and ordered."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TypeAlias

from twinbed.model.run import Level
from twinbed.model.units import magnitudes

NaturalKey: TypeAlias = tuple[tuple[int, int, str], ...]
LevelKey: TypeAlias = tuple[int, str, float, NaturalKey]
_PARTS = re.compile(r"(\d+)")


def shown(text: str) -> str:
    """Return a text for one line of any terminal: unprintable characters are escaped, bytes outside UTF-8 as ``\\xNN``."""
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape", "backslashreplace").decode()


def by_shape(files: Iterable[tuple[str, str]]) -> list[str]:
    """Return paths with their texts, as one line for all that differ in their numbers alone."""
    groups: dict[tuple[str, str], list[str]] = {}
    for path, text in files:
        groups.setdefault((_PARTS.sub("0", path), text), []).append(path)
    return [
        (paths[0] if len(paths) == 1 else f"{len(paths)} files like {_shape(paths)}") + text
        for (_, text), paths in groups.items()
    ]


def _shape(paths: list[str]) -> str:
    """Return the text that all paths share, with ``{int}`` for the numbers in which they differ."""
    columns = zip(*(_PARTS.split(path) for path in paths), strict=True)
    return "".join(column[0] if len(set(column)) == 1 else "{int}" for column in columns)


def natural(text: str) -> NaturalKey:
    """Return a key by which ``run2`` comes before ``run10``."""
    return tuple((0, int(part[:18]), part) if part.isdecimal() else (1, 0, part) for part in _PARTS.split(text) if part)


def level_key(level: Level) -> LevelKey:
    """Return a key that sorts numbers first, then sizes, rates and durations, then texts; a missing level last."""
    return _level_key(level, None if level is None else magnitudes([level])[0])


def in_order(levels: Collection[Level]) -> list[Level]:
    """Return the levels of a factor by ``level_key``, each as the size that it is among the others (``1m`` after ``64k``)."""
    known = zip(levels, magnitudes(levels), strict=True)
    return [level for level, _ in sorted(known, key=lambda pair: _level_key(*pair))]


def _level_key(level: Level, known: tuple[str, float] | None) -> LevelKey:
    if isinstance(level, int | float) and not (known and known[0]):
        return (0, "", level, ())
    if level is None:
        return (3, "", 0, ())
    unit, value = known or ("", 0)
    return (1 if unit else 2, unit, value, natural(str(level)))
