"""Runs of one testbed as means of cells, with the covariance of remaining noise and block effects.

A value is its cell's mean, plus an effect of its block (all that was measured at one time), plus the noise of its run.  Both
variances are those of Henderson's third method (1953, Biometrics 9:226), which needs no balance: blocks adjusted for cells. A
block moves all cells that were measured in it alike, so that their means are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Noise:
    """Variances, and their degrees of freedom; of runs alone if there is at most one block."""

    of_runs: float
    runs_df: int
    of_blocks: float
    blocks_df: int
    of_runs_in_blocks: float = 0.0
    """The part of ``of_runs`` that the observed differences of blocks contain too."""

    @property
    def of_one_run(self) -> float:
        """Return the variance of one new run, of a new block, about its cell's mean."""
        return self.of_runs + self.of_blocks


@dataclass(frozen=True, slots=True)
class Cells:
    inputs: Doubles
    """(cells, inputs); each row is another."""
    means: Doubles
    runs: NDArray[np.intp]
    covariance: Doubles
    """(cells, cells), of the means about the true ones."""
    noise: Noise

    def __len__(self) -> int:
        return len(self.means)

    def only(self, kept: NDArray[np.bool_]) -> Cells:
        """Return the cells where ``kept`` is true; noise stays that of all cells."""
        return Cells(self.inputs[kept], self.means[kept], self.runs[kept], self.covariance[np.ix_(kept, kept)], self.noise)


def cells(inputs: Doubles, values: Doubles, blocks: Sequence[object]) -> Cells:
    """Reduce runs to cells: ``inputs`` (runs, inputs), ``values`` (runs,), the block of each run. Raises ValueError if no cell
    has two runs, so that nothing is known of the noise, or if runs do not vary at all."""
    places, cell = np.unique(inputs, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    known = {label: number for number, label in enumerate(dict.fromkeys(blocks))}
    block = np.array([known[label] for label in blocks], dtype=np.intp)
    runs = np.bincount(cell)
    means = np.bincount(cell, values) / runs
    share = np.zeros((len(places), len(known)))
    np.add.at(share, (cell, block), 1.0)
    noise = _noise(values - means[cell], share, block)
    share /= runs[:, None]
    covariance = np.diag(noise.of_runs / runs) + noise.of_blocks * share @ share.T
    return Cells(places, means, runs.astype(np.intp), covariance, noise)


def _noise(left: Doubles, counts: Doubles, block: NDArray[np.intp]) -> Noise:
    """Estimate noise from ``left``, values less cells' means; ``counts`` are runs of (cell, block)."""
    runs = counts.sum(axis=1)
    df = len(left) - len(runs)
    if df < 1:
        raise ValueError("no cell has two runs, so the spread of runs is unknown")
    total = float(left @ left)
    if total <= 0.0:
        raise ValueError("runs of one cell do not vary at all")
    adjusted = np.diag(counts.sum(axis=0)) - counts.T @ (counts / runs[:, None])
    rank = int(np.linalg.matrix_rank(adjusted, hermitian=True, tol=1e-9 * len(left)))
    if rank < 1 or df - rank < 1:
        return Noise(total / df, df, 0.0, 0)
    sums = np.bincount(block, left, minlength=counts.shape[1])
    between = float(sums @ np.linalg.pinv(adjusted, hermitian=True) @ sums)
    of_runs = max(total - between, 0.0) / (df - rank)
    if of_runs == 0.0:
        return Noise(total / df, df, 0.0, 0)
    runs_of_block = float(np.trace(adjusted)) / rank
    of_blocks = max(0.0, (between / rank - of_runs) / runs_of_block)
    return Noise(of_runs, df - rank, of_blocks, rank, of_runs / runs_of_block)
