"""The mean area of one normal feature by pairs of runs left out, by scores pooled over folds, and as it is to be expected.

python -m benchmarks.simulated.pooled          the table of docs/detectability.md; some minutes on one core
"""

from __future__ import annotations

import math
import sys
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.separation import PairsOut

CASES = ((10, 0.0, 1000), (10, 0.5, 2000), (10, 1.0, 500), (20, 0.5, 300))
"""Runs each, shift in standard deviations, studies."""


def expected(shift: float, runs: int) -> tuple[float, float]:
    """The best area, and the mean of rules fitted to one run less of each kind (docs/detectability.md)."""
    phi = NormalDist().cdf
    right, best = phi(shift * math.sqrt((runs - 1) / 2)), phi(shift / math.sqrt(2))
    return best, right * best + (1 - right) * (1 - best)


def pooled(values: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Each run is scored by the rule of all others, and all scores are compared with each other."""
    scores = np.empty(len(values))
    for run in range(len(values)):
        kept = np.arange(len(values)) != run
        direction = values[kept & labels].mean() - values[kept & ~labels].mean()
        scores[run] = (values[run] - values[kept].mean()) * direction
    one, other = scores[labels][:, None], scores[~labels][None]
    return float(np.mean((one > other) + 0.5 * (one == other)))


def main() -> None:
    noise = np.random.default_rng(1)
    for runs, shift, studies in CASES:
        labels = np.arange(2 * runs) < runs
        areas, in_one_pool = [], []
        for _ in range(studies):
            values = noise.normal(size=2 * runs) + shift * labels
            areas.append(float(PairsOut.of(values[:, None], np.arange(2 * runs)).areas(labels[None])[0]))
            in_one_pool.append(pooled(values, labels))
        best, mean = expected(shift, runs)
        shown = f"{np.mean(areas):.3f} ± {np.std(areas) / math.sqrt(studies):.3f} | {np.mean(in_one_pool):.3f}"
        sys.stdout.write(f"| {runs} | {shift:g} | {studies} | {best:.3f} | {mean:.3f} | {shown} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
