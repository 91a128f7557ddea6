"""What may move with the rate: every metric of the runs, once, in the form in which the work done can be told from it.

Left out: the response itself, at any place; a count where the same count divided by the work is there; a rate or a share of
time where its count is. Values of hosts of one role (client1, client2, ...) are one: sums of what counts, means of times and
levels. The tables ``interrupts`` and ``events`` add the kernels' events by line, by device and by kind. What has a part that
goes with time is given for a unit of work: counts by the work done in the run, rates by the work of all pairs in a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

from twinbed.metrics.counters import CPU_BUSY, CPU_IDLE, CPU_STEAL, RATES
from twinbed.metrics.derived import unit_of_work
from twinbed.metrics.events import METRICS
from twinbed.metrics.metric import Layer
from twinbed.model.tables import Tables
from twinbed.statistics.anomaly import Measure

COUNTED = {
    CPU_BUSY.name: "cpu_seconds",
    CPU_IDLE.name: "cpu_idle_seconds",
    CPU_STEAL.name: "cpu_steal_seconds",
    **{rate.name: count for count, rate in RATES.items()},
}
"""Rates and shares of time -> what they are of."""
_NUMBER = re.compile(r"\d+$")
_OF_EVENTS = {"count": True, "seconds": True, "least_s": False, "mean_s": False, "most_s": False}
"""Columns of ``events``, and whether they grow with the work."""
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
    """Whether it is of the application layer, as the response is."""
    by_run: _ByRun
    """None where one of the places has no value."""


def candidates(tables: Tables, response: str, work_rates: Mapping[str, float]) -> dict[str, Candidate]:
    """Return each candidate by its name, as ``name@role``.  ``response``: a metric; ``work_rates``: all pairs' work in a
    second, by run."""
    values = list(_rows(tables))
    names = {each.metric for each in values}
    works = {name for name in names if any(f"{other}_per_{unit_of_work(name)}" in names for other in names)}
    twins = {f"{name}_per_{unit_of_work(work)}": name for work in works for name in names}
    by_work = {twin: name for twin, name in twins.items() if twin in names}
    left_out = {response, *by_work.values(), *(rate for rate, count in COUNTED.items() if count in names)}
    if tables.table("events").num_rows:
        left_out |= {twin for twin, name in by_work.items() if name in OF_EVENTS}
    parts: dict[_Key, dict[str, list[float | None]]] = {}
    forms: dict[_Key, tuple[Measure, bool]] = {}
    reported = {(each.metric, role(each.host), each.direction) for each in values if each.layer == Layer.APPLICATION}
    for each in values:
        if each.metric in left_out:
            continue
        adds_up, measure = True, Measure.PER_WORK
        value = each.value
        if each.unit.endswith("/s") or each.metric in COUNTED:
            value = value / work_rates[each.run] if value is not None and each.run in work_rates else None
        elif each.metric not in by_work:
            adds_up = False
            measure = Measure.PER_WORK if each.unit == "s" or "/" in each.unit else Measure.LEVEL
        key = each.metric, role(each.host), each.direction
        forms[key] = measure, adds_up
        parts.setdefault(key, {}).setdefault(each.run, []).append(value)
    done = _work_done(values, works)
    for key, run, value, adds_up in _events(tables):
        of_run = done.get(run)
        if adds_up:
            value = value / of_run if value is not None and of_run else None
        forms[key] = Measure.PER_WORK if adds_up else Measure.LEVEL, adds_up
        parts.setdefault(key, {}).setdefault(run, []).append(value)
    found = {key: {run: _together(of, forms[key][1]) for run, of in by_run.items()} for key, by_run in parts.items()}
    return {
        "@".join(part for part in key if part): Candidate(forms[key][0], key in reported, by_run)
        for key, by_run in _of_whole_runs(found).items()
    }


def _of_whole_runs(found: Mapping[_Key, _ByRun]) -> dict[_Key, _ByRun]:
    """Merge metrics of the whole run with those of clients. With one pair a metric of the workload is the whole run's; with
    several some are the clients' alone. Such are one."""
    merged = dict(found)
    for key, by_run in found.items():
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
    """Return the work done by run: of the whole run, or the sum over its hosts."""
    whole = {each.run: each.value for each in values if each.metric in works and not each.host and each.value}
    parts: dict[str, list[float | None]] = {}
    for each in values:
        if each.metric in works and each.host:
            parts.setdefault(each.run, []).append(each.value)
    sums = {run: total for run, of in parts.items() if (total := _together(of, adds_up=True))}
    return {**sums, **whole}


def _events(tables: Tables) -> Iterator[tuple[_Key, str, float | None, bool]]:
    """Yield (key, run, value, whether it grows with the work)."""
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
