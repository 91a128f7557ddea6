"""One table of texts as text, LaTeX (booktabs) or HTML; and numbers of statistical tables as texts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from twinbed.render import latex_text
from twinbed.render.html import html
from twinbed.render.quantities import NONE
from twinbed.terminal import one_line

DIGITS = 6


@dataclass(frozen=True, slots=True)
class Tabular:
    """``texts`` is the number of leading columns that are texts; the others are numbers, to the right. A None is empty."""

    title: str
    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    texts: int = 1

    def as_text(self) -> str:
        """Aligned columns two spaces apart below the title."""
        cells = [self.heads, *self.rows]
        lines = [[one_line(cell or "") for cell in line] for line in cells]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.heads))]
        shown = [
            "  ".join(
                text.ljust(width) if column < self.texts else text.rjust(width)
                for column, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.title, *shown]) + "\n"

    def as_latex(self, label: str) -> str:
        r"""A table for ``\input``; needs booktabs, and longtable where it has many rows."""
        columns = "l" * self.texts + "r" * (len(self.heads) - self.texts)
        caption = latex_text.escape(f"{self.title}. {self.caption}".strip())
        heads = [latex_text.escape(head) for head in self.heads]
        rows = ([_latex(cell or "") for cell in row] for row in self.rows)
        return latex_text.table(caption, label, columns, heads, rows)

    def as_html(self) -> Markup:
        """A table that a narrow screen scrolls."""
        kinds = ["" if column < self.texts else Markup(' class="number"') for column in range(len(self.heads))]
        head = Markup().join(
            html('<th scope="col"{}>{}</th>', kind, text) for kind, text in zip(kinds, self.heads, strict=True)
        )
        body = Markup().join(
            Markup("<tr>")
            + Markup().join(
                html('<th scope="row">{}</th>', cell or "") if column == 0 else html("<td{}>{}</td>", kinds[column], cell or "")
                for column, cell in enumerate(row)
            )
            + Markup("</tr>")
            for row in self.rows
        )
        caption = html("<caption>{}</caption>", self.caption) if self.caption else ""
        table = html("<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table>", caption, head, body)
        return html('<div class="scroll" tabindex="0">{}</div>', table)


def _latex(text: str) -> str:
    """Escaped, with minus signs for the hyphens of numbers."""
    return re.sub(r"(?<![\w.)])-(?=\d)", "$-$", latex_text.escape(text))


def figure(value: float | None, digits: int = DIGITS) -> str | None:
    """A number to so many digits; None is missing."""
    if value is None:
        return None
    if value and not 1e-4 <= abs(value) < 10.0**digits:
        return f"{value:.{digits - 2}g}"
    return f"{value:.{digits}g}"


def fixed(value: float | None, digits: int = DIGITS) -> str | None:
    """A number to exactly so many digits, zeros at its end too: ``64049.0``."""
    if value is None or value == 0 or not 1e-4 <= abs(value) < 10.0**digits:
        return figure(value, digits)
    return f"{value:#.{digits}g}".removesuffix(".")


def bounds(low: float | None, high: float | None) -> str:
    """``[1.23, 4.56]``, to the digits that the width can bear."""
    if low is None or high is None:
        return NONE
    width = high - low
    largest = max(abs(low), abs(high))
    if width <= 0 or not 1e-4 <= largest < 1e6:
        return f"[{low:.4g}, {high:.4g}]"
    decimals = max(0, min(9, 2 - math.floor(math.log10(width))))
    return f"[{low:.{decimals}f}, {high:.{decimals}f}]"


def probability(value: float | None) -> str | None:
    """``0.0123``, ``<0.0001``."""
    if value is None:
        return None
    return "<0.0001" if value < 1e-4 else f"{value:.4f}"


def percent(value: float | None) -> str | None:
    """A share as ``12.34 %``, ``<0.01 %``."""
    if value is None:
        return None
    return "<0.01 %" if 0 < value < 5e-5 else f"{value * 100:.2f} %"


def joined(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
