"""Format ``suricata-eve``: Suricata's eve.json, an object a line: alerts, and flow records.

Gives ``alerts``, ``flow_records`` and the table ``alerts`` (generator, signature_id, signature, category, severity, alerts).
A line that is no event, such as the last one of a file that was cut off, is a diagnostic; the counts are then of the events
before it.  A file without flow records has no number of them.
Source: https://docs.suricata.io/en/suricata-7.0.10/output/eve/eve-json-format.html.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import chosen, table
from twinbed.metrics.monitor import METRICS, value
from twinbed.model.json import Document
from twinbed.readers.monitor import eve

if TYPE_CHECKING:
    import pyarrow as pa

_START = re.compile(rb'\A\s*\{(?=[^\n]*"timestamp"\s*:)[^\n]*"event_type"\s*:\s*"')


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    log = eve.read(source.text())
    if not log.events:
        raise FormatError("has no event of Suricata", log.unread[0].line if log.unread else None)
    values = [value("alerts", sum(log.alerts.values()))]
    if log.connections:
        values.append(value("flow_records", len(log.connections)))
    diagnostics = [Diagnostic(entry.text, entry.line) for entry in log.unread]
    diagnostics += [
        Diagnostic(f"{count} events of the kind {kind} are not read", harmless=True)
        for kind, count in log.events.items()
        if kind not in ("alert", "flow")
    ]
    return [Measurement(values, {"alerts": _table(log)} if log.alerts else {}, (), diagnostics, {}, log.began_s)]


def _table(log: eve.Eve) -> pa.Table:
    alerts = sorted(log.alerts.items(), key=lambda item: (item[0].generator, item[0].id))
    return table(
        {
            "generator": ("int64", [signature.generator for signature, _ in alerts]),
            "signature_id": ("int64", [signature.id for signature, _ in alerts]),
            "signature": ("string", [signature.text for signature, _ in alerts]),
            "category": ("string", [signature.category for signature, _ in alerts]),
            "severity": ("int64", [signature.severity for signature, _ in alerts]),
            "alerts": ("int64", [count for _, count in alerts]),
        }
    )


FORMATS = (
    Format(
        "suricata-eve",
        "Suricata's eve.json: alerts and flow records",
        chosen(METRICS, ["alerts", "flow_records"]),
        _START.search,
        _read,
    ),
)
