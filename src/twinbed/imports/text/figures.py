"""Numbers in tools' texts, and the values, lines and tables that readers make of them.

A number is read in full or not at all. A NaN, an infinity or a number of hundreds of digits is None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from twinbed.contracts.format import Diagnostic, FormatError
from twinbed.metrics.metric import Metric, Value

if TYPE_CHECKING:
    import pyarrow as pa

MOST = 1e18
"""No count of bytes or packets, and no rate, that a load generator prints is as large. A larger number is damaged."""
SHOWN = 80
"""Characters of a line in a message."""
DECIMAL = r"[0-9]+(?:\.[0-9]+)?"
"""A plain decimal number, as C's own locale prints it."""
SECONDS: Mapping[str, float] = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
MOST_SKIPPED = 20
"""Lines that may be left out of a report before the report is refused."""
_COUNT = re.compile(r"[0-9]{1,18}")
_REAL = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
_MOST_REAL = 1e30
"""Nothing measured is larger, and a product with a unit's factor might be infinite."""
_LINE = re.compile(r"\bline ([0-9]+): ")

Number = float | None
Report = TypeVar("Report")


def count(text: str) -> int | None:
    """Return a whole number from 0 up, in ASCII digits, of at most 64 bits with a sign; None for anything else."""
    return int(text) if _COUNT.fullmatch(text) else None


def real(text: str) -> float | None:
    """Return a decimal number with a point, never a comma; None for anything else, or more than anything measured."""
    decimal = float(text) if _REAL.fullmatch(text) else _MOST_REAL
    return decimal if abs(decimal) < _MOST_REAL else None


def of_json(value: object) -> float | None:
    """Return a number that JSON gave as one, as ``real``; None for all else: neither texts nor true and false are numbers."""
    if type(value) is float or type(value) is int:
        return float(value) if -_MOST_REAL < value < _MOST_REAL else None
    return None


def count_of_json(value: object) -> int | None:
    """Return a whole number from 0 up that JSON gave as a number, of at most 18 digits."""
    decimal = of_json(value)
    return int(decimal) if decimal is not None and 0 <= decimal < 1e18 and decimal == int(decimal) else None


def number(value: object) -> float | None:
    """Return a number of zero or more, of JSON or as text; None for anything else, or more than a load generator counts to."""
    decimal = real(value.strip()) if type(value) is str else value
    if type(decimal) is float or type(decimal) is int:  # true and false are none; it is asked a thousand times a file
        return float(decimal) if 0 <= decimal <= MOST else None
    return None


def plain(real_number: float) -> int | float:
    """Return a whole number as an int."""
    return int(real_number) if real_number == int(real_number) else real_number


def scaled(text: str | None, factor: float = 1.0) -> float | None:
    """Return a number of zero or more in base units; None where there is none."""
    decimal = number(text)
    return None if decimal is None else decimal * factor


def total(numbers: Iterable[float | None]) -> float | None:
    """Return the sum; None where a number is missing."""
    listed = list(numbers)
    known = [value for value in listed if value is not None]
    return sum(known) if len(known) == len(listed) else None


def rounding(text: str) -> float:
    """Return half a step of the last digit of a decimal number."""
    return 0.5 * 10.0 ** -len(text.strip().partition(".")[2])


def finer_seconds(taken: float, taken_step: float, done: float, rate: float, rate_step: float) -> float | None:
    """Return how long ``done`` took, by the time or by the rate: whichever is rounded less. None where neither is printed."""
    by_rate = done / rate if done and rate else None
    if not taken or (by_rate is not None and rate_step / rate < taken_step / taken):
        return by_rate
    return taken


def chosen(metrics: Iterable[Metric], names: Iterable[str]) -> tuple[Metric, ...]:
    """Return the metrics with these names, in their own order."""
    wanted = frozenset(names)
    return tuple(metric for metric in metrics if metric.name in wanted)


def values(
    numbers: Mapping[str, float | None] | Iterable[tuple[str, float | None]],
    metrics: Sequence[Metric],
    host: str = "",
    direction: str = "",
) -> Iterator[Value]:
    """Yield numbers of these metrics as values. A number that is not finite, such as a product of damaged ones, is missing."""
    units = {metric.name: metric.unit for metric in metrics}
    for name, value in numbers.items() if isinstance(numbers, Mapping) else numbers:
        yield Value(name, value if value is not None and math.isfinite(value) else None, units[name], host, direction)


def table(columns: Mapping[str, tuple[str, Iterable[object]]]) -> pa.Table:
    """Return an Arrow table of ``column -> (type's name, cells)``."""
    import pyarrow as pa

    return pa.table({name: pa.array(list(cells), pa.type_for_alias(kind)) for name, (kind, cells) in columns.items()})


def head_text(head: bytes) -> str:
    """Return a file's first bytes as text, as ``Source.text`` would have it, but for line ends and colours."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) & ~1].decode("utf-16", errors="replace")
    return head.decode("utf-8-sig", errors="replace")


def unread(line: str, at: int | None, problem: str = "cannot be read") -> Diagnostic:
    """Return the diagnostic of a line; ``at`` counts from 1."""
    return Diagnostic(f"{problem}: {line.strip()[:SHOWN]!r}", at)


def whole_lines(text: str, ends: tuple[str, ...] = ()) -> tuple[list[str], list[Diagnostic]]:
    """Return a text's lines, and a diagnostic where the last one may be cut.

    A last line without a line end may be cut if it ends in a digit or, where ``ends`` are given, in none of them.
    """
    lines = text.split("\n")
    last = lines.pop().rstrip()
    if not last:
        return lines, []
    if not last.endswith(ends) if ends else last[-1] in "0123456789.,-":
        return lines, [unread(last, len(lines) + 1, "the last line is cut")]
    return [*lines, last], []


def parsed(parse: Callable[[bytes], Report], lines: Sequence[str], first: int = 1) -> tuple[Report, list[Diagnostic]]:
    """Read lines by a reader of whole reports, without those that it cannot read. ``first``: the number of the first line.

    Raises FormatError where nothing can be read.
    """
    left = [(first + index, line) for index, line in enumerate(lines)]
    diagnostics: list[Diagnostic] = []
    while True:
        try:
            return parse("".join(f"{line}\n" for _, line in left).encode()), diagnostics
        except ValueError as error:
            match = _LINE.search(str(error))
            at = int(match[1]) - 1 if match is not None else -1
            if match is None or not 0 <= at < len(left) or len(diagnostics) >= MOST_SKIPPED:
                raise FormatError(str(error)) from None
            line, text = left.pop(at)
            diagnostics.append(unread(text, line, str(error)[match.end() :]))
