"""The part of the page on what explains headline metrics: how much of their variation each factor accounts for.

From the analysis ``anova``: of the first metric with means, effects, differences and residuals as tables and figures, of the
others the table alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from twinbed.analyses.anova.page import model_tables, parts
from twinbed.analyses.anova.result import Anova, Unexplained
from twinbed.analyses.anova.tables import lede, no_analysis, title, variance_table
from twinbed.contracts.analysis import Part, Section
from twinbed.render.html import notes
from twinbed.render.words import heading, metric_name, metric_title

KEY, TITLE = "explained", "What explains it"
MOST_BARS = 21
"""Differences in a figure: all pairs of seven levels."""
MOST_POINTS = 300
"""Residuals in a figure, so that a page of many runs stays light."""


def section(explained: Sequence[Anova | Unexplained]) -> Section:
    """For every form of a report."""
    return Section(KEY, TITLE, lambda: "".join(explanations(explained)), tuple(_part(each) for each in explained))


def _part(each: Anova | Unexplained) -> Part:
    label = f"tab-anova-{each.response}"
    if isinstance(each, Unexplained):
        return Part(each.response, label, heading(metric_title(each.response)), no_analysis(each))
    return Part(each.response, label, heading(title(each)), lede(each), variance_table(each))


def explanations(found: Sequence[Anova | Unexplained]) -> Iterator[str]:
    """The section of the page."""
    yield f'<section id="{KEY}"><h2>{TITLE}</h2>'
    yield (
        "<p>How much of a metric's variation each factor accounts for, and how much is left as errors, between replicates: "
        "an analysis of variance. <code>twinbed analyse anova</code> makes it of any metric, with other factors and terms.</p>"
    )
    drawn = False
    said: set[str] = set()
    for each in found:
        if isinstance(each, Unexplained):
            yield f"<h3>{escape(heading(metric_name(each.response)))}</h3><p>{escape(no_analysis(each))}</p>"
            continue
        yield f"<h3>{escape(heading(title(each)))}</h3><p>{escape(lede(each))}</p>{variance_table(each).as_html()}"
        yield notes([note for note in each.notes if note not in said])
        said |= set(each.notes)
        if not drawn:
            yield from _details(each)
            drawn = True
    yield "</section>"


def _details(found: Anova) -> Iterator[str]:
    for table in model_tables(found):
        yield _folded(table.title, table.as_html())
    for at, (name, content) in enumerate(parts(found, "h4", MOST_BARS, MOST_POINTS)):
        yield _folded(name, content, is_open=at == 0)


def _folded(name: str, content: str, *, is_open: bool = False) -> str:
    return f'<details class="print"{" open" if is_open else ""}><summary>{escape(name)}</summary>{content}</details>'
