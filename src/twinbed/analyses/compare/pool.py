"""One ratio for a study: each headline metric over all cells of a testbed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from twinbed.model.comparison import Pooled
from twinbed.model.result import Interval
from twinbed.observations.samples import CellRuns, Key
from twinbed.observations.units import Arranged, Units
from twinbed.statistics.moments import logarithms
from twinbed.statistics.ratio import Cell, pooled_ratio
from twinbed.statistics.sample import Sample

LEAST_CELLS = 2


def pooled(
    key: Key, names: tuple[str, str], groups: Iterable[tuple[CellRuns, CellRuns]], units: Units, alpha: float
) -> Iterator[Pooled]:
    """Yield the ratio of one metric on two testbeds; nothing for fewer than LEAST_CELLS, or where a value is not positive."""
    arranged = [units.arrange(key, pair) for pair in groups]
    arranged = [of_cell for of_cell in arranged if min(len(of_cell.own), len(of_cell.reference)) >= 2]
    if len(arranged) < LEAST_CELLS or any(Sample.of(values).least <= 0 for of in arranged for values in (of.own, of.reference)):
        return
    cells = [Cell(logarithms(of_cell.own), logarithms(of_cell.reference)) for of_cell in arranged]
    whole = pooled_ratio(cells, 1 - 2 * alpha, paired=_same_pairs(arranged))
    if whole is None:
        return
    ratios = [math.exp(Sample.of(cell.own).average - Sample.of(cell.reference).average) for cell in cells]
    yield Pooled(
        *key,
        testbed=names[0],
        reference=names[1],
        cells=len(cells),
        ratio=whole.ratio,
        interval=Interval(*whole.interval),
        least=min(ratios),
        most=max(ratios),
        p_agree=whole.p_agree,
        agree=whole.p_agree is None or whole.p_agree > alpha,
    )


def _same_pairs(arranged: Sequence[Arranged]) -> bool:
    """Return whether all cells are paired by the same blocks or sessions."""
    return all(of_cell.paired and of_cell.units == arranged[0].units for of_cell in arranged)
