"""What differs between testbeds, for a notebook and on a page of its own."""

from __future__ import annotations

from markupsafe import Markup

from twinbed.analyses.passport.result import Passports
from twinbed.contracts.analysis import Part, Section
from twinbed.observations.passports import Differences
from twinbed.observations.passports_text import sentence
from twinbed.render.html import html
from twinbed.render.tabular import Tabular

TITLE = "What differs"


def section(result: Passports) -> Section:
    """A part for each pair; it has no figures."""
    parts = tuple(
        Part(pair.left, "tab-passport", f"{pair.left} and {pair.right}", sentence(pair), _table(pair)) for pair in result.pairs
    )
    return Section(
        "passport",
        TITLE,
        lambda: Markup().join(_pair(pair, is_alone=len(parts) == 1) for pair in result.pairs),
        parts,
        lede="" if len(result.pairs) != 1 else parts[0].sentence,
        kicker="What each side recorded of itself, most suspicious first",
    )


def _pair(pair: Differences, *, is_alone: bool) -> Markup:
    table = _table(pair).as_html() if pair.differences else ""
    said = "" if is_alone else html("<p>{}</p>", sentence(pair))
    return html("<h3>{} and {}</h3>{}{}", pair.left, pair.right, said, table)


def _table(pair: Differences) -> Tabular:
    rows = tuple(
        (row.kind, row.place, row.fact, " | ".join(row.left) or None, " | ".join(row.right) or None) for row in pair.differences
    )
    heads = ("kind", "where", "fact", pair.left, pair.right)
    return Tabular("Differences", "Most suspicious first; empty: not recorded.", heads, rows, texts=len(heads))
