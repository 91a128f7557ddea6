"""How often calibrated intervals hold what they promise, by simulation: prints the tables of docs/calibration.md.

python -m benchmarks.calibration --studies 1000      an hour on one core
python -m benchmarks.calibration --studies 50
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from benchmarks.simulated.calibrated import HIGH, LOW, THREADS, WORLDS, Held, held_out, steps_needed


def study(name: str, seed: int, number: int) -> Held:
    return held_out(name, np.random.default_rng([seed, list(WORLDS).index(name), number]))


def row(name: str, found: Sequence[Held]) -> str:
    """Each study weighs the same."""
    third = [np.minimum(((each.places[:, 0] - LOW) / (HIGH - LOW) * 3).astype(int), 2) for each in found]
    by_third = [_share([each.model[at == n] for each, at in zip(found, third, strict=True)]) for n in range(3)]
    by_threads = [_share([each.model[each.places[:, 1] == threads] for each in found]) for threads in THREADS]
    cells = [
        name,
        _per_cent(_share([each.model for each in found])),
        " ".join(map(_per_cent, by_third)),
        " ".join(map(_per_cent, by_threads)),
        _per_cent(_share([each.conformal for each in found])),
        _per_cent(_share([each.delta for each in found])),
        *(
            _per_cent(float(np.nanmedian([np.nanmedian(values) for values in halves if np.isfinite(values).any()])))
            for halves in (
                [each.half for each in found],
                [each.conformal_half for each in found],
                [each.logistic_half for each in found],
            )
        ),
        _per_cent(_share([each.logistic for each in found])),
        _per_cent(float(np.mean([each.refused for each in found]))),
        f"{sum(each.beyond for each in found)} of {len(found)}",
    ]
    return f"| {' | '.join(cells)} |"


def _share(held: Sequence[np.ndarray]) -> float:
    shares = [float(values.mean()) for values in held if len(values)]
    return float(np.mean(shares)) if shares else float("nan")


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"


HEADS = (
    "world",
    "process",
    "by thirds of payloads",
    "by threads",
    "conformal",
    "difference",
    "half-width: process",
    "conformal",
    "logistics",
    "logistics hold",
    "refused",
    "beyond refused",
)


def planned(seed: int, number: int) -> tuple[int, float] | None:
    return steps_needed(np.random.default_rng([seed, 99, number]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--world", choices=WORLDS, action="append")
    given = parser.parse_args()
    sys.stdout.write(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}\n")
    with ProcessPoolExecutor(given.workers) as workers:
        for name in given.world or WORLDS:
            found = list(workers.map(partial(study, name, given.seed), range(given.studies), chunksize=4))
            sys.stdout.write(row(name, found) + "\n")
            sys.stdout.flush()
        if given.world:
            return
        steps = [each for each in workers.map(partial(planned, given.seed), range(max(1, given.studies // 10))) if each]
        ratio = sum(chosen for chosen, _ in steps) / sum(drawn for _, drawn in steps)
        sys.stdout.write(f"\nruns of --next by those of random choice: {ratio:.2f}, over {len(steps)} studies\n")


if __name__ == "__main__":
    main()
