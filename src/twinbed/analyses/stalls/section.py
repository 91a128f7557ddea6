"""Stalls in a report."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from twinbed.analyses.stalls.result import StallsFound
from twinbed.analyses.stalls.tables import messages, sentence, table
from twinbed.contracts.analysis import Part, Section
from twinbed.render.html import notes

KEY, TITLE = "stalls", "Stalls"


def section(result: StallsFound) -> Section:
    """The section in every form of a report."""
    part = Part("stalls", "tab-stalls", TITLE, sentence(result), table(result))
    return Section(
        KEY,
        TITLE,
        lambda: Markup().join(_body(result)),
        (part,),
        lede=sentence(result),
        kicker="When connections stood still, and what kernels said",
    )


def _body(result: StallsFound) -> Iterator[Markup]:
    if result.stalls:
        yield table(result).as_html()
        yield notes(list(messages(result)))
