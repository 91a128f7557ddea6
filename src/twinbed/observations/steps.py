"""The step of each metric's values by testbed and cell, and the metrics that count events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from twinbed.metrics.counted import COUNT, EVENTS, counted
from twinbed.statistics.resolution import coarser, distinct, evidence, lattice, printed_step, step

if TYPE_CHECKING:
    from twinbed.observations.samples import CellRuns, Declared
    from twinbed.statistics.sample import Sample

PER = "_per_"
"""Separates a metric from the work that it was divided by (metrics.derived)."""
Groups = Mapping[str, Mapping[str, "CellRuns"]]


def resolve(metrics: dict[str, Declared], groups: Groups) -> None:
    """Find the step of each metric's values in each group: the coarsest of the metric's, its testbed's and the group's.

    Testbeds may measure by programs of their own, which may print fewer digits of larger values.  Whole numbers are rounded
    ones unless the metric is known to count.  Bytes are counted too, but some tools print them in whole MiB: a lattice shows
    it.  A metric divided by the work has the step of the undivided metric, divided by the work.
    """
    of_metric: dict[str, dict[str, list[Sample]]] = {}
    for testbed, group in _members(groups):
        for (metric, _, _), values in group.values.items():
            of_metric.setdefault(metric, {}).setdefault(testbed, []).append(values)
    bases = {metric: _base(metric, metrics) for metric in of_metric}
    steps: dict[tuple[str, str], float] = {}
    for metric, of_testbed in of_metric.items():
        if bases[metric]:
            continue
        different = {testbed: distinct([*chain.from_iterable(samples)]) for testbed, samples in of_testbed.items()}
        if exact := _counts(metric, metrics[metric].unit, different):
            # Zeros alone may be of anything, and a share is 1 throughout.
            found = {*chain.from_iterable(different.values())}
            events = metrics[metric].unit in EVENTS and found not in ({0.0}, {1.0})
            metrics[metric] = replace(metrics[metric], events=events)
        if not exact or metrics[metric].unit not in EVENTS:
            of_metric_steps = _of_testbeds(of_testbed, different, exact=exact)
            steps |= {(testbed, metric): step for testbed, step in of_metric_steps.items() if step or not exact}
    for testbed, group in _members(groups):
        for key, values in group.values.items():
            if (testbed, key[0]) in steps:
                group.steps[key] = coarser(values, step(values), steps[testbed, key[0]])
        for key, values in group.values.items():
            base = (bases[key[0]], *key[1:])
            if group.steps.get(base) and group.values[base].average:
                group.steps[key] = group.steps[base] * abs(values.average / group.values[base].average)


def _counts(metric: str, unit: str, different: Mapping[str, Sequence[float]]) -> bool:
    """Return whether a metric counts: it is declared to, and all of its values are whole numbers."""
    if unit != COUNT and metric not in counted():
        return False
    return all(value == round(value) for values in different.values() for value in values)


def _of_testbeds(
    of_testbed: Mapping[str, Sequence[Sample]], different: Mapping[str, Sequence[float]], *, exact: bool
) -> dict[str, float]:
    """Return the step of each testbed's values. ``exact``: powers of ten say nothing of counts."""
    everywhere = distinct([*chain.from_iterable(different.values())])
    printed = 1.0 if exact else printed_step(everywhere)
    common = lattice(everywhere, evidence([*chain.from_iterable(of_testbed.values())]), printed)
    steps = {}
    for testbed, samples in of_testbed.items():
        own = different[testbed]
        fine = 1.0 if exact else coarser(own, printed_step(own), printed)
        shared = common if all(two - one > common / 2 for one, two in pairwise(own)) else 0.0
        steps[testbed] = max(0.0 if exact else fine, shared, lattice(own, evidence(samples), fine))
    return steps


def _base(metric: str, metrics: Mapping[str, Declared]) -> str:
    """Return the metric of which this one is the part per work; empty if there is none."""
    base, _, work = metric.rpartition(PER)
    return base if base in metrics and metrics[metric].unit == f"{metrics[base].unit}/{work}" else ""


def _members(groups: Groups) -> Iterator[tuple[str, CellRuns]]:
    return ((testbed, group) for of_cell in groups.values() for testbed, group in of_cell.items())
