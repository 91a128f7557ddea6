"""Stalls in a report."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from twinbed.analyses.stalls.result import StallsFound
from twinbed.analyses.stalls.tables import messages, sentence, table
from twinbed.contracts.analysis import Part, Section
from twinbed.render.html import html, notes

KEY, TITLE = "stalls", "Stalls"


def section(result: StallsFound) -> Section:
    """The section in every form of a report."""
    part = Part("stalls", "tab-stalls", TITLE, sentence(result), table(result))
    return Section(KEY, TITLE, lambda: Markup().join(_section(result)), (part,))


def _section(result: StallsFound) -> Iterator[Markup]:
    yield html('<section id="{}"><h2>{}</h2><p>{}</p>', KEY, TITLE, sentence(result))
    yield table(result).as_html()
    yield notes(list(messages(result)))
    yield Markup("</section>")
