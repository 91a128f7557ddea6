"""The anatomy of a request in a report: sentences, the waterfall of each difference, steps as tables, patterns."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from twinbed.analyses.anatomy.ladder_page import ladder_parts
from twinbed.analyses.anatomy.patterns import sentence
from twinbed.analyses.anatomy.plots import MOST, waterfall
from twinbed.analyses.anatomy.result import Anatomy
from twinbed.analyses.anatomy.tables import caption, group_table, places, step_table
from twinbed.analyses.anatomy.words import sentences
from twinbed.contracts.analysis import Part, Section
from twinbed.render import plots
from twinbed.render.document import document
from twinbed.render.html import html, notes
from twinbed.render.words import caution_sentences, cell_title, left_out

KEY, TITLE = "anatomy", "Anatomy of a request"


def section(result: Anatomy) -> Section:
    """The section in every form of a report."""
    parts = tuple(
        Part(
            "steps of requests",
            f"tab-anatomy-{number}",
            f"{TITLE}{': ' if cell else ''}{cell_title(cell)}",
            " ".join(sentences(result)) if number == 1 else "",
            step_table(result, cell),
        )
        for number, cell in enumerate(places(result), start=1)
    )
    return Section(KEY, TITLE, lambda: Markup().join(_section(result)), parts)


def _section(result: Anatomy) -> Iterator[Markup]:
    yield html('<section id="{}"><h2>{}</h2>', KEY, TITLE)
    yield from _body(result)
    yield Markup("</section>")


def _body(result: Anatomy) -> Iterator[Markup]:
    yield notes(list(sentences(result)))
    if result.differences:
        text = f"Where a request takes longer, or less long, than on {result.reference}: its steps one after the other."
        drawn = plots.svg(waterfall(result), f"{text} The tables have the numbers.", "waterfall of steps")
        yield html("<figure><figcaption>{}</figcaption>{}</figure>", text, drawn)
        panels = len({(str(each.cell), each.testbed) for each in result.differences})
        if panels > MOST:
            yield html('<p class="note">The first {} of {} differences are drawn.</p>', MOST, panels)
    for cell in places(result):
        if (groups := group_table(result, cell)) is not None:
            yield html("<h3>{}{}</h3>{}", groups.title, f": {cell_title(cell)}" if cell else "", groups.as_html())
    for cell in places(result):
        table = step_table(result, cell)
        title = f": {cell_title(cell)}" if cell else ""
        yield html("<details><summary>Steps{}</summary>{}</details>", title, table.as_html())
    yield html('<p class="note">{}</p>', caption(result))
    yield from ladder_parts(result, places(result))
    patterns = [
        f"{f'{cell_title(each.cell)}: ' if each.cell else ''}{sentence(each.testbed, each.patterns)}"
        for each in result.requests
        if each.patterns
    ]
    yield html("<details><summary>Patterns of packets</summary>{}</details>", notes(patterns))
    yield notes(list(left_out(result.left_out)))


def page(result: Anatomy, source: str) -> Markup:
    """A page of its own."""
    header = html(
        '<header><p class="kicker">{}</p><h1>{}</h1></header>', "Where the time of a request goes, step by step", TITLE
    )
    cautions = notes(list(caution_sentences(result.cautions)))
    main = html('{}<main><section id="{}">{}{}</section></main>', header, KEY, Markup().join(_body(result)), cautions)
    return document(TITLE, main, f"Made of {source}.")
