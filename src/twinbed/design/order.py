"""The runs of a study in their order.

Random orders sort by a hash instead of a generator's stream: the place of a run is given by SHA-256 of the JSON array [seed,
block, replicate, levels] (no spaces, keys sorted), smallest first.  SHA-256 is a random permutation of distinct inputs for this
purpose, and the same in every version of every library.  A study that grows, by replicates or by levels, keeps the order of its
earlier runs.
"""

from __future__ import annotations

import hashlib
import json

from twinbed.study.cell import Cell
from twinbed.study.run import Run
from twinbed.study.study import Order, Study


def runs(study: Study) -> tuple[Run, ...]:
    """Return every cell times every replicate, in order; ``Run.block`` is the replicate in randomised blocks, otherwise 0."""
    replicates = range(study.replicates)
    planned: list[tuple[Cell, int, int]]
    if study.order is Order.RANDOMIZED_BLOCKS:
        planned = [
            (cell, block, block)
            for block in replicates
            for cell in sorted(study.cells, key=lambda cell, block=block: _rank(study.seed, block, block, cell))  # type: ignore[misc]
        ]
    else:
        planned = [(cell, replicate, 0) for cell in study.cells for replicate in replicates]
        if study.order is Order.RANDOM:
            planned.sort(key=lambda item: _rank(study.seed, 0, item[1], item[0]))
    ordered = tuple(
        cell.run(replicate=replicate, block=block, position=position, seed=study.seed)
        for position, (cell, replicate, block) in enumerate(planned)
    )
    ids = {run.id for run in ordered}
    if len(ids) < len(ordered):
        raise ValueError(f"{len(ordered) - len(ids)} of {len(ordered)} runs share their id with another run")
    return ordered


def _rank(seed: int, block: int, replicate: int, cell: Cell) -> bytes:
    text = json.dumps([seed, block, replicate, dict(cell.levels)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()
