"""What the rate does inside runs, in a report and as a page of its own."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from twinbed.analyses.steady.plots import MOST, over_time
from twinbed.analyses.steady.result import SteadyStates
from twinbed.analyses.steady.tables import sentence, table
from twinbed.contracts.analysis import Part, Section
from twinbed.render import plots
from twinbed.render.html import html
from twinbed.show.words import caution_sentences, left_out

KEY, TITLE = "steady", "Inside runs"


def section(result: SteadyStates) -> Section:
    """The section in every form of a report."""
    part = Part("rate inside runs", "tab-steady", TITLE, sentence(result), table(result))
    return Section(
        KEY,
        TITLE,
        lambda: Markup().join(_body(result)),
        (part,),
        lede=sentence(result),
        notes=(*caution_sentences(result.cautions), *left_out(result.left_out)),
        kicker="Warm-up, drift, and how long runs should last",
    )


def _body(result: SteadyStates) -> Iterator[Markup]:
    yield table(result).as_html()
    text = "The rate over the time of a run: the mean of all runs, and between which they lie; shaded: the warm-up."
    drawn = plots.svg(over_time(result.cells), f"{text} The table has the numbers.", "rate inside runs")
    yield html(
        '<details open class="print"><summary>{}</summary><div class="plots"><figure>{}</figure></div></details>', text, drawn
    )
    if len(result.cells) > MOST:
        yield html('<p class="note">The first {} of {} are drawn.</p>', MOST, len(result.cells))
