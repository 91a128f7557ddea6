"""What the readers of load generators share: numbers that are none are None, heads as text, and values of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from twinbed.contracts.format import Diagnostic, FormatError
from twinbed.imports.text.figures import real
from twinbed.metrics.metric import Value

MOST = 1e18
"""No count of bytes or packets, and no rate, that a load generator prints is as large; what is larger is damaged."""
SHOWN = 80
"""Characters of a line in a message."""
DECIMAL = r"[0-9]+(?:\.[0-9]+)?"
"""A plain decimal number, as C's own locale prints it."""
MOST_FLAWS = 20
"""Lines that may be left out of a report before it is none."""
_LINE = re.compile(r"\bline ([0-9]+): ")

Report = TypeVar("Report")


def number(value: object) -> float | None:
    """Return a number of zero or more, of JSON or as text; None where it is none, or more than a load generator counts to."""
    read = real(value.strip()) if type(value) is str else value
    if type(read) is float or type(read) is int:  # true and false are none; it is asked a thousand times a file
        return float(read) if 0 <= read <= MOST else None
    return None


def plain(real_number: float) -> int | float:
    """A whole number as one."""
    return int(real_number) if real_number == int(real_number) else real_number


def head_text(head: bytes) -> str:
    """A file's first bytes as text, as ``Source.text`` would have it, but for line ends and colours."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) & ~1].decode("utf-16", errors="replace")
    return head.decode("utf-8-sig", errors="replace")


def values(numbers: Mapping[str, float | None], units: Mapping[str, str], direction: str = "") -> Iterator[Value]:
    """Numbers that are not finite, such as products of damaged ones, are missing."""
    for name, one in numbers.items():
        yield Value(name, one if one is not None and math.isfinite(one) else None, units[name], direction=direction)


def whole_lines(text: str, ends: tuple[str, ...] = ()) -> tuple[list[str], list[Diagnostic]]:
    """Its lines. A last one that has no line end may be cut: where it ends in a digit, or otherwise than ``ends`` if there are
    any, it is a flaw instead."""
    lines = text.split("\n")
    last = lines.pop().rstrip()
    if not last:
        return lines, []
    if not last.endswith(ends) if ends else last[-1] in "0123456789.,-":
        return lines, [Diagnostic(f"the last line is cut: {last.strip()[:SHOWN]!r}", len(lines) + 1)]
    return [*lines, last], []


def rounding(text: str) -> float:
    """Half a step of the last digit of a decimal number."""
    return 0.5 * 10.0 ** -len(text.strip().partition(".")[2])


def finer_seconds(taken: float, taken_step: float, done: float, rate: float, rate_step: float) -> float | None:
    """How long ``done`` took, by the time or by the rate: whichever is rounded less. None where neither says."""
    by_rate = done / rate if done and rate else None
    if not taken or (by_rate is not None and rate_step / rate < taken_step / taken):
        return by_rate
    return taken


def parsed(parse: Callable[[bytes], Report], lines: Sequence[str], first: int = 1) -> tuple[Report, list[Diagnostic]]:
    """What a reader of whole reports makes of lines, without those that it cannot read. ``first``: the first one's number.

    Raises FormatError where it makes nothing of them."""
    left = [(first + index, line) for index, line in enumerate(lines)]
    diagnostics: list[Diagnostic] = []
    while True:
        try:
            return parse("".join(f"{line}\n" for _, line in left).encode()), diagnostics
        except ValueError as error:
            match = _LINE.search(str(error))
            at = int(match[1]) - 1 if match is not None else -1
            if match is None or not 0 <= at < len(left) or len(diagnostics) >= MOST_FLAWS:
                raise FormatError(str(error)) from None
            line, text = left.pop(at)
            diagnostics.append(Diagnostic(f"{str(error)[match.end() :]}: {text.strip()[:SHOWN]!r}", line))
