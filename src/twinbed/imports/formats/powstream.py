"""``powstream``'s summaries, and those of ``owping -M`` and ``owstats -M``: names and values, and a histogram of delays.

Each block that begins with SUMMARY is a measurement of one direction, which the option ``direction`` names
(``client_to_server``, ``server_to_client``).  Times are in seconds.  Median, 95th percentile and jitter are from the histogram:
a bucket's number times BUCKETWIDTH is the upper edge of its delays, and as coarse as that.  A histogram that does not hold as
many packets as arrived is a caution.

Source: owping(1), "Output Options"; the names are those of versions 2 and 3 of the summary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import count, real, unread
from twinbed.imports.text.probing import METRICS, OneWay, direction_of, summarised
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document

_START = re.compile(rb"^SUMMARY\t\d+\.\d+\s*$\s*^SID\t", re.MULTILINE)
_BUCKET = re.compile(r"\t?(-?\d{1,9})\t(\d{1,12})")
_ENDS = re.compile(r"\[(.{1,200})\]:\S+")
_S_FROM_1900_TO_1970 = 2_208_988_800
Read = TypeVar("Read", int, float)


@dataclass
class _Block:
    line: int
    fields: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    buckets: dict[int, int] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def number(self, name: str) -> float | None:
        return self._read(name, real, "number")

    def count(self, name: str) -> int | None:
        return self._read(name, count, "count")

    def _read(self, name: str, read: Callable[[str], Read | None], kind: str) -> Read | None:
        text = self.fields.get(name)
        value = None if text is None else read(text)
        if text is not None and value is None:
            self.diagnostics.append(Diagnostic(f"{name} is not a {kind}: {text[:40]}", self.lines[name]))
        return value


def _recognises(head: bytes) -> bool:
    return _START.search(head.replace(b"\r\n", b"\n")) is not None


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    way = direction_of(options)
    blocks = [block for block in _blocks(source.text().split("\n")) if "SENT" in block.fields]
    if not blocks:
        raise FormatError("has no summary with the number of packets sent")
    return [_measurement(block, way) for block in blocks]


def _blocks(lines: Sequence[str]) -> list[_Block]:
    blocks: list[_Block] = []
    within = ""
    for number, line in enumerate(lines, start=1):
        if line.startswith("SUMMARY\t"):
            blocks.append(_Block(number))
            within = ""
        elif not blocks or not line.strip():
            continue
        elif line.startswith("</"):
            within = ""
        elif line.startswith("<"):
            within = line.strip("<>")
        elif within:
            if within == "BUCKETS":
                _bucket(blocks[-1], number, line)
        else:
            name, _, value = line.partition("\t")
            blocks[-1].fields.setdefault(name.strip(), value.strip())
            blocks[-1].lines.setdefault(name.strip(), number)
    return blocks


def _bucket(block: _Block, number: int, line: str) -> None:
    match = _BUCKET.fullmatch(line.rstrip())
    if match is None:
        block.diagnostics.append(unread(line, number, "is not a bucket"))
        return
    block.buckets[int(match[1])] = block.buckets.get(int(match[1]), 0) + int(match[2])


def _measurement(block: _Block, way: str) -> Measurement:
    sent, lost, duplicates = (block.count(name) for name in ("SENT", "LOST", "DUPS"))
    width = block.number("BUCKETWIDTH" if "BUCKETWIDTH" in block.fields else "BUCKET_WIDTH")
    p50, p95 = (_quantile(block.buckets, share) for share in (0.5, 0.95))
    cautions = []
    if block.buckets and sent is not None and lost is not None and sum(block.buckets.values()) != sent - lost:
        detail = f"the histogram has {sum(block.buckets.values())} delays, but {sent} packets were sent and {lost} lost"
        cautions.append(Caution(Kind.CONTRADICTED, detail))
    session = OneWay(
        *(_end(block, "FROM"), _end(block, "TO"), sent, lost, duplicates),
        reordered=None,
        delays={
            "min": block.number("MIN"),
            "median": _seconds(p50, width),
            "p95": _seconds(p95, width),
            "max": block.number("MAX"),
        },
        jitter=None if p50 is None or p95 is None else _seconds(p95 - p50, width),
        error_s=block.number("MAXERR") if block.fields.get("SYNC") == "1" else None,
    )
    values, delay_cautions = summarised([(way, session)])
    return Measurement(values, {}, [*cautions, *delay_cautions], block.diagnostics, {"protocol": "udp"}, _started(block))


def _end(block: _Block, name: str) -> str:
    if host := block.fields.get(f"{name}_HOST") or block.fields.get(f"{name}_ADDR"):
        return host[:200]
    match = _ENDS.fullmatch(block.fields.get(name, ""))
    return match[1] if match else ""


def _quantile(buckets: Mapping[int, int], share: float) -> int | None:
    """Return the first bucket with this share of the packets in it and those before."""
    total, seen = sum(buckets.values()), 0
    for bucket in sorted(buckets):
        seen += buckets[bucket]
        if total and seen >= share * total:
            return bucket
    return None


def _seconds(bucket: int | None, width: float | None) -> float | None:
    return None if bucket is None or width is None else bucket * width


def _started(block: _Block) -> float | None:
    """Return START_TIME, which is seconds since 1900 times 2^32, in seconds since 1970."""
    text = block.fields.get("START_TIME", "")
    if not (text.isdecimal() and len(text) <= 20 and text.isascii()):
        return None
    return int(text) / 2**32 - _S_FROM_1900_TO_1970


FORMATS = (
    Format(
        "powstream",
        "powstream's summaries, and owping -M: counts and a histogram of one-way delays",
        METRICS,
        _recognises,
        _read,
    ),
)
