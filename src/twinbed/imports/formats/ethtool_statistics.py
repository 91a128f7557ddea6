"""Format ``ethtool-S``: the counters of a NIC's driver, as ``ethtool -S`` prints them.

They count since the driver was loaded, so a block says nothing of a run: it is rows of the table ``counters``, without values.
With ``before_and_after: true`` in the manifest a file's blocks are of one NIC, before the run and after it: the differences are
values where the driver uses the kernel's own names (rx_packets, tx_bytes and so on), and rows of the table whatever it calls
them.  Of lines that ``grep`` took out of it, without a heading, a counter that comes again begins the next block.

Limits: whose block it is ethtool does not print, so two blocks without that option may be of two NICs.  What a counter means
only its driver knows.  Source: ethtool(8).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.counter_deltas import counter_deltas, diagnostics, joined, summed, table
from twinbed.imports.text.figures import count
from twinbed.metrics.counters import NIC_METRICS
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document

_HEAD = "NIC statistics:"
_BEGINS = re.compile(rb"(?:[^\n]{0,200}\n)?\s*NIC statistics:[ \t]*\r?\n")
"""The command may stand before it, or the NIC's name."""
_LINES = re.compile(rb"(?: {5}(?=[^\n]{0,40}[rt]x)\S[^\n]{0,80}: \d+[ \t]*(?:\r?\n|\Z))+\s*")
"""As ethtool indents them, of what was sent or received."""
_TOTALS = (
    "has totals since the driver was loaded, and no values: before_and_after says that its blocks are before and after a run"
)


class EthtoolStatistics(Format):
    """The format."""

    name = "ethtool-S"
    summary = "counters of a NIC's driver, of ethtool -S"
    metrics: Sequence[Metric] = tuple(NIC_METRICS.values())

    def recognises(self, head: bytes) -> bool:
        return _BEGINS.match(head) is not None or _LINES.fullmatch(head) is not None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        blocks: list[dict[str, int]] = []
        unread: list[Diagnostic] = []
        lines = source.text().split("\n")
        has_heading = any(line.strip() == _HEAD for line in lines)
        for number, line in enumerate(lines, 1):
            if line.strip() == _HEAD or (not has_heading and _begins_next(line, blocks)):
                blocks.append({})
            if line.strip() == _HEAD:
                continue
            if blocks and line.strip() and not _is_named(lines, number):
                name, _, word = line.strip().rpartition(":")
                value = count(word.strip())
                if not name or value is None or name in blocks[-1]:
                    unread.append(Diagnostic(f"is no counter that can be read: {line.strip()[:80]!r}", number))
                else:
                    blocks[-1][name] = value
        if not any(blocks):
            raise FormatError("has no counter of ethtool -S")
        if options.get("before_and_after") is not True:
            tables = [table("ethtool -S", counter_deltas([block])) for block in blocks]
            return [Measurement((), {"counters": joined(tables)}, (), [*unread, Diagnostic(_TOTALS)])]
        if len(blocks) < 2:
            raise FormatError("has one block only, and before_and_after is said of it")
        deltas = counter_deltas(blocks)
        values = [
            summed(deltas, metric, [key])
            for name, metric in NIC_METRICS.items()
            if (key := name.removeprefix("nic_")) in deltas
        ]
        return [Measurement(values, {"counters": table("ethtool -S", deltas)}, (), [*unread, *diagnostics(deltas)])]


def _begins_next(line: str, blocks: Sequence[Mapping[str, int]]) -> bool:
    """Whether a counter, below no heading, is there already."""
    name, _, word = line.strip().rpartition(":")
    return bool(name) and count(word.strip()) is not None and (not blocks or name in blocks[-1])


def _is_named(lines: Sequence[str], number: int) -> bool:
    """Whether the line, which counts from 1, stands before a block: a command, or a NIC's name."""
    after = next((line.strip() for line in lines[number:] if line.strip()), "")
    return after == _HEAD and not lines[number - 1].startswith(" ")


ethtool_statistics = EthtoolStatistics()
