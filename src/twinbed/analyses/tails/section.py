"""The times of single requests in a report: verdicts on the median, P90 and P99, the tails, and the shift function."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from twinbed.analyses.tails.plots import MOST_CELLS, shift, survival
from twinbed.analyses.tails.result import Tails
from twinbed.analyses.tails.tables import shift_table
from twinbed.analyses.tails.words import sentence
from twinbed.contracts.analysis import Part, Section
from twinbed.render import plots
from twinbed.render.html import html
from twinbed.show.words import left_out

KEY, TITLE = "tails", "Tails"


def section(result: Tails) -> Section:
    """The section in every form of a report."""
    table = shift_table(result, result.verdicts)
    part = Part("request times", "tab-tails", TITLE, f"{sentence(result)} {table.caption}", table)
    return Section(
        KEY,
        TITLE,
        lambda: Markup().join(_body(result)),
        (part,),
        lede=sentence(result),
        notes=tuple(left_out(result.left_out)),
        kicker="The times of single requests",
    )


def _body(result: Tails) -> Iterator[Markup]:
    decided = shift_table(result, result.verdicts)
    yield decided.as_html()
    testbeds = list(dict.fromkeys(each.testbed for each in result.tails))
    drawings = [
        (survival(result.tails, testbeds), "What share of requests takes longer than a time.", "tails"),
        (shift(result.shifts, testbeds, result.margin), f"Each quantile against {result.reference}.", "shift function"),
    ]
    yield Markup('<div class="plots">')
    for spec, text, name in drawings:
        drawn = plots.svg(spec, f"{text} The table has the numbers.", f"times of requests {name}")
        yield html("<figure><figcaption>{}</figcaption>{}</figure>", text, drawn)
    yield Markup("</div>")
    cells = len({str(each.cell) for each in result.tails})
    if cells > MOST_CELLS:
        yield html('<p class="note">The first {} of {} cells are drawn.</p>', MOST_CELLS, cells)
    whole = shift_table(result, result.shifts)
    yield html("<details><summary>All quantiles</summary>{}</details>", whole.as_html())
