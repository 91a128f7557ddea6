"""What differs between testbeds, for a notebook."""

from __future__ import annotations

from twinbed.analyses.passport.result import Passports
from twinbed.contracts.analysis import Part, Section
from twinbed.observations.passports import Differences
from twinbed.observations.passports_text import sentence
from twinbed.render.parts import as_html
from twinbed.render.tabular import Tabular

TITLE = "What differs"


def section(result: Passports) -> Section:
    """A part for each pair; it has no figures."""
    parts = tuple(
        Part(pair.left, "tab-passport", f"{pair.left} and {pair.right}", sentence(pair), _table(pair)) for pair in result.pairs
    )
    return Section("passport", TITLE, lambda: as_html(parts), parts)


def _table(pair: Differences) -> Tabular:
    rows = tuple(
        (row.kind, row.place, row.fact, " | ".join(row.left) or None, " | ".join(row.right) or None) for row in pair.differences
    )
    heads = ("kind", "where", "fact", pair.left, pair.right)
    return Tabular("Differences", "Most suspicious first; empty: not recorded.", heads, rows, texts=len(heads))
