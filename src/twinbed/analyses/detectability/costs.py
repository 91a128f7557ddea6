"""What being hard to tell costs in speed: each testbed's headline against the reference's, and those that nothing beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from twinbed.analyses.detectability.result import Cost, Detection
from twinbed.model.tables import Tables
from twinbed.observations.frame import headline_places
from twinbed.observations.inside import by_cell
from twinbed.observations.samples import cell_of


def costs(source: Tables, detections: Sequence[Detection]) -> tuple[str, tuple[Cost, ...]]:
    """Return the name of the first headline, and a point for each detection that has a mean of it on both testbeds."""
    places = headline_places(source)
    if not places:
        return "", ()
    metric = places[0][0]
    means = _means(source, places[0])
    points = []
    for each in detections:
        cell = cell_of(each.cell)[0]
        here, there = means.get((cell, each.testbed)), means.get((cell, each.reference))
        if here is not None and there:
            told = each.as_is
            points.append(Cost(each.cell, each.testbed, each.observer, told.area, told.interval, here / there, best=False))
    return metric, tuple(replace(point, best=not any(_beats(other, point) for other in points)) for point in points)


def _means(source: Tables, place: tuple[str, str, str]) -> dict[tuple[str, str], float]:
    import pyarrow.compute as pc

    table = source.table("metrics")
    metric, host, direction = place
    wanted = pc.and_(pc.equal(table["metric"], metric), pc.and_(pc.equal(table["host"], host), pc.is_valid(table["value"])))
    kept = table.filter(pc.and_(wanted, pc.equal(table["direction"], direction)))
    values = dict(zip(kept["run"].to_pylist(), kept["value"].to_pylist(), strict=True))
    cells = by_cell(source, [record for record in source.records if record.id in values], lambda record: record)
    return {
        (cell_of(cell.levels)[0], testbed): fmean(values[record.id] for record in records)
        for cell in cells
        for testbed, records in cell.runs.items()
    }


def _beats(one: Cost, other: Cost) -> bool:
    """Return whether one is as good in both, and better in one. An area below 0.5 hides no better than chance does."""
    if (one.cell, one.observer) != (other.cell, other.observer):
        return False
    first, second = (max(one.area, 0.5), -one.ratio), (max(other.area, 0.5), -other.ratio)
    return first != second and first[0] <= second[0] and first[1] <= second[1]
