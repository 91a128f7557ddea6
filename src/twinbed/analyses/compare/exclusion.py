"""Both results of a study that leaves runs out for a caution: without them, and with all runs."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from twinbed.analyses.compare.words import column_head
from twinbed.model.comparison import Comparisons
from twinbed.model.result import Interval, Verdict
from twinbed.render.html import html
from twinbed.render.tabular import Tabular
from twinbed.show.quantities import ratio_with_interval
from twinbed.show.words import cell_title, metric_title


def headings(result: Comparisons) -> tuple[str, ...]:
    return "Metric", "Cell", column_head(result.by), "without them", "with all runs"


def both(result: Comparisons) -> list[tuple[str, ...]]:
    """A row of texts for each headline comparison, by ``headings``; none where no run is left out."""
    if result.excluded is None or not result.excluded.ids:
        return []
    return [
        (
            metric_title(each.metric, each.host, each.direction),
            cell_title(each.cell),
            each.testbed,
            _text(each.ratio, each.ratio_interval, each.verdict, each.runs),
            _text(each.all_runs.ratio, each.all_runs.interval, each.all_runs.verdict, each.all_runs.runs),
        )
        for each in result.comparisons
        if each.headline and each.all_runs is not None
    ]


def _text(value: float | None, interval: Interval | None, verdict: Verdict, runs: int) -> str:
    low, high = (interval.low, interval.high) if interval else (None, None)
    return f"{verdict}, {ratio_with_interval(value, low, high)}, {runs} runs"


def lines(result: Comparisons) -> Iterator[str]:
    """For a terminal."""
    if result.excluded is None:
        return
    yield result.excluded.sentence
    rows = both(result)
    if rows:
        yield "Both results:"
    for metric, cell, testbed, without, whole in rows:
        yield f"  {' '.join(each for each in (metric, cell, testbed) if each)}"
        yield f"    without them   {without}"
        yield f"    with all runs  {whole}"


def paragraphs(result: Comparisons) -> Iterator[Markup]:
    """For a page."""
    if result.excluded is None:
        return
    yield html("<p>{}</p>", result.excluded.sentence)
    if rows := both(result):
        yield Tabular("Both results", "Without the runs left out, and with all.", headings(result), tuple(rows), 5).as_html()
