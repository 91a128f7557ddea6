"""What the readers of load generators share: numbers that are none are None, heads as text, and values of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from twinbed.model.format import Flaw
from twinbed.model.metric import Value

MOST = 1e18
"""No count of bytes or packets, and no rate, that a load generator prints is as large; what is larger is damaged."""
SHOWN = 80
"""Characters of a line in a message."""
DECIMAL = r"[0-9]+(?:\.[0-9]+)?"
"""A plain decimal number, as C's own locale prints it."""
_DECIMAL = re.compile(rf"{DECIMAL}(?:[eE][+-]?[0-9]{{1,3}})?")


def number(value: object) -> float | None:
    """A finite number of zero or more, of JSON or as text; None where it is none. Another locale's comma is none."""
    if isinstance(value, str):
        found = _DECIMAL.fullmatch(value.strip())
        value = float(found[0]) if found and len(found[0]) < 40 else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MOST else None


def whole(value: object) -> int | None:
    """A count; None where it is none."""
    found = number(value)
    return int(found) if found is not None and found == int(found) else None


def plain(found: float) -> int | float:
    """A whole number as one."""
    return int(found) if found == int(found) else found


def head_text(head: bytes) -> str:
    """A file's first bytes as text, as ``Source.text`` would have it, but for line ends and colours."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) & ~1].decode("utf-16", errors="replace")
    return head.decode("utf-8-sig", errors="replace")


def values(numbers: Mapping[str, float | None], units: Mapping[str, str], direction: str = "") -> Iterator[Value]:
    """Numbers that are not finite, such as products of damaged ones, are missing."""
    for name, one in numbers.items():
        yield Value(name, one if one is not None and math.isfinite(one) else None, units[name], direction=direction)


def line_of(text: str, at: int) -> int:
    """The line, from 1, of a place in a text."""
    return text.count("\n", 0, at) + 1


def whole_lines(text: str) -> tuple[list[str], list[Flaw]]:
    """Its lines. A last one that has no line end and ends in a digit may be cut within a number: it is a flaw instead."""
    lines = text.split("\n")
    last = lines.pop()
    if not last:
        return lines, []
    if last.rstrip()[-1:] in "0123456789.,-":
        return lines, [Flaw(f"the last line is cut: {last.strip()[:SHOWN]!r}", len(lines) + 1)]
    return [*lines, last], []
