"""Flaws as lines for people: those that differ in their line or an index alone are one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from twinbed.contracts.format import Diagnostic

_INDEX = re.compile(r"\[(\d{1,9})\]")
MOST_PLACES = 3
"""Places that are named where they do not follow each other."""


def one_line_each(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """In the order in which the first of each comes: ``intervals[0] to [19] has no sum``, ``lines 4 to 9: cannot be read``."""
    groups: dict[tuple[str, str, bool], list[Diagnostic]] = {}
    for each in diagnostics:
        before, _, after = _parted(each)
        groups.setdefault((before, after, each.line is None), []).append(each)
    return [_line(group) for group in groups.values()]


def _parted(diagnostic: Diagnostic) -> tuple[str, int | None, str]:
    """The text before its index, the index, and the text after it; only where it has no line is it told apart by its index."""
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
        return f"lines {_places([each.line or 0 for each in group], '{}')}: {first.text}"
    if index is not None:
        return f"{before}{_places([_parted(each)[1] or 0 for each in group], '[{}]')}{after}"
    return f"{first.text} ({len(group)} times)"


def _places(numbers: Sequence[int], style: str) -> str:
    if list(numbers) == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{style.format(numbers[0])} to {style.format(numbers[-1])}"
    named = ", ".join(style.format(number) for number in numbers[:MOST_PLACES])
    return named + (f" and {len(numbers) - MOST_PLACES} more" if len(numbers) > MOST_PLACES else "")
