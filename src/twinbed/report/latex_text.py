"""Texts and floating tables as LaTeX prints them: everything that is special to it escaped, and pure ASCII."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

WIDE = 7
"""Columns from which a table is set smaller, so that it fits a page."""

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
    return "".join(_escaped(character) for character in unicodedata.normalize("NFC", " ".join(text.split())))


def _escaped(character: str) -> str:
    known = _SPECIAL.get(character) or _LETTERS.get(character)
    if known or character.isascii():
        return known or character
    parts = unicodedata.normalize("NFD", character)
    if parts[0].isascii() and parts[1:] in _ACCENTS:
        return f"\\{_ACCENTS[parts[1:]]}{{{parts[0]}}}"
    return "?"


def escape_label(text: str) -> str:
    """A label of letters, digits and hyphens."""
    return "".join(character if character.isascii() and character.isalnum() else "-" for character in text)


def table(caption: str, label: str, columns: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""A floating table for ``\input``; needs booktabs. ``columns`` is a letter each; texts are escaped already.

    One that is wider than the text sticks out on both sides alike.
    """
    small = (r"  \footnotesize", r"  \setlength{\tabcolsep}{3pt}") if len(columns) >= WIDE else ()
    lines = (
        r"\begin{table}[htb]",
        r"  \centering",
        rf"  \caption{{{caption}}}",
        rf"  \label{{{escape_label(label)}}}",
        *small,
        rf"  \makebox[\linewidth]{{\begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        f"    {' & '.join(heads)} \\\\",
        r"    \midrule",
        *(f"    {' & '.join(row)} \\\\" for row in rows),
        r"    \bottomrule",
        r"  \end{tabular}}",
        r"\end{table}",
    )
    return "\n".join(lines) + "\n"
