"""Show both results of a study that leaves runs out for a caution: without these runs, and with all."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.analyses.compare.words import column_head
from twinbed.model.comparison import Comparisons
from twinbed.model.result import Interval, Verdict
from twinbed.show.quantities import ratio_with_interval
from twinbed.show.section import Item
from twinbed.show.table import readable
from twinbed.show.words import cell_title, metric_title


def items(result: Comparisons) -> Iterator[Item]:
    """Yield a sentence on the runs left out, and a table of both results; nothing where no run is left out."""
    if result.excluded is None:
        return
    yield result.excluded.sentence
    if not result.excluded.ids:
        return
    rows = [
        (
            metric_title(comparison.metric, comparison.host, comparison.direction),
            cell_title(comparison.cell),
            comparison.testbed,
            _text(comparison.ratio, comparison.ratio_interval, comparison.verdict, comparison.runs),
            _text(
                comparison.all_runs.ratio, comparison.all_runs.interval, comparison.all_runs.verdict, comparison.all_runs.runs
            ),
        )
        for comparison in result.comparisons
        if comparison.headline and comparison.all_runs is not None
    ]
    if rows:
        heads = ("Metric", "Cell", column_head(result.by), "without them", "with all runs")
        yield readable("both", "Both results", "Without the runs left out, and with all.", heads, rows, texts=5)


def _text(value: float | None, interval: Interval | None, verdict: Verdict, runs: int) -> str:
    low, high = (interval.low, interval.high) if interval else (None, None)
    return f"{verdict}, {ratio_with_interval(value, low, high)}, {runs} runs"
