r"""The headline comparisons as LaTeX tables: for ``\input``, with ``\usepackage{booktabs}`` in the document.

One table a metric, as the field prints it: mean and half width of its interval by cell and testbed; a testbed's mean is
marked where it is shown to be equivalent (=) or different (\neq).  Pure ASCII; everything that is special to LaTeX is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from twinbed.model.result import Result, Verdict
from twinbed.model.tables import Tables
from twinbed.report.grid import Grid, Row, grid
from twinbed.report.quantities import share
from twinbed.report.words import heading, metric_title

MARKS = {Verdict.EQUIVALENT: r"$^{=}$", Verdict.DIFFERENT: r"$^{\neq}$", Verdict.INCONCLUSIVE: r"$^{?}$"}
_SPECIAL = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "µ": r"$\mu$",
    "–": "--",
    "×": r"$\times$",
    "²": r"$^2$",
    "→": r"$\to$",
}


def latex(tables: Tables, result: Result) -> str:
    """The tables, one after the other."""
    name = tables.outline.name
    headlines = [each for each in result.comparisons if each.headline]
    parts = [f"% {escape(name)}: needs \\usepackage{{booktabs}}"]
    for key, group in groupby(headlines, key=lambda each: (each.metric, each.host, each.direction)):
        comparisons = list(group)
        label = "-".join(["tab", *(part.replace("_", "-") for part in key if part)])
        level = next((each.estimate.interval.level for each in comparisons if each.estimate.interval), 0.95)
        within = f"{share(comparisons[0].margin)} of {comparisons[0].reference}"
        title = metric_title(*key)
        about = f"{heading(title)}: mean and {share(round(level, 4))} interval"
        caption = rf"{escape(about)}; = within {escape(within)}, $\neq$ not, ? undecided."
        parts += _table(grid(comparisons), caption, escape_label(label))
    return "\n".join(parts) + "\n"


def _table(found: Grid, caption: str, label: str) -> Iterator[str]:
    names = ["Cell", found.reference, *found.testbeds]
    yield r"\begin{table}[htb]"
    yield r"  \centering"
    yield rf"  \caption{{{caption}}}"
    yield rf"  \label{{{label}}}"
    yield rf"  \begin{{tabular}}{{l{'r' * (len(names) - 1)}}}"
    yield r"    \toprule"
    yield f"    {' & '.join(escape(name) for name in names)} \\\\"
    yield r"    \midrule"
    yield from (f"    {' & '.join(_cells(row))} \\\\" for row in found.rows)
    yield r"    \bottomrule"
    yield r"  \end{tabular}"
    yield r"\end{table}"


def _cells(row: Row) -> Iterator[str]:
    yield escape(row.cell)
    yield escape(row.reference)
    for each, mean in zip(row.comparisons, row.means, strict=True):
        yield "" if each is None else escape(mean) + MARKS[each.verdict]


def escape(text: str) -> str:
    """Text that LaTeX prints as itself; a character that it may not know becomes a question mark."""
    return "".join(_SPECIAL.get(character, character if character.isascii() else "?") for character in " ".join(text.split()))


def escape_label(text: str) -> str:
    """A label of letters, digits and hyphens."""
    return "".join(character if character.isascii() and character.isalnum() else "-" for character in text)
