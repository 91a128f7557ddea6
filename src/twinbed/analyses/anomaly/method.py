"""The analysis ``anomaly``: at which N is a pair faster than alone, and which metrics move with its rate beyond the work done?

In: runs with N, their rate, and every other metric and event.  Out, for each combination of the other levels: ``faster``
compares each N with N = 1 (the marks of the LDRD report's Table 3.1).  If any N is faster, ``counters`` has rank correlations
with the rate (its Table 3.2): of every other metric, beyond what work and time explain, over the runs up to the largest such N.
Limits and sources: twinbed.statistics.anomaly.

Candidates are all metrics of the runs, once each, in the form that separates them from the work done.  Left out: the response
at any place; a count if the same count per unit of work exists; a rate or a share of time if its count exists.  Values of hosts
of one role (client1, client2, ...) are one: sums of counts, means of times and levels.  The tables ``interrupts`` and
``events`` add the kernels' events by line, by device and by kind.  Metrics with a part that grows with time are given per unit
of work: counts by the work done in the run, rates by the work of all pairs in a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

from pydantic import Field

from twinbed.analyses.anomaly import words
from twinbed.analyses.anomaly.result import Anomalies
from twinbed.contracts.analysis import Analysis
from twinbed.metrics.counters import CPU_BUSY, CPU_IDLE, CPU_STEAL, RATES
from twinbed.metrics.derived import unit_of_work
from twinbed.metrics.events import METRICS
from twinbed.metrics.metric import Layer
from twinbed.model.error import TwinbedError
from twinbed.model.json import Json
from twinbed.model.tables import Tables
from twinbed.observations.numbered import ALONE, Numbered, OverN, each_by_itself, over_n
from twinbed.show.section import Section
from twinbed.statistics.anomaly import LEAST, Faster, Given, Measure, Moving, Runs, faster, moving


class AnomalyParams(OverN):
    """The settings of ``anomaly``; null takes the default."""

    alpha: float = Field(default=0.05, gt=0, lt=0.5, description="the chance of a wrong mark, and the share of wrong counters")


class AnomalyAnalysis(Analysis[AnomalyParams, Anomalies]):
    """At which N is a pair faster than alone, and which other metrics move with its rate, beyond work and time?

    \b
      twinbed analyse anomaly results/
      twinbed analyse anomaly results/ --format csv --table counters
    """

    name = "anomaly"
    params = AnomalyParams
    epilog = "docs/capacity.md explains the tests. A metric that moves with a rate need not cause it."
    table_names = ("faster", "counters")

    def run(self, source: Tables, params: AnomalyParams | None = None) -> Anomalies:
        params = params or AnomalyParams()
        frame, over, numbered = over_n(source, params)
        groups, refused = each_by_itself(numbered, lambda group: (group, _faster(group, over, params.alpha)))
        left_out = {**frame.left_out, **refused}
        if alone := sum(len(group.n) - sum(map(len, group.enough(LEAST, 1).values())) for group, _ in groups):
            left_out[ALONE] = alone
        counters: list[dict[str, Json]] = []
        largest_of = [(group, max((mark.n for mark in tested if mark.faster), default=0)) for group, tested in groups]
        anomalous = [(group, largest) for group, largest in largest_of if largest]
        works = {run: work for group, _ in anomalous for run, work in zip(group.runs, _work(group, params), strict=True)}
        others = candidates(source, frame.response.partition("@")[0], works) if anomalous else {}
        for group, largest in anomalous:
            counters += [_counter(group, counter) for counter in _moving(group, others, largest, params)]
        marks = tuple(_mark(group, mark) for group, tested in groups for mark in tested)
        return Anomalies(marks, tuple(counters), cautions=frame.cautions, left_out=left_out)

    def section(self, result: Anomalies) -> Section:
        return words.section(result)


def _faster(group: Numbered, over: str, alpha: float) -> list[Faster]:
    try:
        return faster(group.enough(LEAST, 1), alpha)
    except ValueError as error:
        where = f"{group.name}: " if group.name else ""
        raise TwinbedError(
            f"{where}{error}, with N the {over}", advice="give N = 1 among the levels, and replicates: 5 or more"
        ) from error


def _work(group: Numbered, params: AnomalyParams) -> list[float]:
    """Return the work of all pairs in a second, by run."""
    return [value * (n if params.per_pair else 1) for value, n in zip(group.values, group.n, strict=True)]


def _moving(group: Numbered, others: Mapping[str, Candidate], largest: int, params: AnomalyParams) -> list[Moving]:
    rows = [row for row, n in enumerate(group.n) if n <= largest and group.values[row] > 0]
    works = _work(group, params)
    runs = Runs([group.values[row] for row in rows], [group.n[row] for row in rows], [works[row] for row in rows])
    metrics = {
        name: Given(candidate.measure, [candidate.by_run.get(group.runs[row]) for row in rows], candidate.reported)
        for name, candidate in others.items()
    }
    valued = {name: given for name, given in metrics.items() if any(value is not None for value in given.values)}
    return moving(runs, valued, params.alpha)


def _mark(group: Numbered, mark: Faster) -> dict[str, Json]:
    return {
        **group.levels,
        "n": mark.n,
        "ratio": mark.ratio,
        "low": mark.interval.low,
        "high": mark.interval.high,
        "p": mark.p_value,
        "p_holm": mark.adjusted,
        "faster": mark.faster,
    }


def _counter(group: Numbered, counter: Moving) -> dict[str, Json]:
    return {
        **group.levels,
        "counter": counter.metric,
        "runs": counter.runs,
        "spearman": counter.spearman.value if counter.spearman else None,
        "p_spearman": counter.spearman.p_value if counter.spearman else None,
        "kendall": counter.kendall.value if counter.kendall else None,
        "p_kendall": counter.kendall.p_value if counter.kendall else None,
        "spearman_at_equal_n": counter.at_equal_n.value if counter.at_equal_n else None,
        "p_at_equal_n": counter.at_equal_n.p_value if counter.at_equal_n else None,
        "elasticity": counter.elasticity,
        "spearman_as_measured": counter.per_work.value if counter.per_work else None,
        "share_of_work": counter.shares.work if counter.shares else None,
        "share_of_time": counter.shares.time if counter.shares else None,
        "share_of_pairs_time": counter.shares.pairs if counter.shares else None,
        "p_benjamini_hochberg": counter.adjusted,
        "p_holm": counter.adjusted_holm,
        "moves": counter.moves,
        "not_tested": counter.form.value if counter.form else None,
    }


COUNTED = {
    CPU_BUSY.name: "cpu_seconds",
    CPU_IDLE.name: "cpu_idle_seconds",
    CPU_STEAL.name: "cpu_steal_seconds",
    **{rate.name: count for count, rate in RATES.items()},
}
"""Rates and shares of time -> their counts."""
_NUMBER = re.compile(r"\d+$")
_OF_EVENTS = {"count": True, "seconds": True, "least_s": False, "mean_s": False, "most_s": False}
"""Column of ``events`` -> True if it grows with the work."""
OF_EVENTS = frozenset(metric.name for metric in METRICS)
"""Sums over the rows of ``events``."""
TIMED = "kvm"
"""The source whose events have a duration."""


_Key: TypeAlias = tuple[str, str, str]
"""Metric, role, direction."""
_ByRun: TypeAlias = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Candidate:
    measure: Measure
    reported: bool
    """True for the application layer, the response's."""
    by_run: _ByRun
    """None if one of the places has no value."""


def candidates(tables: Tables, response: str, work_rates: Mapping[str, float]) -> dict[str, Candidate]:
    """Return name (``metric@role``) -> candidate. ``response``: a metric; ``work_rates``: run -> all pairs' work per second."""
    values = list(_rows(tables))
    names = {row.metric for row in values}
    works = {name for name in names if any(f"{other}_per_{unit_of_work(name)}" in names for other in names)}
    twins = {f"{name}_per_{unit_of_work(work)}": name for work in works for name in names}
    by_work = {twin: name for twin, name in twins.items() if twin in names}
    left_out = {response, *by_work.values(), *(rate for rate, count in COUNTED.items() if count in names)}
    if tables.table("events").num_rows:
        left_out |= {twin for twin, name in by_work.items() if name in OF_EVENTS}
    parts: dict[_Key, dict[str, list[float | None]]] = {}
    forms: dict[_Key, tuple[Measure, bool]] = {}
    reported = {(row.metric, role(row.host), row.direction) for row in values if row.layer == Layer.APPLICATION}
    for row in values:
        if row.metric in left_out:
            continue
        adds_up, measure = True, Measure.PER_WORK
        value = row.value
        if row.unit.endswith("/s") or row.metric in COUNTED:
            value = value / work_rates[row.run] if value is not None and row.run in work_rates else None
        elif row.metric not in by_work:
            adds_up = False
            measure = Measure.PER_WORK if row.unit == "s" or "/" in row.unit else Measure.LEVEL
        key = row.metric, role(row.host), row.direction
        forms[key] = measure, adds_up
        parts.setdefault(key, {}).setdefault(row.run, []).append(value)
    done = _work_done(values, works)
    for key, run, value, adds_up in _events(tables):
        of_run = done.get(run)
        if adds_up:
            value = value / of_run if value is not None and of_run else None
        forms[key] = Measure.PER_WORK if adds_up else Measure.LEVEL, adds_up
        parts.setdefault(key, {}).setdefault(run, []).append(value)
    by_key = {key: {run: _together(of, forms[key][1]) for run, of in by_run.items()} for key, by_run in parts.items()}
    return {
        "@".join(part for part in key if part): Candidate(forms[key][0], key in reported, by_run)
        for key, by_run in _of_whole_runs(by_key).items()
    }


def _of_whole_runs(by_key: Mapping[_Key, _ByRun]) -> dict[_Key, _ByRun]:
    """Merge metrics of the whole run with those of clients. A metric of the workload belongs to the whole run with one pair,
    and may belong to clients with several."""
    merged = dict(by_key)
    for key, by_run in by_key.items():
        metric, at, direction = key
        whole = merged.get((metric, "", direction))
        if at and whole is not None and by_run.keys() - whole.keys():
            merged[metric, "", direction] = {**by_run, **whole}
            del merged[key]
    return merged


def role(host: str) -> str:
    """Return the role of a host: ``client`` of ``client12``."""
    return _NUMBER.sub("", host)


@dataclass(frozen=True, slots=True)
class _Row:
    run: str
    metric: str
    host: str
    direction: str
    unit: str
    layer: str
    value: float | None


def _rows(tables: Tables) -> Iterator[_Row]:
    table = tables.table("metrics")
    if table.num_rows:
        columns = (table[name].to_pylist() for name in ("run", "metric", "host", "direction", "unit", "layer", "value"))
        yield from (_Row(*row) for row in zip(*columns, strict=True))


def _work_done(values: list[_Row], works: set[str]) -> dict[str, float]:
    """Return run -> the work done in the whole run, or summed over its hosts."""
    whole = {row.run: row.value for row in values if row.metric in works and not row.host and row.value}
    parts: dict[str, list[float | None]] = {}
    for row in values:
        if row.metric in works and row.host:
            parts.setdefault(row.run, []).append(row.value)
    sums = {run: total for run, of in parts.items() if (total := _together(of, adds_up=True))}
    return {**sums, **whole}


def _events(tables: Tables) -> Iterator[tuple[_Key, str, float | None, bool]]:
    """Yield (key, run, value, True if it grows with the work)."""
    interrupts = tables.table("interrupts")
    for row in interrupts.to_pylist():
        yield (f"interrupts {row['line']}", role(row["host"]), ""), row["run"], row["count"], True
    table = tables.table("events")
    if not table.num_rows:
        return
    hosts = {part for part in tables.table("metrics")["host"].unique().to_pylist() if _NUMBER.search(part)}
    for row in table.to_pylist():
        # A switch's end of a link is named after the host.
        device = ".".join(role(part) if part in hosts else part for part in (row["device"] or "").split("."))
        name = " ".join(part for part in (row["source"], row["event"], device) if part)
        for column, grows in _OF_EVENTS.items():
            if column == "count" or row["source"] == TIMED:
                yield (f"{name} {column.removesuffix('_s')}", role(row["host"]), ""), row["run"], row[column], grows


def _together(values: list[float | None], adds_up: bool) -> float | None:
    present = [value for value in values if value is not None]
    if len(present) < len(values):
        return None
    return sum(present) if adds_up else fmean(present)


analysis = AnomalyAnalysis()
