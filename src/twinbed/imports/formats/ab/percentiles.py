"""Format ``ab-csv``: what ``ab -e`` writes."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed import _core
from twinbed.contracts.format import Format, FormatError, Measurement, Source
from twinbed.imports.text.load import MOST, head_text, parsed, values, whole_lines
from twinbed.metrics.http import METRICS as OF_HTTP
from twinbed.metrics.http import PERCENTILES, UNITS
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document

HEADING = "Percentage served,Time in ms"
OF = {"total_time_min": 0, "total_time_max": 100} | {f"total_time_p{percent}": percent for percent in PERCENTILES}
METRICS = tuple(metric for metric in OF_HTTP if metric.name in OF)


class AbCsv(Format):
    name = "ab-csv"
    summary = "ApacheBench's percentiles (ab -e)"
    metrics: Sequence[Metric] = METRICS

    def recognises(self, head: bytes) -> bool:
        return head_text(head).startswith(HEADING)

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        lines, cut = whole_lines(source.text())
        table, diagnostics = parsed(_core.ab_percentiles, lines)
        times: dict[int, float | None] = dict(zip(table["percent"].to_pylist(), table["total_s"].to_pylist(), strict=True))
        last = times.get(100)
        if last is None or not 0 <= last <= MOST:
            raise FormatError(
                "ends before 100 %, without which no percentile can be told from what ab read past its last request"
            )
        longest = 0.0
        for percent, time in sorted(times.items()):
            if time is not None and longest <= time <= last:
                longest = time
            else:
                times[percent] = None
        return [
            Measurement(
                values=list(values({name: times.get(percent) for name, percent in OF.items()}, UNITS)),
                diagnostics=[*diagnostics, *cut],
            )
        ]
