"""Inconclusive comparisons, and how many replicates would decide them (``design.replicates``), at the level of the next step
of Holm's correction and with 80 % power."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twinbed.analyses.compare.claims import Decided, values
from twinbed.design.replicates import Levels, found_needs
from twinbed.model.comparison import FEW, Comparison
from twinbed.model.result import Verdict
from twinbed.report.advice.result import Contrast, Open
from twinbed.report.advice.study import Held
from twinbed.show.words import cell_title, metric_title

NEAR = "no number of runs decides: the ratio is too near the margin"


def undecided(held: Sequence[Held], decided: Decided) -> Iterator[Open]:
    """Yield each contrast and metric with an inconclusive cell."""
    groups: dict[tuple[Contrast, str], list[Comparison]] = {}
    for contrast, comparison in held:
        if comparison.verdict is Verdict.INCONCLUSIVE:
            groups.setdefault((contrast, comparison.place), []).append(comparison)
    for (contrast, _), cells in groups.items():
        first = cells[0]
        planned = found_needs(cells, first.margin, Levels(decided.equivalent_level, decided.different_level))
        numbers = [max(FEW, n) for need in planned if (n := need.as_found[0]) is not None]
        others = [need.reason or NEAR for need in planned if need.as_found[0] is None]
        runs = min(values(cell) for cell in cells)
        yield Open(
            contrast=contrast,
            metric=metric_title(first.metric, first.host, first.direction),
            places=tuple(cell_title(cell.cell) if cell.cell else "" for cell in cells),
            runs=runs,
            few=runs < FEW,
            replicates=max(numbers, default=None),
            first=min(numbers, default=None),
            never=len(others),
            reason="; ".join(dict.fromkeys(others)),
        )
