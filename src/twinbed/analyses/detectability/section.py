"""How well testbeds are told, in a report and on a page of its own."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from twinbed.analyses.detectability.plots import over_length, pareto
from twinbed.analyses.detectability.result import Detectability
from twinbed.analyses.detectability.tables import cost_table, feature_table, table
from twinbed.analyses.detectability.words import sentences
from twinbed.contracts.analysis import Part, Section
from twinbed.render import plots
from twinbed.render.html import html, notes
from twinbed.show.words import caution_sentences, left_out

KEY, TITLE = "detectability", "Can it be told"
LINES = (
    "The share of observations that are told right over their length: solid by all features, dashed by the residue, "
    "which no setting removes. The thin grey lines are 95 % and guessing."
)
COSTS = (
    "How well each testbed is told against its speed, with intervals of the AUC: to the right is fast, below is hidden. Those "
    "that no other beats in both are joined."
)


def section(result: Detectability) -> Section:
    """The section in every form of a report."""
    first, *rest = sentences(result)
    part = Part("detectability", "tab-detectability", TITLE, first, table(result))
    return Section(
        KEY,
        TITLE,
        lambda: Markup().join([notes(rest), *_body(result)]),
        (part,),
        lede=first,
        notes=(*caution_sentences(result.cautions), *left_out(result.left_out)),
        kicker="Three observers",
    )


def _body(result: Detectability) -> Iterator[Markup]:
    yield table(result).as_html()
    if any(len(each.as_is.lengths) > 1 for each in result.detections):
        yield _figure(plots.svg(over_length(result), f"{LINES} The table has the numbers.", "accuracy over length"), LINES)
    yield html("<h3>{}</h3>{}", "What gives testbeds away", feature_table(result).as_html())
    if result.costs:
        yield html("<h3>{}</h3>", "What hiding costs")
        yield _figure(plots.svg(pareto(result), f"{COSTS} The table has the numbers.", "what hiding costs"), COSTS)
        yield cost_table(result).as_html()


def _figure(drawn: Markup, caption: str) -> Markup:
    return html('<div class="plots"><figure>{}<figcaption>{}</figcaption></figure></div>', drawn, caption)
