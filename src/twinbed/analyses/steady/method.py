"""The analysis ``steady``: what the rate does inside runs, and how much differs between them.

In: a series of each run: the answers complete in each of BINS equal parts of its time (table ``exchanges``), or iperf3's
intervals.  Out, for each cell and testbed: the share of a run that is warm-up, its effect on the mean, and the drift after it.
The spread of runs' means is split into a part inside runs and a part between runs; the best length of a run follows.  A cell
whose runs are shown to drift by more than the margin gets a caution: its means describe no steady state.  Methods and sources:
twinbed.statistics.steady.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean

from twinbed.analyses.steady import words
from twinbed.analyses.steady.result import Astray, Budget, Share, Steady, SteadyStates
from twinbed.contracts.analysis import Analysis, Judged
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.record import Record
from twinbed.model.result import Interval
from twinbed.model.run import Level
from twinbed.model.tables import Tables
from twinbed.observations.inside import by_cell, by_run, complete, in_whole_seconds, numbers, of_clients, unsettled
from twinbed.show.section import Section
from twinbed.show.words import at_cell
from twinbed.statistics.bounds import Bounds
from twinbed.statistics.steady import (
    LEAST,
    PER_BIN,
    Over,
    Settling,
    Split,
    best_seconds,
    drift,
    in_budget,
    mean_error,
    mser5,
    over_runs,
    rates_of_answers,
    rates_of_intervals,
    settling,
    split,
    warm_ups,
)

HOUR = 3600.0
WORKLOAD = "workload"
"""The phase that measures."""


class SteadyParams(Judged):
    """The settings of ``steady``: ``margin`` is the drift that still counts as none."""


@dataclass(frozen=True, slots=True)
class _Series:
    """The rate over the time of one run."""

    record: Record
    rates: Sequence[float]
    seconds: float


class SteadyAnalysis(Analysis[SteadyParams, SteadyStates]):
    """Do runs warm up, do they settle, and how long should they last?

    \b
      twinbed analyse steady results/
      twinbed analyse steady results/ -o steady.html               as a page, with the rate over time
    """

    name = "steady"
    params = SteadyParams
    epilog = "docs/steady.md explains the tests, and what to do about runs that do not settle."
    table_names = ("cells", "series")
    is_in_reports = True

    def run(self, source: Tables, params: SteadyParams | None = None) -> SteadyStates:
        params = params or SteadyParams()
        margin, level = params.judged_by(source.outline)
        records = complete(source)
        name, series = _series(source, records)
        states = [
            _steady(cell.levels, testbed, runs, margin, level)
            for cell in by_cell(source, series, attrgetter("record"))
            for testbed, runs in cell.runs.items()
        ]
        left = len(records) - len(series)
        left_out = {f"runs whose series has fewer than {LEAST} values": left} if left else {}
        cautions = tuple(caution for state, settled in states for caution in _caution(state, settled))
        return SteadyStates(name, margin, tuple(state for state, _ in states), cautions=cautions, left_out=left_out)

    def section(self, result: SteadyStates) -> Section:
        return words.section(result)


def _series(tables: Tables, records: Sequence[Record]) -> tuple[str, list[_Series]]:
    series = [*_of_exchanges(tables, records), *_of_answers(tables, records)]
    if series:
        return "exchanges", series
    series = list(_of_intervals(tables, records))
    if series:
        return "intervals", series
    series = list(_of_requests(tables, records))
    if series:
        return "requests", series
    raise TwinbedError(
        f"{tables.shown} has no rate over time inside its runs",
        advice=f"add the instrument packets, with {LEAST * PER_BIN} answers a run or more, or use iperf3 for {LEAST} intervals",
    )


def _of_exchanges(tables: Tables, records: Sequence[Record]) -> Iterator[_Series]:
    """Yield series of answers complete in equal parts of the time from the first request to the last answer."""
    import numpy as np

    table = tables.table("exchanges")
    if not table.num_rows:
        return
    lasted, starts = numbers(table["duration_s"]), table["start_ns"].to_pylist()
    begun = np.array([start or 0 for start in starts], dtype=np.int64)
    places = by_run(table, of_clients(table) & ~np.isnan(lasted) & np.array([start is not None for start in starts], bool))
    for record in records:
        own = places.get(record.id, ())
        rates = rates_of_answers(begun[own], lasted[own]) if len(own) else None
        if rates is not None:
            yield _Series(record, rates.rates, rates.seconds)


def _of_requests(tables: Tables, records: Sequence[Record]) -> Iterator[_Series]:
    """Yield series of requests that end in equal parts of the time; none of ab's, whose starts are in whole seconds."""
    import numpy as np

    table = tables.table("requests")
    if not table.num_rows or in_whole_seconds(tables):
        return
    begun, lasted = (numbers(table[name]) for name in ("start_s", "total_s"))
    places = by_run(table, ~np.isnan(begun + lasted))
    for record in records:
        own = places.get(record.id, ())
        found = rates_of_answers((begun[own] * 1e9).astype(np.int64), lasted[own]) if len(own) else None
        if found is not None:
            yield _Series(record, found.rates, found.seconds)


def _of_answers(tables: Tables, records: Sequence[Record]) -> Iterator[_Series]:
    """Yield the series of runs of very many requests."""
    of_run = _rows(tables, "answers")
    for record in records:
        if parts := of_run.get(record.id):
            seconds = math.fsum(row["seconds"] for row in parts)
            yield _Series(record, [row["answers"] / row["seconds"] for row in parts], seconds)


def _of_intervals(tables: Tables, records: Sequence[Record]) -> Iterator[_Series]:
    of_run = _rows(tables, "intervals")
    for record in records:
        rates = rates_of_intervals(of_run.get(record.id, ()))
        if rates is not None:
            yield _Series(record, rates.rates, rates.seconds)


def _rows(tables: Tables, name: str) -> Mapping[str, list[dict[str, float]]]:
    """Return the rows of a table by run."""
    of_run: dict[str, list[dict[str, float]]] = defaultdict(list)
    for row in tables.table(name).to_pylist():
        of_run[row["run"]].append(row)
    return of_run


def _steady(
    cell: Mapping[str, Level], testbed: str, runs: Sequence[_Series], margin: float, level: float
) -> tuple[Steady, Settling]:
    bins = min(len(run.rates) for run in runs)
    means = [fmean(run.rates) for run in runs]
    relative = [_parts(run.rates, mean, bins) for run, mean in zip(runs, means, strict=True)]
    sums = [math.fsum(values) for values in zip(*relative, strict=True)]
    together = [total / len(runs) for total in sums]
    cut = mser5(together)
    warm_up = over_runs(warm_ups(relative), level)
    settled = settling([drift(run.rates) or 0.0 for run in runs], margin, level)
    parts = None
    if len(runs) > 1:
        centre = fmean(means)
        errors = [mean_error(run.rates) / centre for run in runs]
        parts = split([mean / centre for mean in means], errors)
    seconds, overhead = fmean(run.seconds for run in runs), fmean(_overhead(run.record) for run in runs)
    steady = Steady(
        cell,
        testbed,
        len(runs),
        seconds,
        overhead,
        tuple(together),
        tuple(min(values) for values in zip(*relative, strict=True)),
        tuple(max(values) for values in zip(*relative, strict=True)),
        cut / bins,
        _share(warm_up, 1 - level),
        _share(settled.over, 1 - level),
        settled.settles,
        Astray(runs[settled.astray.at].record.id, settled.astray.value, settled.astray.others) if settled.astray else None,
        _budget(parts, seconds, overhead) if parts else None,
    )
    return steady, settled


def _budget(parts: Split, seconds: float, overhead: float) -> Budget:
    best = best_seconds(parts, seconds, overhead)
    # How short a run may be also depends on the warm-up, which this arithmetic does not know.
    length = seconds if best is None else max(best, seconds / 2)
    runs, error = in_budget(parts, seconds, overhead, length, HOUR)
    return Budget(parts.deviation, parts.within, parts.between, best, length, runs, error)


def _parts(rates: Sequence[float], mean: float, bins: int) -> list[float]:
    """Return the rates as shares of the mean, in ``bins`` equal parts."""
    import numpy as np

    at = np.linspace(0, len(rates), bins + 1)
    whole = np.concatenate([[0.0], np.cumsum(rates)])
    sums = np.diff(np.interp(at, np.arange(len(rates) + 1), whole))
    return [float(value) for value in sums / (len(rates) / bins) / mean] if mean else [0.0] * bins


def _overhead(record: Record) -> float:
    return math.fsum(seconds for phase, seconds in record.phases.items() if phase != WORKLOAD)


def _share(over: Over, alpha: float) -> Share:
    bounds: Bounds | None = over.interval
    return Share(over.mean, Interval(*bounds) if bounds else None, over.p_value is not None and over.p_value <= alpha)


def _caution(state: Steady, settled: Settling) -> Iterator[Caution]:
    if detail := unsettled(settled):
        yield Caution(Kind.UNSETTLED, f"{detail}{at_cell(state.cell)}", state.testbed)


analysis = SteadyAnalysis()
