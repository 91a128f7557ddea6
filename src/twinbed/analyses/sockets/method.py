"""The analysis ``sockets``: what holds senders up on each testbed, and their congestion windows over time.

In: the table ``sockets`` and the metrics of the instrument of that name.  Out, for each cell, testbed and side that sends: the
share of connections' time that each reason takes, as means over runs; and of each run the congestion window of the connection
that had the most bytes acknowledged.  Definitions and sources: docs/sockets.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from twinbed.analyses.sockets.result import Limits, Senders, Window
from twinbed.contracts.analysis import Analysis, Section
from twinbed.metrics import sockets as metrics
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.json import loads
from twinbed.model.record import Record
from twinbed.model.run import Level, Status
from twinbed.model.tables import Tables
from twinbed.show.table import Row
from twinbed.show.words import cell_title

if TYPE_CHECKING:
    import pyarrow as pa

SIDES = ("client", "server")
SENDS = 0.1
"""Share of the bytes from which on a side is one that sends."""
POINTS = 160
"""Of a window over time, at most."""
OF_LIMITS = {
    "application": metrics.APPLICATION_LIMITED,
    "rwnd": metrics.RWND_LIMITED,
    "sndbuf": metrics.SNDBUF_LIMITED,
    "network": metrics.NETWORK_LIMITED,
    "cwnd": metrics.CWND,
    "srtt_s": metrics.SRTT,
    "seen": metrics.SEEN_SHARE,
}

Group = tuple[str, str]
"""Cell as JSON, testbed."""
End = tuple[str, str, int]
"""Run, host, socket."""


class SocketsParams(BaseModel):
    """It has no settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SocketsAnalysis(Analysis[SocketsParams, Senders]):
    """What holds senders up."""

    name = "sockets"
    params = SocketsParams
    summary = "what holds TCP senders up, and their congestion windows over time"

    def run(self, source: Tables, params: SocketsParams | None = None) -> Senders:
        table = source.table("sockets")
        if not table.num_rows:
            raise TwinbedError(f"{source.shown} has no samples of sockets", advice="the instrument sockets takes them")
        complete = [record for record in source.records if record.status is Status.COMPLETE]
        bytes_of = _bytes(table)
        sampled = {run for run, _, _ in bytes_of}
        groups: dict[Group, list[Record]] = {}
        for record in complete:
            if record.id in sampled:
                groups.setdefault((_cell(record), str(record.settings["testbed"]["name"])), []).append(record)
        ordered = [
            (cell, testbed)
            for cell in dict.fromkeys(cell for cell, _ in groups)
            for testbed in source.outline.testbeds
            if (cell, testbed) in groups
        ]
        values = _values(source)
        series = _series(table, _largest(bytes_of))
        limits = [
            _limits(loads(cell), testbed, side, groups[cell, testbed], values)
            for cell, testbed in ordered
            for side in _sending(bytes_of, {record.id for record in groups[cell, testbed]})
        ]
        windows = [
            window for cell, testbed in ordered for window in _windows(loads(cell), testbed, groups[cell, testbed], series)
        ]
        left = sum(record.id not in sampled for record in complete)
        left_out = {"runs without a sample of a socket": left} if left else {}
        return Senders(
            tuple(limits), tuple(windows), source.outline.reference, source.outline.testbeds, tuple(_cautions(limits)), left_out
        )

    def tables(self, result: Senders) -> Mapping[str, Sequence[Row]]:
        from twinbed.analyses.sockets.tables import rows, window_rows

        return {"limits": rows(result), "windows": window_rows(result)}

    def section(self, result: Senders) -> Section:
        from twinbed.analyses.sockets.section import section

        return section(result)

    def sections(self, source: Tables) -> Sequence[Section]:
        try:
            result = self.run(source)
        except TwinbedError:  # no samples: nothing to say
            return ()
        if not result.limits:
            return ()
        return (self.section(result),)


def _cell(record: Record) -> str:
    return json.dumps({factor: value for factor, value in record.levels.items() if factor != "testbed"}, sort_keys=True)


def _bytes(table: pa.Table) -> dict[End, float]:
    """Bytes acknowledged on each end of a connection; 0 where the kernel does not say."""
    ends = table.group_by(["run", "host", "socket"]).aggregate([("bytes_acked", "max")])
    return {(row["run"], row["host"], row["socket"]): row["bytes_acked_max"] or 0 for row in ends.to_pylist()}


def _largest(bytes_of: Mapping[End, float]) -> list[End]:
    """One end a run."""
    of_run: dict[str, End] = {}
    for end in sorted(bytes_of, key=lambda end: (-bytes_of[end], end)):
        of_run.setdefault(end[0], end)
    return list(of_run.values())


def _side(host: str) -> str:
    return next((side for side in SIDES if host.startswith(side)), host)


def _sending(bytes_of: Mapping[End, float], runs: set[str]) -> list[str]:
    """The sides that send more than a little."""
    sent: dict[str, float] = {}
    for (run, host, _), count in bytes_of.items():
        if run in runs:
            sent[_side(host)] = sent.get(_side(host), 0.0) + count
    return sorted(side for side, count in sent.items() if count >= SENDS * sum(sent.values()))


Values = Mapping[tuple[str, str], Mapping[str, Sequence[float]]]
"""Run and side -> metric -> the values of its hosts."""


def _values(source: Tables) -> Values:
    import pyarrow as pa
    import pyarrow.compute as pc

    table = source.table("metrics")
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    if not table.num_rows:
        return found
    names = pa.array([metric.name for metric in OF_LIMITS.values()])
    kept = table.filter(pc.and_(pc.is_in(table["metric"], names), pc.is_valid(table["value"])))
    for row in kept.select(["run", "host", "metric", "value"]).to_pylist():
        found.setdefault((row["run"], _side(row["host"])), {}).setdefault(row["metric"], []).append(row["value"])
    return found


def _limits(cell: Mapping[str, Level], testbed: str, side: str, records: Sequence[Record], values: Values) -> Limits:
    of_runs = [values.get((record.id, side), {}) for record in records]

    def mean(name: str) -> float | None:
        each = [fmean(of_run[name]) for of_run in of_runs if name in of_run]
        return fmean(each) if each else None

    found = {name: mean(metric.name) for name, metric in OF_LIMITS.items()}
    return Limits(cell, testbed, side, len(records), **found)


def _series(table: pa.Table, ends: Sequence[End]) -> dict[End, tuple[list[float], list[float]]]:
    """End -> times and windows of its samples, in the order of time."""
    import pyarrow as pa

    keys = ["run", "host", "socket"]
    columns = zip(*ends, strict=True)
    types = [table.schema.field(key).type for key in keys]
    chosen = pa.table({key: pa.array(column, kind) for key, column, kind in zip(keys, columns, types, strict=True)})
    joined = table.select([*keys, "time_s", "cwnd"]).join(chosen, keys=keys, join_type="inner")
    joined = joined.sort_by([(key, "ascending") for key in ("time_s", *keys)])  # threads join in any order
    series: dict[End, tuple[list[float], list[float]]] = {}
    for row in joined.to_pylist():
        times, windows = series.setdefault((row["run"], row["host"], row["socket"]), ([], []))
        times.append(row["time_s"])
        windows.append(row["cwnd"])
    return series


def _windows(
    cell: Mapping[str, Level],
    testbed: str,
    records: Sequence[Record],
    series: Mapping[End, tuple[list[float], list[float]]],
) -> Iterator[Window]:
    runs = {record.id for record in records}
    own = {end: each for end, each in series.items() if end[0] in runs}
    by_mean = sorted(own, key=lambda end: (fmean(own[end][1]), end))
    middle = by_mean[(len(by_mean) - 1) // 2] if by_mean else None
    for end, (times, windows) in own.items():
        seconds, cwnd = _thinned([at - times[0] for at in times], windows)
        yield Window(cell, testbed, end[0], end[1], end == middle, seconds, cwnd)


def _thinned(seconds: Sequence[float], cwnd: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """At most POINTS: the last sample of each equal part of the time, as a mean would show windows that there never were."""
    width = seconds[-1] / POINTS
    if len(seconds) <= POINTS or width == 0:
        return tuple(seconds), tuple(cwnd)
    last = {min(int(at / width), POINTS - 1): place for place, at in enumerate(seconds)}
    return tuple(seconds[place] for place in last.values()), tuple(cwnd[place] for place in last.values())


def _cautions(limits: Sequence[Limits]) -> Iterator[Caution]:
    for each in limits:
        if each.seen is not None and each.seen < metrics.FEWEST_SEEN:
            where = f" at {cell_title(each.cell)}" if each.cell else ""
            detail = f"{100 * each.seen:.2g} % of connections have a sample{where}"
            yield Caution(Kind.UNSAMPLED, detail, each.testbed)


analysis = SocketsAnalysis()
