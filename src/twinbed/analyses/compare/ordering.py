"""Headline metrics in the order in which runs were made: drift, effects of blocks, and runs that depend on the run before.

Of each value the mean of its cell on its testbed is taken off: of logarithms where all values are positive, so that residuals
are shares.  Order is that of starting times.  These tests warn, so that a miss costs more than a false alarm: their p-values
are not corrected, what they show must have a size that matters, and each caution says how many would come by chance.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from twinbed.analyses.compare.result import Drift, Ordering, Residual
from twinbed.metrics.metric import Scale
from twinbed.model.caution import Caution, Kind
from twinbed.model.record import Record
from twinbed.observations.samples import Key, Samples
from twinbed.observations.units import by_time
from twinbed.statistics.clusters import clustering
from twinbed.statistics.moments import logarithms, variance, varies
from twinbed.statistics.order import block_effect, dependence
from twinbed.statistics.trend import trend

STRAYS = 0.1
"""Share of runs that may stand outside their block."""


@dataclass(frozen=True, slots=True)
class _Place:
    order: int
    block: int


def orderings(samples: Samples, records: Sequence[Record], alpha: float) -> tuple[Ordering, ...]:
    """One for each headline of ratio or interval scale that varies. ``alpha`` is that of each test."""
    ordered = sorted(records, key=lambda record: (record.started_s, record.position))
    places = {record.id: _Place(order, record.block) for order, record in enumerate(ordered, start=1)}
    each_metric = [
        each
        for key in samples.keys()  # noqa: SIM118 -- not a mapping
        if samples.is_headline(key) and samples.metrics[key[0]].scale in (Scale.RATIO, Scale.INTERVAL)
        for each in _ordering(samples, key, places)
    ]
    return tuple(_shown(each, alpha) for each in each_metric)


Cells = Mapping[tuple[str, str], Sequence[tuple[_Place, float]]]
"""(testbed, cell) -> where each run stands, and its value or logarithm."""


def _ordering(samples: Samples, key: Key, places: Mapping[str, _Place]) -> Iterator[Ordering]:
    about, relative = samples.metrics[key[0]], _relative(samples, key)
    cells = _cells(samples, key, places, relative)
    residuals = sorted(_residuals(cells), key=lambda each: each.order)
    if not any(_varying(rows) for rows in cells.values()):
        return
    drifts = tuple(each for testbed in samples.testbeds for each in _drift(testbed, cells, residuals, relative))
    in_block: dict[int, list[float]] = defaultdict(list)
    for each in residuals:
        in_block[each.block].append(each.value)
    blocks = sorted(in_block)
    test = block_effect(_rows(cells, blocks)) if _contiguous(residuals) else None
    means = {block: fmean(values) for block, values in in_block.items()}
    farthest = max(blocks, key=lambda block: abs(means[block])) if test else None
    if drifts:
        yield Ordering(
            *(key[0], about.unit, key[1], key[2], relative, tuple(residuals), drifts, len(blocks)),
            p_blocks=test.p_value if test else None,
            blocks_differ=False,
            farthest_block=farthest,
            farthest_by=_change(means[farthest], relative) if farthest is not None else None,
        )


def _contiguous(residuals: Sequence[Residual]) -> bool:
    """Whether blocks followed each other, so that they are a time. Numbers of replicates that an import took for blocks are
    not; a few runs that were made again later do no harm."""
    changes = sum(one.block != two.block for one, two in pairwise(residuals))
    return changes <= len({each.block for each in residuals}) - 1 + STRAYS * len(residuals)


def _varying(rows: Sequence[tuple[_Place, float]]) -> bool:
    return varies([value for _place, value in rows])


def _relative(samples: Samples, key: Key) -> bool:
    values = [group.values.get(key, ()) for groups in samples.groups.values() for group in groups.values()]
    return samples.metrics[key[0]].scale == Scale.RATIO and all(value > 0 for each in values for value in each)


def _cells(samples: Samples, key: Key, places: Mapping[str, _Place], relative: bool) -> Cells:
    placed: dict[tuple[str, str], list[tuple[_Place, float]]] = {}
    for cell, groups in samples.groups.items():
        for testbed, group in groups.items():
            values = group.values.get(key, [])
            if len(values) > 1:
                rows = zip(group.runs[key], logarithms(values) if relative else values, strict=True)
                placed[testbed, cell] = [(places[run], value) for run, value in rows]
    return placed


def _residuals(cells: Cells) -> Iterator[Residual]:
    for (testbed, _cell), rows in cells.items():
        centre = fmean(value for _place, value in rows)
        for place, value in rows:
            yield Residual(place.order, testbed, place.block, value - centre)


def _rows(cells: Cells, blocks: Sequence[int]) -> list[list[float | None]]:
    """A row a cell on a testbed, a column a block."""
    rows = []
    for placed in cells.values():
        of_block = {place.block: value for place, value in placed}
        rows.append([of_block.get(block) for block in blocks])
    return rows


def _drift(testbed: str, cells: Cells, residuals: Sequence[Residual], relative: bool) -> Iterator[Drift]:
    own = [each for each in residuals if each.testbed == testbed]
    series = [[(float(place.order), value) for place, value in rows] for (name, _), rows in cells.items() if name == testbed]
    drifting = trend(series)
    if drifting is None or not any(_varying(rows) for (name, _), rows in cells.items() if name == testbed):
        return
    of_testbed = [rows for (name, _), rows in cells.items() if name == testbed]
    order = sorted((place.order, number) for number, rows in enumerate(of_testbed) for place, _ in rows)
    neighbouring = dependence([each.value for each in own], [number for _, number in order])
    yield Drift(
        testbed=testbed,
        runs=len(own),
        change=_change(drifting.slope * (own[-1].order - own[0].order), relative),
        p_trend=drifting.p_value,
        trend=False,
        correlation=neighbouring.correlation if neighbouring else None,
        p_serial=neighbouring.p_value if neighbouring else None,
        serial=False,
    )


def _change(value: float, relative: bool) -> float:
    return math.expm1(value) if relative else value


def _shown(each: Ordering, alpha: float) -> Ordering:
    drifts = tuple(
        replace(drift, trend=drift.p_trend <= alpha, serial=drift.p_serial is not None and drift.p_serial <= alpha)
        for drift in each.drifts
    )
    return replace(each, drifts=drifts, blocks_differ=each.p_blocks is not None and each.p_blocks <= alpha)


Carried = Mapping[tuple[Key, str], Sequence[Caution]]
"""(metric and place, testbed) -> what its order gives to doubt."""


def order_cautions(ordered: Sequence[Ordering], testbeds: Sequence[str], margin: float, alpha: float) -> Carried:
    """Every caution, under each metric and testbed that it is about; those of blocks are about all testbeds.

    What is shown but far inside the margin moves no verdict, so it is in the tables only.
    """
    carried: dict[tuple[Key, str], list[Caution]] = defaultdict(list)
    tests = sum(len(each.drifts) for each in ordered)
    chance = f" ({tests} such tests: about {alpha * tests:.2g} show that by chance)" if tests > 1 else ""
    for each in ordered:
        key = (each.metric, each.host, each.direction)
        for drift in each.drifts:
            if drift.trend and _matters(drift.change, each, margin):
                way = "rises" if drift.change > 0 else "falls"
                by = _size(abs(drift.change), each)
                text = f"{each.metric} {way} by {by} from the first to the last of {drift.runs} runs, p {_p(drift.p_trend)}"
                carried[key, drift.testbed].append(Caution(Kind.DRIFT, text + chance, drift.testbed))
            own = [residual.value for residual in each.residuals if residual.testbed == drift.testbed]
            # A trend makes neighbours alike by itself.
            if (
                drift.serial
                and not drift.trend
                and drift.p_serial is not None
                and _matters(math.sqrt(variance(own)), each, margin)
            ):
                text = f"{each.metric}: rank correlation {drift.correlation:.2f} with the run before, p {_p(drift.p_serial)}"
                carried[key, drift.testbed].append(Caution(Kind.SERIAL, text + chance, drift.testbed))
        off = each.farthest_by
        if each.blocks_differ and each.p_blocks is not None and off is not None and _matters(off, each, margin):
            way = "above" if off > 0 else "below"
            text = f"{each.metric}: block {(each.farthest_block or 0) + 1} is {_size(abs(off), each)} {way} the mean"
            caution = Caution(Kind.BLOCK_EFFECT, f"{text}, p {_p(each.p_blocks)}")
            for testbed in testbeds:
                carried[key, testbed].append(caution)
    return carried


def _matters(size: float, about: Ordering, margin: float) -> bool:
    return not about.relative or abs(size) > margin / 10


def _size(value: float, about: Ordering) -> str:
    return f"{100 * value:.2g} %" if about.relative else f"{value:.3g} {about.unit}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.2g}"


def session_cautions(samples: Samples, records: Sequence[Record], margin: float, alpha: float) -> Carried:
    """Where pauses between runs make sessions of them, and runs of one session are alike; of headline metrics. P-values are
    not corrected, as for the other cautions on order."""
    sessions = by_time(records)
    if len(set(sessions.values())) < 2:
        return {}
    places = {run: _Place(order, session) for order, (run, session) in enumerate(sessions.items())}
    keys = [key for key in samples.keys() if samples.is_headline(key)]  # noqa: SIM118 -- not a mapping
    carried: dict[tuple[Key, str], list[Caution]] = defaultdict(list)
    for key in keys:
        if samples.metrics[key[0]].scale not in (Scale.RATIO, Scale.INTERVAL):
            continue
        relative = _relative(samples, key)
        cells = _cells(samples, key, places, relative)
        for testbed in samples.testbeds:
            of_testbed = [rows for (name, _), rows in cells.items() if name == testbed]
            means = [fmean(value for _, value in rows) for rows in of_testbed]
            flat = [
                (value - mean, cell, place.block)
                for cell, (rows, mean) in enumerate(zip(of_testbed, means, strict=True))
                for place, value in rows
            ]
            alike = clustering(*zip(*flat, strict=True)) if flat else None
            if alike is None or alike.p_value > alpha:
                continue
            spread = math.sqrt(max(0.0, alike.correlation) * variance([value for value, *_ in flat]))
            if not relative or spread > margin / 10:
                text = f"{key[0]}: intraclass correlation {alike.correlation:.2f} over {alike.clusters} sessions"
                carried[key, testbed].append(Caution(Kind.SESSIONS, f"{text}, p {_p(alike.p_value)}", testbed))
    return carried
