"""Texts and tables as LaTeX prints them: everything that is special to it escaped, and pure ASCII."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from twinbed.terminal import visible

WIDE = 7
"""Columns from which a table is set smaller, so that it fits a page."""
LONG = 30
"""Rows from which a table goes over pages, as one that floats would be cut off: an article's page has 33 in 12 point."""
_LONGTABLE = r"\begin{longtable}"

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
    "−": "$-$",
    "×": r"$\times$",
    "²": r"$^2$",
    "→": r"$\to$",
    **{mark: f"$^{{{letter}}}$" for mark, letter in zip("ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", "abcdefghijklmnoprstuvwxyz", strict=True)},
}
_LETTERS = {
    **{
        letter: f"\\{name}{{}}"
        for letter, name in zip("ßæÆøØœŒłŁ", ("ss", "ae", "AE", "o", "O", "oe", "OE", "l", "L"), strict=True)
    },
    "«": r"$\ll$",
    "»": r"$\gg$",
}
_ACCENTS = dict(zip("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327", "`'^~=u.\"rHvc", strict=True))
"""A combining accent -> LaTeX's command, of those that every font has."""


def escape(text: str) -> str:
    """Text that LaTeX prints as itself; a character that it may not know becomes a question mark."""
    return "".join(_escaped(character) for character in unicodedata.normalize("NFC", visible(" ".join(text.split()))))


def _escaped(character: str) -> str:
    known = _SPECIAL.get(character) or _LETTERS.get(character)
    if known or character.isascii():
        return known or character
    parts = unicodedata.normalize("NFD", character)
    if parts[0].isascii() and parts[1:] in _ACCENTS:
        return f"\\{_ACCENTS[parts[1:]]}{{{parts[0]}}}"
    return "?"


def escape_label(text: str) -> str:
    """Return a label of letters, digits and hyphens."""
    return "".join(character if character.isascii() and character.isalnum() else "-" for character in text)


def table(caption: str, label: str, columns: str, heads: Sequence[str], rows: Iterable[Sequence[str]], rule: int = 0) -> str:
    r"""Return a table for ``\input``; needs booktabs. ``columns`` is a letter each; texts are escaped already. The first
    ``rule`` rows stand above a rule, where it is not 0.

    It floats, or has as many pages as it takes and needs longtable. One that is wider than the text sticks out on both sides
    alike.
    """
    small = (r"  \footnotesize", r"  \setlength{\tabcolsep}{3pt}") if len(columns) >= WIDE else ()
    head = _row(heads)
    body = [_row(row) for row in rows]
    if rule:
        body.insert(rule, r"    \midrule")
    if len(body) >= LONG:
        return over_pages(caption, label, columns, head, body, small)
    lines = (
        r"\begin{table}[htb]",
        r"  \centering",
        rf"  \caption{{{caption}}}",
        rf"  \label{{{escape_label(label)}}}",
        *small,
        rf"  \makebox[\linewidth]{{\begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        head,
        r"    \midrule",
        *body,
        r"    \bottomrule",
        r"  \end{tabular}}",
        r"\end{table}",
    )
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    r"""Return a line of a table. A bracket or a star at its beginning would be an option of the ``\\\\`` before it."""
    text = " & ".join(cells)
    return f"    {'{}' if text.startswith(('[', '*')) else ''}{text} \\\\"


def over_pages(caption: str, label: str, columns: str, head: str, body: Sequence[str], small: Sequence[str] = ()) -> str:
    """Return a table of rows that are lines already; caption and heads stand on every page. Needs booktabs and longtable."""
    lines = (
        r"\begingroup",
        *small,
        r"  \setlength{\LTcapwidth}{\linewidth}",
        # As \makebox does where a table floats.
        r"  \setlength{\LTleft}{0pt plus 1fill minus 1fill}",
        r"  \setlength{\LTright}{0pt plus 1fill minus 1fill}",
        rf"  {_LONGTABLE}{{{columns}}}",
        rf"    \caption{{{caption}}}\label{{{escape_label(label)}}} \\",
        r"    \toprule",
        head,
        r"    \midrule",
        r"    \endfirsthead",
        r"    \caption[]{(continued)} \\",
        r"    \toprule",
        head,
        r"    \midrule",
        r"    \endhead",
        r"    \bottomrule",
        r"    \endfoot",
        *body,
        r"  \end{longtable}",
        r"\endgroup",
    )
    return "\n".join(lines) + "\n"


def needs(tables: Iterable[str]) -> str:
    """Return the packages that these tables need, as a document loads them."""
    long = any(_LONGTABLE in source for source in tables)
    return rf"\usepackage{{booktabs{',longtable' if long else ''}}}"
