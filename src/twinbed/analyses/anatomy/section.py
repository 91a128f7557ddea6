"""The anatomy of a request in a report: sentences, the waterfall of each difference, steps as tables, patterns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from twinbed.analyses.anatomy.ladder_page import ladder_parts
from twinbed.analyses.anatomy.patterns import sentence
from twinbed.analyses.anatomy.plots import MOST, waterfall
from twinbed.analyses.anatomy.result import Anatomy
from twinbed.analyses.anatomy.tables import caption, group_table, places, step_table, timers_of
from twinbed.analyses.anatomy.words import sentences
from twinbed.contracts.analysis import Part, Section
from twinbed.model.run import Level
from twinbed.render import plots
from twinbed.render.html import html, notes
from twinbed.show.words import cell_title, left_out

KEY, TITLE = "anatomy", "Anatomy of a request"


def section(result: Anatomy) -> Section:
    """The section in every form of a report."""
    parts = tuple(
        Part(
            "steps of requests",
            f"tab-anatomy-{number}",
            f"{TITLE}{_of(cell)}",
            " ".join(sentences(result)) if number == 1 else "",
            step_table(result, cell),
        )
        for number, cell in enumerate(places(result), start=1)
    )
    lede, *rest = sentences(result)
    return Section(
        KEY,
        TITLE,
        lambda: Markup().join(_body(result, rest)),
        parts,
        lede=lede,
        notes=tuple(left_out(result.left_out)),
        kicker="Where the time of a request goes, step by step",
    )


def _body(result: Anatomy, more: Sequence[str]) -> Iterator[Markup]:
    yield notes(more)
    if result.differences:
        text = f"Where a request takes longer, or less long, than on {result.reference}: its steps one after the other."
        drawn = plots.svg(waterfall(result), f"{text} The tables have the numbers.", "waterfall of steps")
        yield html("<figure><figcaption>{}</figcaption>{}</figure>", text, drawn)
        panels = len({(str(each.cell), each.testbed) for each in result.differences})
        if panels > MOST:
            yield html('<p class="note">The first {} of {} differences are drawn.</p>', MOST, panels)
    for cell in places(result):
        if (groups := group_table(result, cell)) is not None:
            yield html("<h3>{}{}</h3>{}", groups.title, _of(cell), groups.as_html())
    for cell in places(result):
        table = step_table(result, cell)
        yield html("<details><summary>Steps{}</summary>{}</details>", _of(cell), table.as_html())
        if (timers := timers_of(result, cell)) is not None:
            yield html("<details><summary>Timers{}</summary>{}</details>", _of(cell), timers.as_html())
    yield html('<p class="note">{}</p>', caption(result))
    yield from ladder_parts(result, places(result))
    patterns = [
        f"{f'{cell_title(each.cell)}: ' if each.cell else ''}{sentence(each.testbed, each.patterns)}"
        for each in result.requests
        if each.patterns
    ]
    yield html("<details><summary>Patterns of packets</summary>{}</details>", notes(patterns))


def _of(cell: Mapping[str, Level]) -> str:
    """What a title says of a cell, where there are several."""
    return f": {cell_title(cell)}" if cell else ""
