"""tcptrace's statistics under the names and units of ``twinbed flows``, whichever way they were printed, and what they come to.

A row is a connection; a is who opened it: the client.  Times are seconds, where tcptrace prints milliseconds too.  What it
prints as 0 for want of a sample is null.  Packets that are not TCP are not in it, so nothing is said of all packets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from twinbed.imports.text.figures import count, real
from twinbed.metrics.metric import Value
from twinbed.metrics.packets import METRICS as PACKETS

if TYPE_CHECKING:
    import pyarrow as pa

Cell = str | int | float | bool | None
Row = dict[str, Cell]

_SPELLINGS = {" ": "_", "-": "_", "sack_blks/ack": "sack_blks_per_ack", "#_": "", "(last)": "last"}
"""tcptrace's -> ours, where lower case and underscores are not enough."""
_DIRECTION = re.compile(r"_(?:a2b|b2a)$")
_MILLISECONDS = re.compile(r"idletime_max|rtt_(?!samples|full_sz_smpls)\w+|\w+_retr_time")
_REAL = re.compile(
    r"first_packet|last_packet|elapsed_time|(?:avg|wavg)_(?:segm_size|win_adv|owin)|data_xmit_time|throughput|"
    + _MILLISECONDS.pattern
)
_UNMEASURED: Sequence[tuple[re.Pattern[str], str, int]] = tuple(
    (re.compile(pattern), count, at_most)
    for pattern, count, at_most in (
        (r"(?:max|min|avg)_segm_size|initial_window_(?:bytes|pkts)|data_xmit_time|throughput", "actual_data_pkts", 0),
        (r"mss_requested", "syn_pkts_sent", 0),
        (r"rtt_(?:min|max|avg)", "rtt_samples", 0),
        (r"rtt_stdev", "rtt_samples", 2),
        (r"rtt_full_sz_(?:min|max|avg)", "rtt_full_sz_smpls", 0),
        (r"rtt_full_sz_stdev", "rtt_full_sz_smpls", 2),
        (r"rtt_(?:min|max|avg)_last", "ambiguous_acks", 0),
        (r"rtt_sdv_last", "ambiguous_acks", 2),
        (r"(?:min|max|avg|sdv)_retr_time", "max_retrans", 0),
    )
)
"""(columns, a count, at most): with so few samples a 0 says nothing. ``rtt_from_3whs`` never says how many it has."""
_BELOW_ZERO = 1 << 63
"""Values of ``missed_data`` from here on were below zero: tcptrace prints them as unsigned."""
_LAST_PLACE_S = 1e-4
"""The last digit of times that tcptrace prints: a mean below it is rounding, not a measurement."""
SIDES = {"client_to_server": "_a2b", "server_to_client": "_b2a"}
_SUMS = {
    "data_segments": "actual_data_pkts",
    "pure_acks": "pure_acks_sent",
    "retransmitted_segments": "rexmt_data_pkts",
    "out_of_order_segments": "outoforder_pkts",
}
_OTHERS = ("mean_segment_bytes", "max_segment_bytes", "rtt", "link_goodput")
METRICS = tuple(metric for metric in PACKETS if metric.name in (*_SUMS, *_OTHERS))
_UNITS = {metric.name: metric.unit for metric in METRICS}


def named(name: str) -> str:
    """A column's name as ``twinbed flows`` has it."""
    for theirs, own in _SPELLINGS.items():
        name = name.replace(theirs, own)
    return name.lower()


def cells(name: str, text: str) -> Iterator[tuple[str, Cell]]:
    """A cell under our names: some of tcptrace's hold two values. Raises ValueError where it is no such cell."""
    base = _DIRECTION.sub("", name)
    ending = name[len(base) :]
    if base == "syn/fin_pkts_sent":
        yield from ((f"{flag}_pkts_sent{ending}", _whole(part)) for flag, part in _parts(("syn", "fin"), text))
    elif base == "req_1323_ws/ts":
        yield from ((f"req_1323_{which}{ending}", _yes(part)) for which, part in _parts(("ws", "ts"), text))
    elif base == "req_sack":
        yield name, _yes(text)
    elif text == "NA":
        yield name, None
    elif _REAL.fullmatch(base):
        number = real(text)
        if number is None:
            raise ValueError(text)
        yield name, number * 1e-3 if _MILLISECONDS.fullmatch(base) else number
    elif base == "missed_data" and text.isdecimal() and _BELOW_ZERO <= int(text[:20]) < 2 * _BELOW_ZERO:
        yield name, int(text[:20]) - 2 * _BELOW_ZERO
    else:
        yield name, _whole(text)


def _parts(names: Sequence[str], text: str) -> Iterator[tuple[str, str]]:
    parts = text.split("/")
    if len(parts) != len(names):
        raise ValueError(text)
    return zip(names, parts, strict=True)


def _whole(text: str) -> int:
    number = count(text)
    if number is None:
        raise ValueError(text)
    return number


def _yes(text: str) -> bool:
    if text not in ("Y", "N"):
        raise ValueError(text)
    return text == "Y"


def address(text: str) -> str:
    """tcptrace writes fd09::0001 for fd09::1."""
    return re.sub(r"(^|:)0+(?=[0-9a-f])", r"\1", text) if ":" in text else text


def measured(row: Row) -> Row:
    """The row without the zeros that stand for no sample."""
    known = dict(row)
    for name, cell in row.items():
        base = _DIRECTION.sub("", name)
        if cell != 0 or isinstance(cell, bool):
            continue
        if base == "rtt_from_3whs":
            known[name] = None
        for pattern, counted, at_most in _UNMEASURED:
            samples = row.get(counted + name[len(base) :])
            if pattern.fullmatch(base) and isinstance(samples, int) and samples <= at_most:
                known[name] = None
    return known


def table(rows: Sequence[Mapping[str, Cell]]) -> pa.Table:
    """The table ``flows``: columns as ``twinbed flows`` has them, those that tcptrace printed."""
    import pyarrow as pa

    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: pa.array([row.get(name) for row in rows], _type(name)) for name in names})


def _type(name: str) -> pa.DataType:
    import pyarrow as pa

    base = _DIRECTION.sub("", name)
    if base in ("host_a", "host_b", "complete_conn"):
        return pa.string()
    if base in ("port_a", "port_b"):
        return pa.uint16()
    if base in ("req_sack", "req_1323_ws", "req_1323_ts"):
        return pa.bool_()
    return pa.float64() if _REAL.fullmatch(base) else pa.int64()


def values(rows: Sequence[Mapping[str, Cell]], span_s: float | None) -> Iterator[Value]:
    """``span_s``: from the first packet of any connection to the last. Null where a connection does not tell."""
    for name, column in _SUMS.items():
        sums = [_sum(_column(rows, column + ending)) for ending in SIDES.values()]
        for way, number in zip(SIDES, sums, strict=True):
            yield Value(name, number, _UNITS[name], direction=way)
        yield Value(name, _sum(sums), _UNITS[name])
    for way, ending in SIDES.items():
        for name in _OTHERS:
            yield Value(name, _other(name, rows, ending, span_s), _UNITS[name], direction=way)


def _column(rows: Sequence[Mapping[str, Cell]], name: str) -> list[float | None]:
    cells_ = [row.get(name) for row in rows]
    return [cell if isinstance(cell, int | float) else None for cell in cells_]


def _other(name: str, rows: Sequence[Mapping[str, Cell]], ending: str, span_s: float | None) -> float | None:
    if name == "mean_segment_bytes":
        return _ratio(_sum(_column(rows, f"actual_data_bytes{ending}")), _sum(_column(rows, f"actual_data_pkts{ending}")))
    if name == "max_segment_bytes":
        return max((each for each in _column(rows, f"max_segm_size{ending}") if each is not None), default=None)
    if name == "rtt":
        mean = _mean(_column(rows, f"rtt_avg{ending}"), _column(rows, f"rtt_samples{ending}"))
        return None if mean is None or mean < _LAST_PLACE_S else mean
    sent = _sum(_column(rows, f"unique_bytes_sent{ending}"))
    return _ratio(None if sent is None else 8 * sent, span_s)


def _sum(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _ratio(part: float | None, all_: float | None) -> float | None:
    return part / all_ if part is not None and all_ else None


def _mean(numbers: Sequence[float | None], weights: Sequence[float | None]) -> float | None:
    pairs = [(number, weight) for number, weight in zip(numbers, weights, strict=True) if number is not None and weight]
    return sum(number * weight for number, weight in pairs) / sum(weight for _, weight in pairs) if pairs else None
