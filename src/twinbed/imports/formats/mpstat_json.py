"""Format ``mpstat-json``: what ``mpstat -o JSON INTERVAL COUNT`` writes, of every CPU (``-P ALL``) and interrupts (``-I``) too.

Gives shares of CPU time of all CPUs, and interrupts and softirqs a second: means of the intervals, which are equally long.  The
table ``mpstat`` has the shares of each CPU in each interval (interval, cpu, busy, idle, steal).  Without an interval mpstat
writes one block about the time since boot, which looks like any other: a file of one block has no values, unless the manifest
says with ``one_interval: true`` that it is of an interval (``mpstat -o JSON 60 1``).

Source: mpstat(1), and sysstat's own output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.documents import documents, elements, line_of
from twinbed.imports.text.mpstat import METRICS, reading
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document

_BEGINS = re.compile(rb'\s*\{\s*"sysstat"\s*:\s*\{\s*"hosts"\s*:')
_KINDS = re.compile(rb'"(?:cpu-load|sum-interrupts|individual-interrupts|soft-interrupts|node-load)"')
_STATISTICS = re.compile(r'"statistics"\s*:\s*\[')
_FACT = re.compile(r'"(release|number-of-cpus)"\s*:\s*("[^"\\]{1,200}"|[0-9]{1,6})')
_FACTS = {"release": "kernel", "number-of-cpus": "cpus"}


class MpstatJson(Format):
    """The format."""

    name = "mpstat-json"
    summary = "CPU time and interrupts over time, of mpstat -o JSON"
    metrics: Sequence[Metric] = METRICS

    def recognises(self, head: bytes) -> bool:
        return _BEGINS.match(head) is not None and _KINDS.search(head) is not None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        text = source.text()
        begins = _STATISTICS.search(text)
        if begins is None:
            raise FormatError('has no "statistics"')
        members = list(elements(text, begins.end()))
        blocks, end = [block for block, _ in members], members[-1][1] if members else begins.end()
        diagnostics = []
        whole = [after for _, after in documents(text)]
        if not whole:
            diagnostics.append(Diagnostic("ends early, or is damaged", line_of(text, end)))
        elif text[whole[0] :].strip():
            diagnostics.append(Diagnostic("only the first document is read", line_of(text, whole[0])))
        facts = {_FACTS[name]: value.strip('"') for name, value in _FACT.findall(text[: begins.start()])}
        if len(blocks) == 1 and options.get("one_interval") is not True:
            diagnostics.append(
                Diagnostic("has one block, which may be about the time since boot: one_interval says that it is not")
            )
            blocks = []
        elif not blocks:
            diagnostics.append(Diagnostic("has no block"))
        return [reading(blocks, diagnostics, facts)]


mpstat_json = MpstatJson()
