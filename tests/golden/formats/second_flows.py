"""tcptrace's statistics read a second time: by the names of its columns, or of its lines, and sums over connections.

Side a opens a connection: it is the client.  What is not printed of a connection is not in any sum; of a maximum and of the
round trips those connections count that print theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

Sums = dict[str, str]
Cells = dict[str, str]
"""``actual_data_pkts_a2b`` -> as printed."""
SUMMED = {
    "data_segments": "actual_data_pkts",
    "pure_acks": "pure_acks_sent",
    "retransmitted_segments": "rexmt_data_pkts",
    "out_of_order_segments": "outoforder_pkts",
}
LABELS = {
    "actual_data_pkts": "actual data pkts",
    "actual_data_bytes": "actual data bytes",
    "pure_acks_sent": "pure acks sent",
    "rexmt_data_pkts": "rexmt data pkts",
    "outoforder_pkts": "outoforder pkts",
    "unique_bytes_sent": "unique bytes sent",
    "max_segm_size": "max segm size",
    "RTT_samples": "RTT samples",
    "RTT_avg": "RTT avg",
}
"""Columns of ``--csv`` -> the same in the long text."""


def columns(case: Path) -> Iterator[Sums]:
    """A line with fewer cells than there are columns is none."""
    (file,) = case.glob("input*")
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    names = [name.strip() for name in lines[0].rstrip(",").split(",")]
    rows = [[cell.strip() for cell in line.rstrip().rstrip(",").split(",")] for line in lines[1:]]
    connections = [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)]
    yield sums(connections, [each[f"{end}_packet"] for each in connections for end in ("first", "last")])


def long_text(case: Path) -> Iterator[Sums]:
    """Moments are all of one day: seconds since its midnight, with the microseconds."""
    (file,) = case.glob("input*")
    whole = file.read_text()
    starts = [found.start() for found in re.finditer(r"^TCP connection \d+:$", whole, re.M)]
    connections: list[Cells] = []
    moments: list[str] = []
    for begin, end in pairwise([*starts, len(whole)]):
        cells: Cells = {}
        for column, label in LABELS.items():
            if found := re.search(rf"^ +{label}: +(\S+)(?: \w+)? +{label}: +(\S+)(?: \w+)? *$", whole[begin:end], re.M):
                cells |= {f"{column}_a2b": found[1], f"{column}_b2a": found[2]}
        connections.append(cells)
        times = re.findall(r"^\t(?:first|last) packet: +\w+ \w+ \d+ (\d+):(\d+):(\d+\.\d{6}) \d{4}$", whole[begin:end], re.M)
        moments += [
            f"{int(hours) * 3600 + int(minutes) * 60 + int(seconds[:2])}{seconds[2:]}" for hours, minutes, seconds in times
        ]
    yield sums(connections, moments)


def sums(connections: Sequence[Cells], moments: Sequence[str]) -> Sums:
    answer: Sums = {}
    for name, column in SUMMED.items():
        ways = []
        for way, side in (("client_to_server", "a2b"), ("server_to_client", "b2a")):
            cells = [each.get(f"{column}_{side}") for each in connections]
            known = [cell for cell in cells if cell is not None]
            if len(known) == len(cells):
                answer[f"{name}>{way}"] = "+".join(known)
                ways.append(answer[f"{name}>{way}"])
        if len(ways) == 2:
            answer[name] = "+".join(ways)
    for way, side in (("client_to_server", "a2b"), ("server_to_client", "b2a")):
        answer |= {f"{name}>{way}": sum_ for name, sum_ in one_way(connections, moments, side).items()}
    return answer


def one_way(connections: Sequence[Cells], moments: Sequence[str], side: str) -> Sums:
    answer: Sums = {}
    cells = {column: [each.get(f"{column}_{side}") for each in connections] for column in LABELS}
    known = {column: [cell for cell in each if cell is not None] for column, each in cells.items()}
    all_ = len(connections)
    if len(known["actual_data_bytes"]) == len(known["actual_data_pkts"]) == all_:
        answer["mean_segment_bytes"] = f"({'+'.join(known['actual_data_bytes'])})/({'+'.join(known['actual_data_pkts'])})"
    if known["max_segm_size"]:
        answer["max_segment_bytes"] = max(known["max_segm_size"], key=int)
    # The mean of all samples; below the last place that is printed it is not known.
    trips = [(mean, count) for mean, count in zip(cells["RTT_avg"], cells["RTT_samples"], strict=True) if mean and count]
    samples = sum(int(count) for _, count in trips)
    if samples and sum(float(mean) * int(count) for mean, count in trips) / samples >= 0.1 - 1e-9:
        terms = "+".join(f"{mean}*{count}" for mean, count in trips)
        answer["rtt"] = f"({terms})/({'+'.join(count for _, count in trips)})*1e-3"
    if len(known["unique_bytes_sent"]) == all_ and len(moments) == 2 * all_:
        earliest, latest = min(moments, key=float), max(moments, key=float)
        span = f"{latest.replace('.', '')}-{earliest.replace('.', '')}"
        answer["link_goodput"] = f"8*({'+'.join(known['unique_bytes_sent'])})/({span})*1e6"
    return answer


READERS = {"tcptrace-csv": columns, "tcptrace-text": long_text}
