"""A host's counters and shares of its CPUs a second time: of /proc's files, vmstat and mpstat."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

Sums = dict[str, str]


def proc_snapshot(case: Path) -> Iterator[Sums]:
    """The second of each file less the first; a tick is 1/100 s; softnet_stat is hexadecimal."""
    (file,) = case.glob("input*")
    whole = file.read_text()
    options = json.loads((case / "options.json").read_text()) if (case / "options.json").exists() else {}
    sums: Sums = {}
    ticks = [found.split() for found in re.findall(r"^cpu  (.*)$", whole, re.M)]
    if len(ticks) == 2:
        names = {"user": (0, 1), "system": (2,), "interrupt": (5,), "softirq": (6,), "steal": (7,), "idle": (3, 4)}
        less = {each: "(" + "+".join(f"{ticks[1][i]}-{ticks[0][i]}" for i in places) + ")" for each, places in names.items()}
        sums |= {f"cpu_{name}_seconds": f"{each}/100" for name, each in less.items()}
        sums["cpu_steal_share"] = f"{less['steal']}/({'+'.join(less.values())})"
    for name, line in (("net_tx_softirqs", r"^ +NET_TX: +(\d+) +(\d+)$"),):
        if len(rows := re.findall(line, whole, re.M)) == 2:
            sums[name] = f"{rows[1][0]}+{rows[1][1]}-{rows[0][0]}-{rows[0][1]}"
    rows = re.findall(r"^[0-9a-f]{8} [0-9a-f]{8} ([0-9a-f]{8})(?: [0-9a-f]{8})+$", whole, re.M)
    if rows:
        half = len(rows) // 2
        after, before = ([str(int(row, 16)) for row in part] for part in (rows[half:], rows[:half]))
        sums["backlog_squeezes"] = "+".join(after) + "-" + "-".join(before)
    for name, group, field in (
        ("tcp_segments_in", "Tcp", "InSegs"),
        ("tcp_timeouts", "TcpExt", "TCPTimeouts"),
        ("tcp_listen_drops", "TcpExt", "ListenDrops"),
    ):
        lines = [line.split()[1:] for line in re.findall(rf"^{group}: .*$", whole, re.M)]
        if len(lines) == 4:
            sums[name] = f"{lines[3][lines[2].index(field)]}-{lines[1][lines[0].index(field)]}"
    nics: dict[str, list[list[str]]] = {}
    for nic, cells in re.findall(r"^ *(\w+): *((?:\d+ +){15}\d+)$", whole, re.M):
        if nic != "lo" and nic in options.get("nics", [nic]):
            nics.setdefault(nic, []).append(cells.split())
    ways = ("rx_bytes", "rx_packets", "rx_errors", "rx_dropped"), ("tx_bytes", "tx_packets", "tx_errors", "tx_dropped")
    for offset, way in zip((0, 8), ways, strict=True):
        for place, name in enumerate(way):
            terms = [f"{cells[1][offset + place]}-{cells[0][offset + place]}" for cells in nics.values() if len(cells) == 2]
            if terms:
                sums[f"nic_{name}"] = "+".join(terms)
    yield sums


def vmstat(case: Path) -> Iterator[Sums]:
    """By the names above the columns; times before and behind them are none.

    The first line below a heading is since boot, save where a full screen (22 lines) came before.
    """
    (file,) = case.glob("input*")
    names: list[str] = []
    samples: list[dict[str, str]] = []
    at = below = 0
    since_boot = True
    for line in file.read_text().splitlines():
        words = line.split()
        if "swpd" in words:
            at = words.index("r")
            names = [word for word in words[at:] if re.fullmatch("[a-z]+", word) and word != "timestamp"]
            below, since_boot = 0, below < 22
        elif names and "-----" not in line and words:
            below += 1
            cells = words[at : at + len(names)]
            whole = len(cells) == len(names) and all(cell.isdecimal() for cell in cells)
            if whole and not (below == 1 and since_boot):
                samples.append(dict(zip(names, cells, strict=True)))
    if not samples:
        yield {}
        return
    columns = {"busy": ("us", "sy"), "idle": ("id", "wa"), "steal": ("st",)}
    cells_of = {name: "+".join(sample[each] for sample in samples for each in of) for name, of in columns.items()}
    sums = {f"cpu_{name}_share": f"({cells})/({'+'.join(cells_of.values())})" for name, cells in cells_of.items()}
    for name, column in (("interrupt_rate", "in"), ("context_switch_rate", "cs")):
        sums[name] = f"({'+'.join(sample[column] for sample in samples)})/{len(samples)}"
    yield sums


def mpstat(case: Path) -> Iterator[Sums]:
    """Of all CPUs together in intervals that are whole: parts of the sum of all shares, which rounding makes not quite 100."""
    (file,) = case.glob("input*")
    intervals = [
        dict(re.findall(r'"(\w+)": ([\d.]+)', found))
        for found in re.findall(r'\{"cpu": "all", ("usr": [^{}]*)\}', file.read_text())
    ]
    if len(intervals) < 2:
        yield {}
        return
    all_ = "+".join(cell for each in intervals for cell in each.values())
    sums = {}
    for name, columns in (
        ("cpu_busy_share", ("usr", "nice", "sys", "irq", "soft", "guest", "gnice")),
        ("cpu_idle_share", ("idle", "iowait")),
        ("cpu_steal_share", ("steal",)),
    ):
        sums[name] = f"({'+'.join(each[column] for each in intervals for column in columns)})/({all_})"
    yield sums


READERS = {"proc-snapshot": proc_snapshot, "vmstat": vmstat, "mpstat-json": mpstat}
