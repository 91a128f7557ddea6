"""Headline metrics in the order in which runs were made: drift, effects of blocks, and runs that depend on the run before.

Residuals are values less the mean of their cell on their testbed: of logarithms where all values are positive, so that they
are shares.  Order is that of starting times.  These tests warn, so a miss costs more than a false alarm. Their p-values are
not corrected. An effect must have a size that matters, and each caution says how many would come by chance.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from twinbed.metrics.metric import Scale
from twinbed.model.caution import Caution, Kind
from twinbed.model.columns import Records
from twinbed.model.comparison import Drift, Ordering, Residuals
from twinbed.model.record import Record
from twinbed.observations.samples import Key, Samples
from twinbed.observations.units import by_time
from twinbed.show.quantities import two_digits
from twinbed.statistics.moments import logarithms, variance
from twinbed.statistics.order import block_effect, clustering, dependence
from twinbed.statistics.sample import Sample
from twinbed.statistics.trend import trend

Integers = NDArray[np.int64]
STRAYS = 0.1
"""Share of runs that may stand outside their block."""


@dataclass(frozen=True, slots=True)
class _Places:
    """Where each run stands in the order of runs, from 1, and in which block, or session."""

    row: Mapping[str, int]
    order: Integers
    block: Integers


@dataclass(frozen=True, slots=True)
class _Cell:
    """The runs of one cell on one testbed: where each stands, and its value or logarithm."""

    order: Integers
    block: Integers
    values: Sample


Cells = Mapping[tuple[str, str], _Cell]
"""(testbed, cell) -> its runs."""


def orderings(samples: Samples, runs: Sequence[Record], alpha: float) -> tuple[Ordering, ...]:
    """Return an Ordering for each headline of ratio or interval scale that varies. ``alpha`` is that of each test."""
    records = Records.of(runs)
    order = np.empty(len(records), dtype=np.int64)
    order[np.lexsort((records.positions, records.started_s))] = np.arange(1, len(records) + 1)
    places = _Places({run: row for row, run in enumerate(records.ids)}, order, records.blocks)
    tested = [
        ordering
        for key in samples.keys()  # noqa: SIM118 -- not a mapping
        if samples.is_headline(key) and samples.metrics[key[0]].scale in (Scale.RATIO, Scale.INTERVAL)
        for ordering in _ordering(samples, key, places)
    ]
    return tuple(_shown(ordering, alpha) for ordering in tested)


def _ordering(samples: Samples, key: Key, places: _Places) -> Iterator[Ordering]:
    declared, relative = samples.metrics[key[0]], _relative(samples, key)
    if not any(group.values[key].varies for of in samples.groups.values() for group in of.values() if key in group.values):
        return
    cells = _cells(samples, key, places, relative)
    if not any(cell.values.varies for cell in cells.values()):
        return
    residuals = _residuals(cells)
    drifts = tuple(drift for testbed in samples.testbeds for drift in _drift(testbed, cells, residuals, relative))
    if not drifts:
        return
    by_block = np.argsort(residuals.block, kind="stable")
    blocks, begins = np.unique(residuals.block[by_block], return_index=True)
    test = block_effect(_rows(cells, blocks.tolist())) if _contiguous(residuals) else None
    means = [fmean(values.tolist()) for values in np.split(residuals.value[by_block], begins[1:])]
    farthest = max(range(len(means)), key=lambda at: abs(means[at])) if test else None
    yield Ordering(
        *(key[0], declared.unit, key[1], key[2], relative, residuals, drifts, len(blocks)),
        p_blocks=test.p_value if test else None,
        blocks_differ=False,
        farthest_block=None if farthest is None else int(blocks[farthest]),
        farthest_by=None if farthest is None else _change(means[farthest], relative),
    )


def _contiguous(residuals: Residuals) -> bool:
    """Return whether blocks followed each other, so that they are a time. Numbers of replicates that an import took for blocks
    are none; a few runs that were made again later do no harm."""
    changes = np.count_nonzero(np.diff(residuals.block))
    return bool(changes <= len(np.unique(residuals.block)) - 1 + STRAYS * len(residuals))


def _relative(samples: Samples, key: Key) -> bool:
    values = [group.values[key] for groups in samples.groups.values() for group in groups.values() if key in group.values]
    return samples.metrics[key[0]].scale == Scale.RATIO and all(sample.least > 0 for sample in values)


def _cells(samples: Samples, key: Key, places: _Places, relative: bool) -> Cells:
    placed: dict[tuple[str, str], _Cell] = {}
    for cell, groups in samples.groups.items():
        for testbed, group in groups.items():
            values = group.values.get(key, Sample())
            if len(values) > 1:
                rows = [places.row[run] for run in group.runs[key]]
                placed[testbed, cell] = _Cell(
                    places.order[rows], places.block[rows], logarithms(values) if relative else values
                )
    return placed


def _residuals(cells: Cells) -> Residuals:
    testbeds = list(dict.fromkeys(testbed for testbed, _ in cells))
    order = np.concatenate([cell.order for cell in cells.values()])
    testbed = np.concatenate([np.full(len(cell.order), testbeds.index(name)) for (name, _), cell in cells.items()])
    block = np.concatenate([cell.block for cell in cells.values()])
    value = np.concatenate([cell.values.array - cell.values.average for cell in cells.values()])
    by_order = np.argsort(order)
    return Residuals(order[by_order], testbed[by_order], block[by_order], value[by_order], testbeds)


def _rows(cells: Cells, blocks: Sequence[int]) -> list[list[float | None]]:
    """Return a row a cell on a testbed, a column a block."""
    rows = []
    for cell in cells.values():
        of_block = dict(zip(cell.block.tolist(), cell.values, strict=True))
        rows.append([of_block.get(block) for block in blocks])
    return rows


def _drift(testbed: str, cells: Cells, residuals: Residuals, relative: bool) -> Iterator[Drift]:
    of_testbed = [cell for (name, _), cell in cells.items() if name == testbed]
    drifting = trend([np.stack([cell.order.astype(np.float64), cell.values.array], axis=1) for cell in of_testbed])
    if drifting is None or not any(cell.values.varies for cell in of_testbed):
        return
    own = residuals.of(testbed)
    numbers = np.repeat(np.arange(len(of_testbed)), [len(cell.order) for cell in of_testbed])
    neighbouring = dependence(own.value, numbers[np.argsort(np.concatenate([cell.order for cell in of_testbed]))])
    # Slopes are those inside cells: where cells were measured one after the other, nothing is known of the study as a whole.
    span, reach = int(np.ptp(own.order)), max(int(np.ptp(cell.order)) for cell in of_testbed)
    yield Drift(
        testbed=testbed,
        runs=len(own),
        inside_cells=2 * reach < span,
        change=_change(drifting.slope * (reach if 2 * reach < span else span), relative),
        p_trend=drifting.p_value,
        trend=False,
        correlation=neighbouring.correlation if neighbouring else None,
        p_serial=neighbouring.p_value if neighbouring else None,
        serial=False,
    )


def _change(value: float, relative: bool) -> float:
    return math.expm1(value) if relative else value


def _shown(ordering: Ordering, alpha: float) -> Ordering:
    drifts = tuple(
        replace(drift, trend=drift.p_trend <= alpha, serial=drift.p_serial is not None and drift.p_serial <= alpha)
        for drift in ordering.drifts
    )
    return replace(ordering, drifts=drifts, blocks_differ=ordering.p_blocks is not None and ordering.p_blocks <= alpha)


Carried = Mapping[tuple[Key, str], Sequence[Caution]]
"""(metric and place, testbed) -> what its order gives to doubt."""


def order_cautions(ordered: Sequence[Ordering], testbeds: Sequence[str], margin: float, alpha: float) -> Carried:
    """Return every caution, under each metric and testbed that it is about; those of blocks are about all testbeds.

    An effect far inside the margin moves no verdict, so it is in the tables only.
    """
    carried: dict[tuple[Key, str], list[Caution]] = defaultdict(list)
    tests = sum(len(ordering.drifts) for ordering in ordered)
    chance = f" ({tests} such tests; by chance about {alpha * tests:.2g} of them show this)" if tests > 1 else ""
    for ordering in ordered:
        key = (ordering.metric, ordering.host, ordering.direction)
        for drift in ordering.drifts:
            if drift.trend and _matters(drift.change, ordering, margin):
                way = "rises" if drift.change > 0 else "falls"
                by = _size(abs(drift.change), ordering)
                over = "run of a cell" if drift.inside_cells else f"of {drift.runs} runs"
                text = f"{ordering.metric} {way} by {by} from the first to the last {over}, p {_p(drift.p_trend)}"
                carried[key, drift.testbed].append(Caution(Kind.DRIFT, text + chance, drift.testbed))
            # A trend makes neighbours alike by itself.
            if (
                drift.serial
                and not drift.trend
                and drift.p_serial is not None
                and _matters(math.sqrt(variance(ordering.residuals.of(drift.testbed).value.tolist())), ordering, margin)
            ):
                text = (
                    f"{ordering.metric}: rank correlation {drift.correlation:.2f} with the run before, p {_p(drift.p_serial)}"
                )
                carried[key, drift.testbed].append(Caution(Kind.SERIAL, text + chance, drift.testbed))
        off = ordering.farthest_by
        if ordering.blocks_differ and ordering.p_blocks is not None and off is not None and _matters(off, ordering, margin):
            way = "above" if off > 0 else "below"
            text = (
                f"{ordering.metric}: block {(ordering.farthest_block or 0) + 1} is {_size(abs(off), ordering)} {way} the mean"
            )
            caution = Caution(Kind.BLOCK_EFFECT, f"{text}, p {_p(ordering.p_blocks)}")
            for testbed in testbeds:
                carried[key, testbed].append(caution)
    return carried


def _matters(size: float, ordering: Ordering, margin: float) -> bool:
    return not ordering.relative or abs(size) > margin / 10


def _size(value: float, ordering: Ordering) -> str:
    return f"{two_digits(100 * value)} %" if ordering.relative else f"{value:.3g} {ordering.unit}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.2g}"


def session_cautions(samples: Samples, records: Sequence[Record], margin: float, alpha: float) -> Carried:
    """Return cautions about headline metrics whose runs are alike within sessions, as pauses between runs make them. P-values
    are not corrected, as for the other cautions on order."""
    sessions = by_time(records)
    if len(set(sessions.values())) < 2:
        return {}
    of_session = np.fromiter(sessions.values(), np.int64, len(sessions))
    places = _Places({run: row for row, run in enumerate(sessions)}, np.arange(len(sessions)), of_session)
    keys = [key for key in samples.keys() if samples.is_headline(key)]  # noqa: SIM118 -- not a mapping
    carried: dict[tuple[Key, str], list[Caution]] = defaultdict(list)
    for key in keys:
        if samples.metrics[key[0]].scale not in (Scale.RATIO, Scale.INTERVAL):
            continue
        relative = _relative(samples, key)
        cells = _cells(samples, key, places, relative)
        for testbed in samples.testbeds:
            of_testbed = [cell for (name, _), cell in cells.items() if name == testbed]
            if not of_testbed:
                continue
            off = np.concatenate([cell.values.array - cell.values.average for cell in of_testbed])
            numbers = np.repeat(np.arange(len(of_testbed)), [len(cell.order) for cell in of_testbed])
            alike = clustering(off, numbers, np.concatenate([cell.block for cell in of_testbed]))
            if alike is None or alike.p_value > alpha:
                continue
            spread = math.sqrt(max(0.0, alike.correlation) * variance(off.tolist()))
            if not relative or spread > margin / 10:
                text = f"{key[0]}: intraclass correlation {alike.correlation:.2f} over {alike.clusters} sessions"
                carried[key, testbed].append(Caution(Kind.SESSIONS, f"{text}, p {_p(alike.p_value)}", testbed))
    return carried
