"""A run's series over time as flent's data files, version 4 (flent.org, "The Data File Format").

In: the tables ``intervals`` (iperf3's reports), ``probes`` and ``delay_windows`` (latency).  Out: a ``.flent.gz`` for each run
that has any.  Rates are in Mbits/s and times in ms, as flent's own.  ``results`` has a value a step, which begins at its ``x``
and is as long as the longest interval.  It is all bytes of the intervals in it over all their seconds, or the mean round trip
of the probes sent in it; null where there is none.  ``raw_values`` has each interval and probe.  An interval shorter than half
a step is left out: iperf3's last may be a sliver, and flent would give its rate the weight of a whole one.  Each tool's seconds
count from its own beginning.
"""

from __future__ import annotations

import gzip
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import twinbed
from twinbed.api import Results
from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.run import level_text
from twinbed.render import output
from twinbed.render.file_names import Names
from twinbed.render.spreadsheet import csv_text
from twinbed.show.words import cell_title

VERSION = 4
INDEX = "runs.csv"
TABLES: Mapping[str, Sequence[str]] = {
    "intervals": ("host", "end", "start_s", "seconds", "bytes"),
    "probes": ("client", "server", "client_sent_ns", "rtt_s"),
    "delay_windows": ("client", "direction", "begin_s", "jitter_s"),
}
"""The tables, each with the columns that a row needs: other tools' intervals have fewer."""
STEP_S = 1.0
"""The length of a step without intervals."""
MOST_STEPS = 10**7
"""Values of a series that a file may have."""
TCP, UDP, PING = "tcp_nup", "udp_flood", "ping"
"""flent's tests whose plots draw such series."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    at_s: float
    value: float
    seconds: float | None = None
    """How long it lasts: its weight in the mean of its step; None of a moment."""

    @property
    def lasts(self) -> dict[str, float]:
        return {} if self.seconds is None else {"dur": self.seconds}


@dataclass(slots=True)
class Series:
    unit: str
    points: list[Point] = field(default_factory=list)


def write(results: Results, folder: Path, on_progress: Callable[[int, int], None]) -> int:
    """Write a file for each run with series; return the number of files."""
    of_run = _by_run(results)
    runs = [run for run in results.runs().to_pylist() if run["run"] in of_run]
    names = Names()
    rows = []
    for number, run in enumerate(runs, start=1):
        levels = {factor: run[results.column_of(factor)] for factor in results.factors}
        name = names.of(" ".join([run["testbed"], cell_title(levels), f"#{run['replicate'] + 1}"]))
        texts = [level_text(level) for level in levels.values()]
        rows.append((f"{name}.flent.gz", run["run"], run["testbed"], *texts, run["replicate"]))
        data = document(run, results.factors, of_run[run["run"]], f"{name}.flent.gz")
        content = json.dumps(data, allow_nan=False).encode()
        (folder / f"{name}.flent.gz").write_bytes(gzip.compress(content, mtime=0))
        on_progress(number, len(runs))
    heads = ("file", "run", "testbed", *results.factors, "replicate")
    output.write(csv_text(heads, rows), folder / INDEX)
    return len(runs)


def _by_run(results: Results) -> dict[str, dict[str, list[Row]]]:
    """Return run -> table -> rows."""
    by_run: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for name in TABLES:
        if name in results.tables():
            for row in results.table(name).to_pylist():
                if all(row.get(column) is not None for column in TABLES[name]):
                    by_run[row["run"]][name].append(row)
    return by_run


def document(run: Row, factors: Sequence[str], tables: Mapping[str, Sequence[Row]], filename: str) -> Document:
    """Return the file's content. ``run`` is of the table of runs, ``tables`` the run's own rows."""
    intervals = tables.get("intervals", ())
    udp = any(row.get("datagrams") is not None for row in intervals)
    step_s = max(0.1, round(max((row["seconds"] for row in intervals), default=STEP_S), 1))
    series = dict([*_rates(intervals, udp, step_s), *_delays(tables.get("probes", ()), tables.get("delay_windows", ()))])
    last = max((point.at_s for own in series.values() for point in own.points), default=0.0)
    if last / step_s >= MOST_STEPS:
        raise TwinbedError(f"{filename}: a series of {last:g} s is too long to be written", advice="export without --flent")
    steps = math.floor(last / step_s) + 1
    began = run["started_s"]
    hosts = sorted({str(row["server"]) for row in tables.get("probes", ())})
    title = " ".join([run["testbed"], *(f"{factor} {level_text(run[factor])}" for factor in factors)])
    return {
        "version": VERSION,
        "x_values": [step * step_s for step in range(steps)],
        "results": {name: _stepped(own.points, steps, step_s) for name, own in series.items()},
        "raw_values": {
            name: [{"t": began + point.at_s, "val": point.value, **point.lasts} for point in own.points]
            for name, own in series.items()
        },
        "metadata": {
            "NAME": (UDP if udp else TCP) if intervals else PING,
            "TITLE": f"{title} #{run['replicate'] + 1}",
            "DATA_FILENAME": filename,
            "TIME": datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "T0": datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "LENGTH": steps * step_s,
            "TOTAL_LENGTH": steps * step_s,
            "STEP_SIZE": step_s,
            "HOST": hosts[0] if hosts else "server",
            "HOSTS": hosts or ["server"],
            "LOCAL_HOST": run["testbed"],
            "FLENT_VERSION": f"twinbed-{twinbed.__version__}",
            "NOTE": f"run {run['run']} of twinbed; each series' seconds count from its own beginning",
            "SERIES_META": {name: {"UNITS": own.unit} for name, own in series.items()},
        },
    }


def _rates(intervals: Iterable[Row], udp: bool, step_s: float) -> Iterator[tuple[str, Series]]:
    """Yield received rates under flent's names, sent rates, and iperf3's other numbers.

    A UDP flood of one client has no number in its name.
    """
    protocol = "UDP" if udp else "TCP"
    ends: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in intervals:
        if row["seconds"] < step_s / 2:
            continue
        way = "download" if row.get("direction") == "server_to_client" else "upload"
        ends[row["host"] or "client", way, row["end"]].append(row)
    single = udp and len({host for host, _, _ in ends}) == 1
    for (host, way, end), rows in sorted(ends.items()):
        receiver, short = {"upload": "server", "download": "client"}[way], way.removesuffix("load")
        alone = (host, way, receiver) not in ends
        arrived = f"{protocol} {way}" if single else f"{protocol} {way}::{host}"
        rate = arrived if end == receiver or alone else f"{protocol} sent {short}::{host}"
        yield rate, Series("Mbits/s", [_point(row, 8e-6 * row["bytes"] / row["seconds"], step_s) for row in rows])
        if any(row["retransmissions"] is not None for row in rows):
            points = [_point(row, row["retransmissions"], step_s) for row in rows if row["retransmissions"] is not None]
            yield f"TCP retransmissions {short}::{host}", Series("packets", points)
        if any(row["jitter_s"] is not None for row in rows):
            points = [_point(row, 1e3 * row["jitter_s"], step_s) for row in rows if row["jitter_s"] is not None]
            yield f"UDP jitter (ms) {short}::{host}", Series("ms", points)
        if any(row["lost_datagrams"] is not None for row in rows):
            points = [_point(row, row["lost_datagrams"], step_s) for row in rows if row["lost_datagrams"] is not None]
            yield f"UDP lost {short}::{host}", Series("packets", points)


def _point(row: Row, value: float, step_s: float) -> Point:
    """Return an interval's point: it belongs to the step of its middle, weighted by its length."""
    begin = math.floor((row["start_s"] + row["seconds"] / 2) / step_s) * step_s
    return Point(max(row["start_s"], begin), value, row["seconds"])


def _delays(probes: Sequence[Row], windows: Iterable[Row]) -> Iterator[tuple[str, Series]]:
    began: dict[str, int] = {}
    for row in probes:
        began[row["client"]] = min(began.get(row["client"], row["client_sent_ns"]), row["client_sent_ns"])
    series_of: dict[str, Series] = {}
    for row in probes:
        at = (row["client_sent_ns"] - began[row["client"]]) / 1e9
        series = series_of.setdefault(f"Ping (ms) UDP::{row['client']}", Series("ms"))
        series.points.append(Point(at, 1e3 * row["rtt_s"]))
    for row in windows:
        name = f"Jitter (ms) {row['direction'].replace('_', ' ')}::{row['client']}"
        if row["jitter_s"] is not None:
            series_of.setdefault(name, Series("ms")).points.append(Point(row["begin_s"], 1e3 * row["jitter_s"]))
    yield from series_of.items()


def _stepped(points: Iterable[Point], steps: int, step_s: float) -> list[float | None]:
    """Return weighted means by step."""
    of: list[list[Point]] = [[] for _ in range(steps)]
    for point in points:
        of[math.floor(point.at_s / step_s)].append(point)
    return [fmean([point.value for point in step], [point.seconds or 1.0 for point in step]) if step else None for step in of]
