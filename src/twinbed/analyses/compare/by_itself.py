"""Comparisons by themselves, for a notebook: what is said of each testbed, and the headline comparisons as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup

from twinbed.analyses.compare.estimate_tables import measured_tables
from twinbed.analyses.compare.grid import grid
from twinbed.analyses.compare.section import headline_metric, lede, verdicts
from twinbed.analyses.compare.summary import summaries
from twinbed.analyses.compare.words import SYMBOLS, emulated, held, nothing_compared
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.show.quantities import share
from twinbed.show.section import Section
from twinbed.show.table import Table, readable
from twinbed.show.words import heading, interim_sentence, metric_title

KEY = "comparison"


def section(result: Comparisons, shown: Sequence[Comparison] | None = None) -> Section:
    """The beginning of the report's page, and the metrics that are shown: by default the headlines."""
    headlines = [each for each in result.comparisons if each.headline]
    of = headlines if shown is None else shown
    summarised = summaries(result)
    return Section(
        KEY,
        "Comparison",
        lede(summarised, summarised[0].reference) if summarised else "",
        (tuple(_sentences(result)), *([_table(headlines)] if headlines else []), *measured_tables(result)),
        kicker="How faithful, metric by metric and cell by cell",
        drawn=lambda: Markup().join(_body(result, of)),
    )


def _sentences(result: Comparisons) -> Iterator[str]:
    if banner := emulated(result):
        yield banner
    for summary in summaries(result):
        yield f"{SYMBOLS[summary.verdict]} {summary.sentence}"
        if summary.spread_sentence:
            yield summary.spread_sentence
    if not result.comparisons:
        yield f"Nothing to compare: {nothing_compared(result)}."
    if result.interim:
        yield interim_sentence(result.interim)


def _table(headlines: list[Comparison]) -> Table:
    """A row a headline comparison, its verdict first."""
    rows = []
    for key, of_metric in groupby(headlines, key=_place):
        for row in grid(list(of_metric)).rows:
            for each, mean in zip(row.comparisons, row.means, strict=True):
                if each is not None:
                    verdict = f"{SYMBOLS[each.verdict]} {each.verdict}"
                    rows.append((verdict, each.testbed, metric_title(*key), row.cell, mean, row.reference, held(each)))
    first = headlines[0]
    caption = f"Headline metrics against {first.reference}, with a margin of {share(first.margin)}."
    heads = ("verdict", "testbed", "metric", "cell", "mean", first.reference, "ratio")
    return readable("verdicts", heading("headline comparisons"), caption, heads, rows, texts=4)


def _body(result: Comparisons, shown: Sequence[Comparison]) -> Iterator[Markup]:
    yield from verdicts(result)
    for _, of_metric in groupby(shown, key=_place):
        yield from headline_metric(list(of_metric), result.pooled)


def _place(each: Comparison) -> tuple[str, str, str]:
    return each.metric, each.host, each.direction
