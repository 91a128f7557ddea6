"""Diagnostics as lines for people, and the other programs that wrote into a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from twinbed.contracts.format import Diagnostic, Format

_INDEX = re.compile(r"\[(\d{1,9})\]")
MOST_PLACES = 3
"""Places that are named where they do not follow each other."""


def one_line_each(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """Return diagnostics as lines, one for all that differ only in their line or index, in order.

    For instance ``intervals[0] to [19] has no sum`` and ``lines 4 to 9: cannot be read``.
    """
    groups: dict[tuple[str, str, bool], list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        before, _, after = _parted(diagnostic)
        groups.setdefault((before, after, diagnostic.line is None), []).append(diagnostic)
    return [_line(group) for group in groups.values()]


def _parted(diagnostic: Diagnostic) -> tuple[str, int | None, str]:
    """Return the text before an index, the index, and the text after it; a diagnostic with a line has no index."""
    match = _INDEX.search(diagnostic.text) if diagnostic.line is None else None
    if match is None:
        return diagnostic.text, None, ""
    return diagnostic.text[: match.start()], int(match[1]), diagnostic.text[match.end() :]


def _line(group: Sequence[Diagnostic]) -> str:
    first = group[0]
    if len(group) == 1:
        return str(first)
    before, index, after = _parted(first)
    if first.line is not None:
        return f"lines {_places([diagnostic.line or 0 for diagnostic in group], '{}')}: {first.text}"
    if index is not None:
        return f"{before}{_places([_parted(diagnostic)[1] or 0 for diagnostic in group], '[{}]')}{after}"
    return f"{first.text} ({len(group)} times)"


def _places(numbers: Sequence[int], style: str) -> str:
    if list(numbers) == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{style.format(numbers[0])} to {style.format(numbers[-1])}"
    named = ", ".join(style.format(number) for number in numbers[:MOST_PLACES])
    return named + (f" and {len(numbers) - MOST_PLACES} more" if len(numbers) > MOST_PLACES else "")


Recognises = Callable[[bytes], object]


def also_holds(others: Mapping[str, int]) -> Iterator[Diagnostic]:
    """Yield a diagnostic of other formats in a text. ``others``: a format's name -> its first line, from 1."""
    if others:
        listed = ", ".join(f"{name} at line {line}" for name, line in sorted(others.items(), key=lambda item: item[1]))
        yield Diagnostic(f"also holds {listed}, which is not read; split the file, or name a format in a manifest")


def others_in(text: bytes, kinds: Sequence[str], formats: Mapping[str, Format], before: int = 0) -> dict[str, int]:
    """Return where the text of each of ``kinds`` begins. ``before``: lines of the file before this text."""
    return {name: before + line_of_first(formats[name].recognises, text) for name in kinds if formats[name].recognises(text)}


def line_of_first(recognises: Recognises, text: bytes) -> int:
    """Return the line, from 1, where the recognised part of a text begins; the text as a whole is recognised."""
    lines = text.splitlines(keepends=True)
    few, enough = 0, len(lines)
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if recognises(b"".join(lines[:middle])) else (middle, enough)
    start, late = 0, enough
    while late - start > 1:
        middle = (start + late) // 2
        start, late = (middle, late) if recognises(b"".join(lines[middle:enough])) else (start, middle)
    return start + 1


def closed(text: bytes) -> bool:
    """Return whether a text that begins as JSON ends as JSON, so that no program wrote below it."""
    return text.rstrip()[-1:] in (b"}", b"]")
