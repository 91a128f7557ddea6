"""One table of texts as text, LaTeX (booktabs) or HTML; and numbers of statistical tables as texts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from markupsafe import Markup

from twinbed.model.result import Verdict
from twinbed.render import latex_text
from twinbed.render.html import html
from twinbed.show.words import SYMBOLS
from twinbed.terminal import one_line


@dataclass(frozen=True, slots=True)
class Tabular:
    """``texts`` is the number of leading columns that are texts; the others are numbers, to the right. A None is empty."""

    title: str
    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    texts: int = 1
    rule: int = 0
    """The number of rows above a rule; 0 for none."""

    def as_text(self) -> str:
        """Aligned columns two spaces apart below the title, where there is one."""
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
        if self.rule:
            shown.insert(1 + self.rule, "-" * max(map(len, shown)))
        return "\n".join([*filter(None, [self.title]), *shown]) + "\n"

    def as_latex(self, label: str) -> str:
        r"""Return a table for ``\input``; needs booktabs, and longtable where it has many rows."""
        columns = "l" * self.texts + "r" * (len(self.heads) - self.texts)
        caption = latex_text.escape(f"{self.title}. {self.caption}".strip())
        heads = [latex_text.escape(head) for head in self.heads]
        rows = ([_latex(cell or "") for cell in row] for row in self.rows)
        return latex_text.table(caption, label, columns, heads, rows, self.rule)

    def as_html(self) -> Markup:
        """Return a table that a narrow screen scrolls."""
        kinds = ["" if column < self.texts else Markup(' class="number"') for column in range(len(self.heads))]
        head = Markup().join(
            html('<th scope="col"{}>{}</th>', kind, text) for kind, text in zip(kinds, self.heads, strict=True)
        )
        body = Markup().join(
            Markup("</tbody><tbody><tr>" if at and at == self.rule else "<tr>")
            + Markup().join(
                html('<th scope="row">{}</th>', cell or "")
                if column == 0
                else html("<td{}>{}</td>", kinds[column], _marked(cell or ""))
                for column, cell in enumerate(row)
            )
            + Markup("</tr>")
            for at, row in enumerate(self.rows)
        )
        caption = html("<caption>{}</caption>", self.caption) if self.caption else ""
        table = html("<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table>", caption, head, body)
        return html('<div class="scroll" tabindex="0">{}</div>', table)


_VERDICTS = {f"{SYMBOLS[verdict]} {verdict}": verdict for verdict in Verdict}


def _marked(text: str) -> str | Markup:
    """Return a verdict in its colour, other texts as they are."""
    verdict = _VERDICTS.get(text)
    return text if verdict is None else html('<span class="verdict {}">{}</span>', verdict, text)


def _latex(text: str) -> str:
    """Escaped, with minus signs for the hyphens of numbers."""
    return re.sub(r"(?<![\w.)])-(?=\d)", "$-$", latex_text.escape(text))
