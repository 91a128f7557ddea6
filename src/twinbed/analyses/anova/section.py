"""The part of the page on what explains headline metrics: how much of their variation each factor accounts for.

The analysis ``anova`` gives it: means, effects, differences and residuals of the first metric as tables and figures, and the
table alone of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from twinbed.analyses.anova.page import model_tables, parts
from twinbed.analyses.anova.result import Anova, Unexplained
from twinbed.analyses.anova.tables import lede, no_analysis, title, variance_table
from twinbed.contracts.analysis import Part, Section
from twinbed.render.html import html, notes
from twinbed.show.words import heading, metric_name, metric_title

KEY, TITLE = "explained", "What explains it"
MOST_BARS = 21
"""Differences in a figure: all pairs of seven levels."""
MOST_POINTS = 300
"""Residuals in a figure, so that a page of many runs stays light."""


def section(explained: Sequence[Anova | Unexplained]) -> Section:
    """The section in every form of a report."""
    return Section(KEY, TITLE, lambda: Markup().join(_explanations(explained)), tuple(_part(each) for each in explained))


def _part(each: Anova | Unexplained) -> Part:
    label = f"tab-anova-{each.response}"
    if isinstance(each, Unexplained):
        return Part(each.response, label, heading(metric_title(each.response)), no_analysis(each))
    return Part(each.response, label, heading(title(each)), lede(each), variance_table(each))


def _explanations(anovas: Sequence[Anova | Unexplained]) -> Iterator[Markup]:
    yield Markup(
        "<p>How much of a metric's variation each factor accounts for, and how much is left as errors, between replicates: "
        "an analysis of variance. <code>twinbed analyse anova</code> makes it of any metric, with other factors and terms.</p>"
    )
    drawn = False
    notes_shown: set[str] = set()
    for each in anovas:
        if isinstance(each, Unexplained):
            yield html("<h3>{}</h3><p>{}</p>", heading(metric_name(each.response)), no_analysis(each))
            continue
        yield html("<h3>{}</h3><p>{}</p>{}", heading(title(each)), lede(each), variance_table(each).as_html())
        yield notes([note for note in each.notes if note not in notes_shown])
        notes_shown |= set(each.notes)
        if not drawn:
            yield from _details(each)
            drawn = True


def _details(anova: Anova) -> Iterator[Markup]:
    for table in model_tables(anova):
        yield _folded(table.title, table.as_html())
    for at, (name, content) in enumerate(parts(anova, "h4", MOST_BARS, MOST_POINTS)):
        yield _folded(name, content, is_open=at == 0)


def _folded(name: str, content: str, *, is_open: bool = False) -> Markup:
    return html(
        '<details class="print"{}><summary>{}</summary>{}</details>',
        " open" if is_open else "",
        name,
        content,
    )
