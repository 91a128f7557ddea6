"""Both results of a study that leaves runs out for a caution: without them, and with all runs."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from twinbed.analyses.compare.result import Comparisons
from twinbed.model.result import Interval
from twinbed.render.html import html
from twinbed.render.quantities import ratio
from twinbed.render.words import cell_title, metric_title

HEADINGS = ("metric", "cell", "testbed", "without them", "with all runs")


def both(result: Comparisons) -> list[tuple[str, ...]]:
    """A row of texts for each headline comparison, by ``HEADINGS``; none where no run is left out."""
    if result.excluded is None or not result.excluded.ids:
        return []
    return [
        (
            metric_title(each.metric, each.host, each.direction),
            cell_title(each.cell),
            each.testbed,
            _text(each.ratio, each.ratio_interval, str(each.verdict), each),
            _text(each.all_runs.ratio, each.all_runs.interval, str(each.all_runs.verdict), each.all_runs),
        )
        for each in result.comparisons
        if each.headline and each.all_runs is not None
    ]


def _text(value: float | None, interval: Interval | None, verdict: str, of: object) -> str:
    runs = f"{getattr(of, 'runs', 0)} runs"
    shown = "–" if value is None else ratio(value)
    within = "" if interval is None else f" [{ratio(interval.low)}, {ratio(interval.high)}]"
    return f"{verdict}, {shown}{within}, {runs}"


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
    rows = both(result)
    if rows:
        yield html("<table><caption>{}</caption><thead><tr>", "Without the runs that are left out, and with all.")
        yield Markup().join(html('<th scope="col">{}</th>', heading) for heading in HEADINGS)
        yield Markup("</tr></thead><tbody>")
        for row in rows:
            yield html("<tr>{}</tr>", Markup().join(html("<td>{}</td>", cell) for cell in row))
        yield Markup("</tbody></table>")
