"""The analysis ``tails``: quantiles of the times of single requests, compared with the reference testbed.

In: one row a request.  The rows come from captures (``exchanges``: from a request's first packet to its answer's last, on the
client's link) or from the load generator (``requests``: whole milliseconds of ab).  Out: each quantile of each cell, with its
ratio to the reference's.  Requests of one run share its state, so the run is the unit.  Each run has its own quantile (Harrell
and Davis).  Quantiles of runs are compared as any other metric: by logarithms, within blocks where the study says so.  A
quantile of few requests is biased towards the middle: a run needs BEYOND requests above it.

The quantiles over all deciles and on to P99.9 are the shift function (Doksum 1974, Ann. Stat. 2:267; Wilcox and Erceg-Hurn
2012, J. Appl. Stat. 39:2655), here of ratios.  Only the quantiles in VERDICTS get a verdict, with Holm's correction over all
verdicts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from statistics import fmean
from typing import Literal

from pydantic import Field

from twinbed.analyses.tails import words
from twinbed.analyses.tails.result import Shift, Tail, Tails
from twinbed.contracts.analysis import Analysis, Judged
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.record import Record
from twinbed.model.result import Interval, Pairing, Verdict
from twinbed.model.run import Level
from twinbed.model.tables import Tables
from twinbed.observations.apart import in_succession
from twinbed.observations.inside import by_cell, by_run, complete, in_whole_seconds, numbers, of_clients
from twinbed.show.section import Section
from twinbed.show.words import at_cell
from twinbed.statistics.multiplicity import holm
from twinbed.statistics.quantile import harrell_davis
from twinbed.statistics.ratio import RatioTest, ratio_test

VERDICTS = (0.5, 0.9, 0.99)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
BEYOND = 5
"""Requests of each run that must lie beyond a quantile."""
MILLISECOND = 0.001
FEW = 5
"""Runs; fewer get a caution."""


class TailsParams(Judged):
    """The settings of ``tails``; null takes what the study file says."""

    source: Literal["exchanges", "requests"] | None = Field(
        default=None,
        alias="times",
        description="times as captured on the clients' links, or as ab wrote them. Default: as captured, if they were",
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """One run's quantiles."""

    record: Record
    requests: int
    quantiles: Mapping[float, float]


class TailsAnalysis(Analysis[TailsParams, Tails]):
    """Do the slowest requests take as long as on the reference? Users feel them.

    Requests of one run are not independent. Each run therefore has its own quantiles, and the quantiles of runs are compared.
    The median, P90 and P99 get verdicts.

    \b
      twinbed analyse tails results/
      twinbed analyse tails results/ --all
      twinbed analyse tails results/ -o tails.html                 as a page
    """

    name = "tails"
    params = TailsParams
    epilog = "docs/tails.md explains the comparison, and what a quantile of few requests is worth."
    table_names = ("shifts", "quantiles")
    is_against_a_reference = True
    more = "Every quantile, not only the median, P90 and P99."
    is_in_reports = True

    def run(self, source: Tables, params: TailsParams | None = None) -> Tails:
        params = params or TailsParams()
        outline = source.outline
        margin, confidence = params.judged_by(outline)
        alpha = round(1 - confidence, 12)
        if outline.reference is None:
            raise TwinbedError(
                f"{source.shown} has no reference testbed to compare with", advice="--reference TESTBED names one"
            )
        name, times, incomplete = _times(source, params.source)
        records = complete(source)
        step = MILLISECOND if name == "requests" and in_whole_seconds(source) else 0.0
        whole = [
            _Run(record, times[record.id].requests, _quantiles(times[record.id])) for record in records if record.id in times
        ]
        runs = [replace(run, quantiles=_above_0(run.quantiles, step)) for run in whole]
        paired = outline.data.get("comparison") == Pairing.PAIRED
        tails, shifts, cautions = list[Tail](), list[Shift](), list[Caution]()
        for cell in by_cell(source, runs, attrgetter("record")):
            cautions += in_succession(source, {testbed: [run.record.id for run in of] for testbed, of in cell.runs.items()})
            for testbed, own in cell.runs.items():
                tails.append(_tail(cell.levels, testbed, own))
                cautions += _few(cell.levels, testbed, own)
                if testbed != outline.reference and outline.reference in cell.runs:
                    pair = own, cell.runs[outline.reference]
                    names = cell.levels, testbed, outline.reference
                    shifts += _shifts(names, pair, margin, alpha, step, paired)
        left_out = {
            "runs without times of requests": len(records) - len(runs),
            "requests without an answer": incomplete,
            "quantiles that the load generator wrote as 0 ms": sum(len(run.quantiles) for run in whole)
            - sum(len(run.quantiles) for run in runs),
        }
        return Tails(
            source=name,
            step=step,
            reference=outline.reference,
            margin=margin,
            confidence=confidence,
            tails=tuple(tails),
            shifts=tuple(_decided(shifts, alpha)),
            family=sum(shift.verdict is not None for shift in shifts),
            cautions=tuple(dict.fromkeys(cautions)),
            left_out={reason: count for reason, count in left_out.items() if count},
        )

    def section(self, result: Tails) -> Section:
        return words.section(result)

    def says_something(self, result: Tails) -> bool:
        return bool(result.verdicts)


@dataclass(frozen=True, slots=True)
class _Times:
    """The times of one run's requests."""

    requests: int
    quantiles: Callable[[Sequence[float]], list[float]]


def _times(tables: Tables, wanted: str | None) -> tuple[str, dict[str, _Times], int]:
    """Return the table that times are from, the times of each run, and how many requests have no answer."""
    for name, column in (("exchanges", "duration_s"), ("requests", "total_s")):
        if wanted in (None, name):
            one_by_one, unanswered = _of_table(tables, name, column)
            together, of_histograms = _of_histograms(tables, name)
            if one_by_one or together:
                return name, one_by_one | together, unanswered + of_histograms
    raise TwinbedError(
        f"{tables.shown} has no times of single requests",
        advice="add the instrument packets (HTTP, or the workload command with work and a listening port) or use ApacheBench "
        "(tool: ab); for quantiles of whole runs: `twinbed compare`",
    )


def _of_table(tables: Tables, name: str, column: str) -> tuple[dict[str, _Times], int]:
    import numpy as np

    table = tables.table(name)
    if not table.num_rows:
        return {}, 0
    values = numbers(table[column])
    asked, answered = np.ones(len(values), bool), ~np.isnan(values)
    if name == "exchanges":
        asked = of_clients(table)
        answered &= np.array([complete is True for complete in table["complete"].to_pylist()], bool)
    times = {run: values[rows] for run, rows in by_run(table, asked & answered, values).items() if len(rows)}
    return {run: _Times(len(own), partial(harrell_davis, own)) for run, own in times.items()}, int((asked & ~answered).sum())


def _of_histograms(tables: Tables, name: str) -> tuple[dict[str, _Times], int]:
    """Return the times of runs of very many requests."""
    import numpy as np

    from twinbed.statistics.histogram import Histogram, bucket

    lows: dict[str, list[int]] = defaultdict(list)
    counts: dict[str, list[int]] = defaultdict(list)
    unanswered = 0
    for row in tables.table("latencies").to_pylist():
        if row["source"] != name:
            continue
        if row["from_ns"] is None:
            unanswered += row["requests"]
        else:
            lows[row["run"]].append(row["from_ns"])
            counts[row["run"]].append(row["requests"])
    times = {}
    for run, low in lows.items():
        of_clients = Histogram(bucket(np.array(low, np.int64)), np.array(counts[run], np.int64))
        whole = Histogram.together([of_clients])
        times[run] = _Times(len(whole), whole.quantiles)
    return times, unanswered


def _quantiles(times: _Times) -> dict[float, float]:
    shares = [share for share in SHARES if times.requests * min(share, 1 - share) >= BEYOND - 1e-9]
    return dict(zip(shares, times.quantiles(shares), strict=True))


def _above_0(quantiles: Mapping[float, float], step: float) -> dict[float, float]:
    """Return the quantiles of at least half the step in which times are written. Less is written as 0, which has no ratio."""
    return {share: value for share, value in quantiles.items() if value >= step / 2}


def _tail(cell: Mapping[str, Level], testbed: str, runs: Sequence[_Run]) -> Tail:
    shares = [share for share in SHARES if all(share in run.quantiles for run in runs)]
    means = {share: _mean([run.quantiles[share] for run in runs]) for share in shares}
    counts = [run.requests for run in runs]
    return Tail(cell, testbed, len(runs), sum(counts), min(counts), means, tuple(run.quantiles for run in runs))


def _mean(values: Sequence[float]) -> float:
    return math.exp(fmean(map(math.log, values))) if min(values) > 0 else fmean(values)


def _few(cell: Mapping[str, Level], testbed: str, runs: Sequence[_Run]) -> Iterator[Caution]:
    if len(runs) < FEW:
        yield Caution(Kind.FEW_REPLICATES, f"{len(runs)} runs{at_cell(cell)}", testbed)


def _shifts(
    names: tuple[Mapping[str, Level], str, str],
    pair: tuple[Sequence[_Run], Sequence[_Run]],
    margin: float,
    alpha: float,
    step: float,
    paired: bool,
) -> Iterator[Shift]:
    own, reference = (sorted(runs, key=lambda run: run.record.block) for runs in pair)
    if min(len(own), len(reference)) < 2:
        return
    blocks = [[run.record.block for run in runs] for runs in (own, reference)]
    in_pairs = paired and blocks[0] == blocks[1] and len(set(blocks[0])) == len(blocks[0])
    for share in SHARES:
        if not all(share in run.quantiles for run in (*own, *reference)):
            continue
        x, y = ([run.quantiles[share] for run in runs] for runs in (own, reference))
        test = ratio_test(x, y, margin, alpha, steps=(step, step), paired=in_pairs)
        if test is not None:
            yield _shift(names, share, (_mean(x), _mean(y)), test, alpha, in_pairs)


def _shift(
    names: tuple[Mapping[str, Level], str, str],
    share: float,
    means: tuple[float, float],
    test: RatioTest,
    alpha: float,
    paired: bool,
) -> Shift:
    verdict = Verdict.EQUIVALENT if test.p_equivalent <= alpha else Verdict.INCONCLUSIVE
    return Shift(
        *names,
        share,
        *means,
        ratio=test.ratio,
        interval=Interval(*test.interval) if test.interval else None,
        p_equivalent=test.p_equivalent,
        p_different=test.p_different,
        paired=paired,
        verdict=verdict if share in VERDICTS else None,
    )


def _decided(shifts: Sequence[Shift], alpha: float) -> list[Shift]:
    """Return the shifts with Holm's correction over all verdicts."""
    adjusted: dict[int, float] = defaultdict(float)
    family = [at for at, shift in enumerate(shifts) if shift.verdict is not None]
    adjusted.update(zip(family, holm([shifts[at].p_different for at in family]), strict=True))
    return [
        replace(shift, p_different=adjusted[at], verdict=Verdict.DIFFERENT if adjusted[at] <= alpha else shift.verdict)
        if at in adjusted
        else shift
        for at, shift in enumerate(shifts)
    ]


analysis = TailsAnalysis()
