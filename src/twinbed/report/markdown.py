"""The comparisons as Markdown (GitHub's tables): verdicts, a table a headline metric, cautions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from twinbed.model.result import Comparison, Result
from twinbed.model.tables import Tables
from twinbed.report.grid import Grid, grid
from twinbed.report.quantities import ratio
from twinbed.report.words import LAYERS, SYMBOLS, heading, metric_title, summaries


def markdown(tables: Tables, result: Result) -> str:
    """The whole text."""
    lines = [f"# {_plain(tables.outline.name)}", ""]
    for summary in summaries(result):
        lines += [f"- **{_plain(summary.testbed)}: {summary.verdict}.** {_plain(summary.sentence)}"]
        lines += [f"  - {_plain(text)}" for text in summary.advice]
    headlines = [each for each in result.comparisons if each.headline]
    for layer, of_layer in groupby(headlines, key=lambda each: each.layer):
        lines += ["", f"## {LAYERS.get(layer, layer)}"]
        for key, group in groupby(of_layer, key=lambda each: (each.metric, each.host, each.direction)):
            lines += ["", f"### {_plain(metric_title(*key))}", "", *_table(grid(list(group)))]
    lines += ["", "## Cautions", "", *(_cautions(result) if result.cautions else ["None."])]
    return "\n".join(lines) + "\n"


def _table(found: Grid) -> Iterator[str]:
    names = ["cell", f"{found.reference} (reference)", *found.testbeds]
    yield _row(names)
    yield _row(["---", *["---:"] * (len(names) - 1)])
    for row in found.rows:
        cells = [row.cell, row.reference]
        for each, mean in zip(row.comparisons, row.means, strict=True):
            cells.append("" if each is None else f"{mean}; {_ratio(each)}; {SYMBOLS[each.verdict]} {each.verdict}")
        yield _row(cells)


def _ratio(each: Comparison) -> str:
    interval = each.ratio_interval
    return f"{ratio(each.ratio)} [{ratio(interval.low)}, {ratio(interval.high)}]" if interval else ratio(each.ratio)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(cell) for cell in cells)} |"


def _plain(text: str) -> str:
    """Text that Markdown reads as itself."""
    for character in "\\`*_<>|[]":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def _cautions(result: Result) -> Iterator[str]:
    for kind in dict.fromkeys(each.kind for each in result.cautions):
        about = [
            ": ".join(part for part in (each.subject, each.detail) if part) for each in result.cautions if each.kind is kind
        ]
        yield f"- **{heading(kind.meaning)}.** To do: {kind.advice}."
        yield from (f"  - {_plain(text)}" for text in about if text)
