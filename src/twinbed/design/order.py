"""The runs of a study in their order.

Random orders sort by a hash instead of a generator's stream: the place of a run is given by SHA-256 of the JSON array [seed,
block, replicate, levels] (no spaces, keys sorted), smallest first.  SHA-256 is a random permutation of distinct inputs for this
purpose, and the same in every version of every library.  A study that grows, by replicates or by levels, keeps the order of its
earlier runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from twinbed.model.drawn import Drawn, size
from twinbed.model.interim import UntilDecided
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


def drawn(run: Run) -> Mapping[str, Drawn]:
    """Return instrument -> its sample; nothing for instruments on all hosts."""
    of_run: dict[str, Drawn] = {}
    for name, choice in run.instruments.items():
        share = choice.params.share_of_hosts()
        if share is None:
            continue
        pairs = run.topology.names()
        ranked = sorted(pairs, key=lambda pair, name=name: _rank_of_pair(run, name, pair[0]))  # type: ignore[misc]
        chosen = set(ranked[: size(share, len(pairs))])
        of_run[name] = Drawn(tuple(pair for pair in pairs if pair in chosen), len(pairs), run.seed)
    return of_run


def _rank_of_pair(run: Run, instrument: str, client: str) -> bytes:
    text = json.dumps([run.seed, run.id, instrument, client], separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()


MOST_INTERIM = 6
"""More interim analyses cost replicates, since each takes its share of alpha, and hardly end a study sooner."""


def interim_blocks(until: UntilDecided) -> tuple[int, ...]:
    """Return the numbers of complete blocks at which there is an interim analysis: from least to most, evenly spread."""
    count = min(MOST_INTERIM, until.most - until.least + 1)
    return tuple(until.least + round(step * (until.most - until.least) / (count - 1)) for step in range(count))
