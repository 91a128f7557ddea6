"""What holds senders up, in a report and as a page of its own."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from twinbed.analyses.sockets.plots import MOST, over_time, reasons
from twinbed.analyses.sockets.result import Senders
from twinbed.analyses.sockets.tables import sentence, table
from twinbed.contracts.analysis import Part, Section
from twinbed.render import plots
from twinbed.render.html import html
from twinbed.show.words import caution_sentences, left_out

KEY, TITLE = "sockets", "What holds senders up"
BARS = (
    "The time of connections by what holds their senders up; of the time with something to send alone, where the rest is not "
    "known."
)
LINES = (
    "The congestion window over time, of the connection of each run that had the most bytes acknowledged: every run thin, the "
    "one whose mean is in the middle bold."
)


def section(result: Senders) -> Section:
    """The section in every form of a report."""
    part = Part("what holds senders up", "tab-sockets", TITLE, sentence(result), table(result))
    return Section(
        KEY,
        TITLE,
        lambda: Markup().join(_body(result)),
        (part,),
        lede=sentence(result),
        notes=(*caution_sentences(result.cautions), *left_out(result.left_out)),
        kicker="TCP connections",
    )


def _body(result: Senders) -> Iterator[Markup]:
    yield table(result).as_html()
    if any(each.parts() for each in result.limits):
        drawn = plots.svg(reasons(result.limits), f"{BARS} The table has the numbers.", "what holds senders up")
        yield html('<div class="plots"><figure>{}<figcaption>{}</figcaption></figure></div>', drawn, BARS)
    if result.windows:
        drawn = plots.svg(over_time(result.windows, result.testbeds), LINES, "congestion windows over time")
        figure = html('<div class="plots"><figure>{}</figure></div>', drawn)
        yield html('<details open class="print"><summary>{}</summary>{}</details>', LINES, figure)
    panels = len({(repr(each.cell), each.testbed) for each in result.windows})
    if panels > MOST:
        yield html('<p class="note">The first {} of {} are drawn.</p>', MOST, panels)
