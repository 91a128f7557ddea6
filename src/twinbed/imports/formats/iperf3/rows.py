"""A line of numbers that iperf3 prints: of a stream or of their sum, an interval or a summary."""

from __future__ import annotations

import re
from dataclasses import dataclass

from twinbed.imports.formats.iperf3.way import Number
from twinbed.imports.text.load import DECIMAL, number

PART = re.compile(rf"\[ *(?P<id>[0-9]+|SUM)\](?:\[(?P<role>[TR]X)-[CS]\])? +(?P<start>{DECIMAL}) ?- ?(?P<end>{DECIMAL}) +sec +")
"""How such a line begins. With --timestamps there is a time before it."""
_REST = re.compile(
    rf"(?P<size>{DECIMAL}) (?P<size_unit>[KMGT]?)Bytes +(?P<rate>{DECIMAL}) (?P<rate_unit>[KMGT]?)(?P<rate_of>bits|Bytes)/sec"
    rf"(?: +(?P<jitter>{DECIMAL}) ms +(?P<lost>[0-9]+)/ ?(?P<of>[0-9]+) \([^()]*\)"
    rf"| +(?P<count>[0-9]+)(?: +(?P<cwnd>{DECIMAL}) (?P<cwnd_unit>[KMGT]?)Bytes)?)?"
    r" *(?P<mark>sender|receiver|\(omitted\))? *"
)
_SIZES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_BITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True, slots=True)
class Row:
    """``count``: retransmissions of TCP, datagrams of a sender of UDP. ``mark``: sender or receiver of a summary, omitted, or
    empty."""

    is_sum: bool
    role: str
    start_s: float
    end_s: float
    size_bytes: float
    rate_bit_s: float
    count: Number
    cwnd_bytes: Number
    jitter_s: Number
    lost: Number
    datagrams: Number
    mark: str


def row(begun: re.Match[str], line: str) -> Row | None:
    """None where it goes on otherwise than iperf3's lines do."""
    rest = _REST.fullmatch(line, begun.end())
    if rest is None:
        return None
    start, end, size, rate = (number(each) for each in (begun["start"], begun["end"], rest["size"], rest["rate"]))
    if start is None or end is None or size is None or rate is None or end < start:
        return None
    cwnd, jitter = number(rest["cwnd"]), number(rest["jitter"])
    return Row(
        begun["id"] == "SUM",
        begun["role"] or "",
        start,
        end,
        size * _SIZES[rest["size_unit"]],
        rate * (_BITS[rest["rate_unit"]] if rest["rate_of"] == "bits" else 8 * _SIZES[rest["rate_unit"]]),
        number(rest["count"]),
        None if cwnd is None else cwnd * _SIZES[rest["cwnd_unit"]],
        None if jitter is None else jitter * 1e-3,
        number(rest["lost"]),
        number(rest["of"]),
        (rest["mark"] or "").strip("()"),
    )
