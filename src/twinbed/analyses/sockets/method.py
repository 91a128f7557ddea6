"""The analysis ``sockets``: why senders wait on each testbed, and their congestion windows over time.

In: the table ``sockets`` and the metrics of that instrument.  Out, for each cell, testbed and sending side: the share of
connections' time for each reason, as means over runs.  Also, for each run, the congestion window of the connection with the
most acknowledged bytes.  Definitions and sources: docs/sockets.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from twinbed.analyses.sockets import words
from twinbed.analyses.sockets.result import Limits, Senders, Window
from twinbed.contracts.analysis import Analysis, NoSettings
from twinbed.metrics import sockets as metrics
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.record import Record
from twinbed.model.run import Level
from twinbed.model.tables import Tables
from twinbed.observations.inside import by_cell, complete
from twinbed.show.section import Section
from twinbed.show.words import at_cell

if TYPE_CHECKING:
    import pyarrow as pa

SIDES = ("client", "server")
SENDS = 0.1
"""A side with at least this share of the bytes counts as sending."""
POINTS = 160
"""The most points of a window over time."""
OF_LIMITS = {
    "application": metrics.APPLICATION_LIMITED,
    "rwnd": metrics.RWND_LIMITED,
    "sndbuf": metrics.SNDBUF_LIMITED,
    "network": metrics.NETWORK_LIMITED,
    "cwnd": metrics.CWND,
    "srtt_s": metrics.SRTT,
    "seen": metrics.SEEN_SHARE,
}

End = tuple[str, str, int]
"""Run, host, socket."""


class SocketsAnalysis(Analysis[NoSettings, Senders]):
    """Why do TCP senders wait: for the application, the receive window, the send buffer, or the network?

    The study needs the instrument sockets.

    \b
      twinbed analyse sockets results/
      twinbed analyse sockets results/ -o sockets.html             as a page, with congestion windows over time
      twinbed analyse sockets results/ --table windows -o w.csv    congestion windows as rows
    """

    name = "sockets"
    params = NoSettings
    epilog = "docs/sockets.md explains how each reason is measured."
    table_names = ("limits", "windows")
    is_in_reports = True

    def run(self, source: Tables, params: NoSettings | None = None) -> Senders:
        table = source.table("sockets")
        if not table.num_rows:
            raise TwinbedError(f"{source.shown} has no samples of sockets", advice="run the study with instruments: [sockets]")
        records = complete(source)
        bytes_of = _bytes(table)
        sampled = {run for run, _, _ in bytes_of}
        values, series = _values(source), _series(table, _largest(bytes_of))
        limits, windows = list[Limits](), list[Window]()
        for cell in by_cell(source, [record for record in records if record.id in sampled], lambda record: record):
            for testbed, runs in cell.runs.items():
                sides = _sending(bytes_of, {record.id for record in runs})
                limits += [_limits(cell.levels, testbed, side, runs, values) for side in sides]
                windows += _windows(cell.levels, testbed, runs, series)
        left = sum(record.id not in sampled for record in records)
        left_out = {"runs without a sample of a socket": left} if left else {}
        return Senders(
            tuple(limits),
            tuple(windows),
            source.outline.reference,
            source.outline.testbeds,
            cautions=tuple(_cautions(limits)),
            left_out=left_out,
        )

    def section(self, result: Senders) -> Section:
        return words.section(result)

    def says_something(self, result: Senders) -> bool:
        return bool(result.limits)


def _bytes(table: pa.Table) -> dict[End, float]:
    """Return the bytes acknowledged on each end of a connection; 0 if the kernel does not report them."""
    ends = table.group_by(["run", "host", "socket"]).aggregate([("bytes_acked", "max")])
    return {(row["run"], row["host"], row["socket"]): row["bytes_acked_max"] or 0 for row in ends.to_pylist()}


def _largest(bytes_of: Mapping[End, float]) -> list[End]:
    """Return the end with the most bytes in each run."""
    of_run: dict[str, End] = {}
    for end in sorted(bytes_of, key=lambda end: (-bytes_of[end], end)):
        of_run.setdefault(end[0], end)
    return list(of_run.values())


def _side(host: str) -> str:
    return next((side for side in SIDES if host.startswith(side)), host)


def _sending(bytes_of: Mapping[End, float], runs: set[str]) -> list[str]:
    """Return the sides that send more than a little."""
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
    by_side: dict[tuple[str, str], dict[str, list[float]]] = {}
    if not table.num_rows:
        return by_side
    names = pa.array([metric.name for metric in OF_LIMITS.values()])
    kept = table.filter(pc.and_(pc.is_in(table["metric"], names), pc.is_valid(table["value"])))
    for row in kept.select(["run", "host", "metric", "value"]).to_pylist():
        by_side.setdefault((row["run"], _side(row["host"])), {}).setdefault(row["metric"], []).append(row["value"])
    return by_side


def _limits(cell: Mapping[str, Level], testbed: str, side: str, records: Sequence[Record], values: Values) -> Limits:
    of_runs = [values.get((record.id, side), {}) for record in records]

    def mean(name: str) -> float | None:
        values_of_runs = [fmean(of_run[name]) for of_run in of_runs if name in of_run]
        return fmean(values_of_runs) if values_of_runs else None

    means = {name: mean(metric.name) for name, metric in OF_LIMITS.items()}
    return Limits(cell, testbed, side, len(records), **means)


def _series(table: pa.Table, ends: Sequence[End]) -> dict[End, tuple[list[float], list[float]]]:
    """Return the times and windows of each end's samples, in the order of time."""
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
    own = {end: points for end, points in series.items() if end[0] in runs}
    by_mean = sorted(own, key=lambda end: (fmean(own[end][1]), end))
    middle = by_mean[(len(by_mean) - 1) // 2] if by_mean else None
    for end, (times, windows) in own.items():
        seconds, cwnd = _thinned([at - times[0] for at in times], windows)
        yield Window(cell, testbed, end[0], end[1], end == middle, seconds, cwnd)


def _thinned(seconds: Sequence[float], cwnd: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return at most POINTS samples: the last of each equal part of the time. Means would show windows that never existed."""
    width = seconds[-1] / POINTS
    if len(seconds) <= POINTS or width == 0:
        return tuple(seconds), tuple(cwnd)
    last = {min(int(at / width), POINTS - 1): place for place, at in enumerate(seconds)}
    return tuple(seconds[place] for place in last.values()), tuple(cwnd[place] for place in last.values())


def _cautions(limits: Sequence[Limits]) -> Iterator[Caution]:
    for sender in limits:
        if sender.seen is not None and sender.seen < metrics.FEWEST_SEEN:
            detail = f"{100 * sender.seen:.2g} % of connections have a sample{at_cell(sender.cell)}"
            yield Caution(Kind.UNSAMPLED, detail, sender.testbed)


analysis = SocketsAnalysis()
