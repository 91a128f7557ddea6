"""The differences between two passports, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twinbed.observations.passports import Differences
from twinbed.render.rows import as_text
from twinbed.terminal import one_line

_LONGEST, _MOST = 44, 3
"""A line shows at most so many characters of a value, and so many values; JSON and CSV have all."""


def lines(pair: Differences, most: int | None = None) -> Iterator[str]:
    """Yield the lines for a terminal: the first ``most`` differences, or all."""
    left, right = one_line(pair.left), one_line(pair.right)
    title = f"{left} and {right}"
    if left == right or max(len(left), len(right)) > _LONGEST // 2:
        title, left, right = f"A: {left}\nB: {right}\nA and B", "A", "B"
    yield f"{title}: {sentence(pair)}"
    rows = pair.differences[:most]
    for kind in dict.fromkeys(row.kind for row in rows):
        of_kind = [row for row in rows if row.kind == kind]
        yield ""
        yield f"{kind}{': ' if of_kind[0].why else ''}{of_kind[0].why}"
        table = as_text(
            [{"": f"  {row.place}: {row.fact}", left: _shown(row.left), right: _shown(row.right)} for row in of_kind]
        )
        yield table.rstrip("\n")


def sentence(pair: Differences) -> str:
    """Summarise: ``3 differ, 21 the same, 2 known for only one``."""
    return f"{pair.differ} differ, {pair.same} the same, {pair.unknown} known for only one"


def _shown(values: Sequence[str]) -> str:
    if not values:
        return "(not recorded)"
    more = f" and {len(values) - _MOST} more" if len(values) > _MOST else ""
    return " | ".join(_short(value) for value in values[:_MOST]) + more


def _short(value: str) -> str:
    return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 3]}..."
