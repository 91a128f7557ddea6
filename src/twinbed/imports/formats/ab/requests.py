"""Format ``ab-tsv``: what ``ab -g`` writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed.contracts.format import Format, FormatError, Measurement, Source
from twinbed.imports.text.load import head_text, parsed, values, whole_lines
from twinbed.metrics.http import METRICS as OF_HTTP
from twinbed.metrics.http import MOMENTS, STAGES, UNITS
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document

if TYPE_CHECKING:
    import pyarrow as pa

HEADING = "starttime\tseconds\tctime\tdtime\tttime\twait"
OF = ("requests", *(f"{stage}_time_{moment}" for stage in STAGES for moment in MOMENTS))
METRICS = tuple(metric for metric in OF_HTTP if metric.name in OF)
_STEP_S = 0.0005


class AbTsv(Format):
    name = "ab-tsv"
    summary = "ApacheBench's requests, one a row (ab -g)"
    metrics: Sequence[Metric] = METRICS
    work = "requests"

    def recognises(self, head: bytes) -> bool:
        return head_text(head).startswith(HEADING)

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        import pyarrow as pa
        import pyarrow.compute as pc

        lines, diagnostics = whole_lines(source.text())
        table, more = parsed(_core.ab_requests, lines)
        if not table.num_rows:
            raise FormatError("has no request")
        numbers = {"requests": float(table.num_rows), **dict(_moments(table))}
        return [
            Measurement(
                values=list(values(numbers, UNITS)),
                tables={"requests": table.add_column(0, "host", pa.array([""] * table.num_rows, pa.string()))},
                diagnostics=[*more, *diagnostics],
                started_s=float(pc.min(table["start_s"]).as_py()),
                resolution=dict.fromkeys(OF[1:], _STEP_S),
            )
        ]


def _moments(table: pa.Table) -> Iterator[tuple[str, float | None]]:
    import pyarrow.compute as pc

    for stage in STAGES:
        column = table[f"{stage}_s"]
        known = pc.min(column).as_py() >= 0
        some = table.num_rows > 1
        columns = {
            "min": pc.min(column).as_py(),
            "mean": pc.mean(column).as_py(),
            "sd": pc.stddev(column, ddof=1).as_py() if some else None,
            "median": pc.quantile(column, 0.5)[0].as_py(),
            "max": pc.max(column).as_py(),
        }
        for moment in MOMENTS:
            yield f"{stage}_time_{moment}", columns[moment] if known else None
