"""Formats ``ethtool-k`` and ``ethtool-S``: a NIC's offloads, and its driver's counters.

Offloads are facts (``offload.tcp-segmentation-offload``: true or false), so that runs with other offloads differ.
Where a file has several NICs, their names are in the facts' names too.  Older ethtools had another heading, and some names
without hyphens, which are read as the names of today.

Counters count since the driver was loaded, so a block describes no run: it is rows of the table ``counters``, without values.
With ``before_and_after: true`` in the manifest a file's blocks are of one NIC, before the run and after it.  Then the
differences are values where the driver uses the kernel's own names (rx_packets, tx_bytes and so on), and rows of the table
whatever it calls them.  In lines that ``grep`` selected, without a heading, a counter that comes again begins the next block.

Limits: ethtool -S does not print the NIC, so two blocks without that option may be of two NICs.  Only its driver knows what a
counter means.  Source: ethtool(8) and its own output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.counter_deltas import counter_deltas, counter_table, joined, resets, summed
from twinbed.imports.text.figures import count, unread
from twinbed.metrics.counters import NIC_METRICS
from twinbed.model.json import Document

_FEATURES_OF = re.compile(r"(?:Features|Offload parameters) for (\S{1,64}):\s*")
_FEATURES_BEGIN = re.compile(rb"(?:[^\n]{0,200}\n)?\s*(?:Features|Offload parameters) for \S{1,64}:[ \t]*\r?\n")
"""The command may stand before it."""
_FEATURE = re.compile(r"\s*([a-z0-9][a-z0-9 _-]*): (on|off)(?: \[[a-z ]+\])*\s*")
_NOT_KNOWN = "Cannot get device "


def _read_features(source: Source, options: Document) -> Sequence[Measurement]:
    nics: dict[str, dict[str, bool]] = {}
    features: dict[str, bool] | None = None
    diagnostics: list[Diagnostic] = []
    for number, line in enumerate(source.text().split("\n"), 1):
        if head := _FEATURES_OF.fullmatch(line):
            features = nics.setdefault(head[1], {})
        elif features is not None and line.strip():
            match = _FEATURE.fullmatch(line)
            if line.startswith(_NOT_KNOWN):
                diagnostics.append(Diagnostic(line.strip()[:120], number, harmless=True))
            elif match is None:
                diagnostics.append(unread(line, number, "is not a readable feature"))
            elif features.setdefault(name := match[1].replace(" ", "-"), match[2] == "on") != (match[2] == "on"):
                diagnostics.append(Diagnostic(f"has {name} a second time, with the other state", number))
    if not any(nics.values()):
        raise FormatError("has no feature from ethtool -k")
    facts = {
        f"offload.{name}" if len(nics) == 1 else f"offload.{nic}.{name}": state
        for nic, own in nics.items()
        for name, state in own.items()
    }
    return [Measurement(diagnostics=diagnostics, facts=facts)]


_HEAD = "NIC statistics:"
_STATISTICS_BEGIN = re.compile(rb"(?:[^\n]{0,200}\n)?\s*NIC statistics:[ \t]*\r?\n")
"""The command may stand before it, or the NIC's name."""
_LINES = re.compile(rb"(?: {5}(?=[^\n]{0,40}[rt]x)\S[^\n]{0,80}: \d+[ \t]*(?:\r?\n|\Z))+\s*")
"""As ethtool indents them, of what was sent or received."""
_TOTALS = "has totals since the driver was loaded, so no values; set before_and_after if its blocks are before and after a run"


def _recognises_statistics(head: bytes) -> bool:
    return _STATISTICS_BEGIN.match(head) is not None or _LINES.fullmatch(head) is not None


def _read_statistics(source: Source, options: Document) -> Sequence[Measurement]:
    blocks: list[dict[str, int]] = []
    diagnostics: list[Diagnostic] = []
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
                diagnostics.append(unread(line, number, "is not a readable counter"))
            else:
                blocks[-1][name] = value
    if not any(blocks):
        raise FormatError("has no counter from ethtool -S")
    if options.get("before_and_after") is not True:
        tables = [counter_table("ethtool -S", counter_deltas([block])) for block in blocks]
        return [Measurement((), {"counters": joined(tables)}, (), [*diagnostics, Diagnostic(_TOTALS)])]
    if len(blocks) < 2:
        raise FormatError("has only one block; before_and_after needs two")
    deltas = counter_deltas(blocks)
    values = [
        summed(deltas, metric, [key]) for name, metric in NIC_METRICS.items() if (key := name.removeprefix("nic_")) in deltas
    ]
    return [Measurement(values, {"counters": counter_table("ethtool -S", deltas)}, (), [*diagnostics, *resets(deltas)])]


def _begins_next(line: str, blocks: Sequence[Mapping[str, int]]) -> bool:
    """Return whether a counter, below no heading, is there already."""
    name, _, word = line.strip().rpartition(":")
    return bool(name) and count(word.strip()) is not None and (not blocks or name in blocks[-1])


def _is_named(lines: Sequence[str], number: int) -> bool:
    """Return whether the line, which counts from 1, stands before a block: a command, or a NIC's name."""
    after = next((line.strip() for line in lines[number:] if line.strip()), "")
    return after == _HEAD and not lines[number - 1].startswith(" ")


FORMATS = (
    Format(
        "ethtool-S",
        "counters of a NIC's driver, from ethtool -S",
        tuple(NIC_METRICS.values()),
        _recognises_statistics,
        _read_statistics,
    ),
    Format("ethtool-k", "offloads of NICs, from ethtool -k", (), _FEATURES_BEGIN.match, _read_features),
)
