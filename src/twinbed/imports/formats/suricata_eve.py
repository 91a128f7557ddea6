"""Format ``suricata-eve``: Suricata's eve.json, an object a line: alerts, and flow records.

Gives ``alerts``, ``flow_records`` and the table ``alerts`` (generator, signature_id, signature, category, severity, alerts).
A line that is no event, such as the last one of a file that was cut off, is a flaw; the counts are then of what is before it.
A file without flow records says nothing of their number. Source:
https://docs.suricata.io/en/suricata-7.0.10/output/eve/eve-json-format.html.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.metrics.metric import Metric
from twinbed.metrics.monitor import METRICS, value
from twinbed.model.json import Document
from twinbed.readers.monitor import eve

if TYPE_CHECKING:
    import pyarrow as pa

_START = re.compile(rb'\A\s*\{(?=[^\n]*"timestamp"\s*:)[^\n]*"event_type"\s*:\s*"')
_GIVEN = ("alerts", "flow_records")


class SuricataEve(Format):
    """The format."""

    name = "suricata-eve"
    summary = "Suricata's eve.json: alerts and flow records"
    metrics: Sequence[Metric] = tuple(metric for metric in METRICS if metric.name in _GIVEN)

    def recognises(self, head: bytes) -> bool:
        return _START.search(head) is not None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        found = eve.read(source.text())
        if not found.events:
            raise FormatError("no event of Suricata's in it", found.flaws[0].line if found.flaws else None)
        values = [value("alerts", sum(found.alerts.values()))]
        if found.connections:
            values.append(value("flow_records", len(found.connections)))
        others = {kind: count for kind, count in found.events.items() if kind not in ("alert", "flow")}
        return [
            Measurement(
                values,
                {"alerts": _table(found)} if found.alerts else {},
                (),
                [
                    *(Diagnostic(each.text, each.line) for each in found.flaws),
                    *(Diagnostic(f"{count} events of the kind {kind} not read", None, True) for kind, count in others.items()),
                ],
                {},
                found.began_s,
            )
        ]


def _table(found: eve.Eve) -> pa.Table:
    import pyarrow as pa

    rows = [
        {
            "generator": signature.generator,
            "signature_id": signature.id,
            "signature": signature.text,
            "category": signature.category,
            "severity": signature.severity,
            "alerts": count,
        }
        for signature, count in sorted(found.alerts.items(), key=lambda item: (item[0].generator, item[0].id))
    ]
    counted = ("generator", "signature_id", "severity", "alerts")
    names = ("generator", "signature_id", "signature", "category", "severity", "alerts")
    return pa.Table.from_pylist(rows, pa.schema([(name, pa.int64() if name in counted else pa.string()) for name in names]))


suricata_eve = SuricataEve()
