"""Cells: how many runs each has, and which of the full cross of testbeds and levels have none."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.imports.runs import Made
from twinbed.model.run import Level

MOST_CROSS = 100_000
"""Combinations that are gone through in search of gaps."""


@dataclass(frozen=True, slots=True)
class CellCount:
    """A cell of one testbed."""

    testbed: str
    levels: Mapping[str, Level]
    runs: int
    failed: int


def cell_counts(runs: Sequence[Made]) -> list[CellCount]:
    """Every cell that has runs, in their order."""
    runs_of: dict[str, list[Made]] = {}
    for run in runs:
        runs_of.setdefault(run.cell, []).append(run)
    return [
        CellCount(members[0].testbed, members[0].levels, len(members), sum(run.reason is not None for run in members))
        for members in runs_of.values()
    ]


def gaps(
    runs: Sequence[Made], testbeds: Sequence[str], factors: Mapping[str, Sequence[Level]]
) -> list[dict[str, Level]] | None:
    """Cells of the full cross without a run; None where the cross is too large to be meant."""
    if len(testbeds) * math.prod(len(levels) for levels in factors.values()) > MOST_CROSS:
        return None
    have = {(run.testbed, _key(run.levels)) for run in runs}
    return [cell for cell in _cross(testbeds, factors) if (str(cell["testbed"]), _key(cell, "testbed")) not in have]


def apart(runs: Sequence[Made], reference: str) -> list[str]:
    """The testbeds that have no cell in common with the reference: nothing of them can be compared with it."""
    cells: dict[str, set[str]] = {}
    for run in runs:
        cells.setdefault(run.testbed, set()).add(_key(run.levels))
    own = cells.get(reference, set())
    return [testbed for testbed, keys in cells.items() if testbed != reference and not keys & own]


def uneven(counts: Sequence[CellCount]) -> tuple[int, list[CellCount]]:
    """The commonest number of complete runs, and the cells that have fewer."""
    usual = Counter(each.runs - each.failed for each in counts).most_common(1)[0][0] if counts else 0
    return usual, [each for each in counts if each.runs - each.failed < usual]


def _cross(testbeds: Sequence[str], factors: Mapping[str, Sequence[Level]]) -> Iterator[dict[str, Level]]:
    for testbed, *levels in itertools.product(testbeds, *factors.values()):
        yield {"testbed": testbed, **dict(zip(factors, levels, strict=True))}


def _key(levels: Mapping[str, Level], without: str = "") -> str:
    return json.dumps({name: level for name, level in levels.items() if name != without}, sort_keys=True)
