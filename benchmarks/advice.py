"""How often ``twinbed advise`` gives a wrong rule, of studies whose truth is planted: the table of docs/advise.md.

python -m benchmarks.advice                          100 studies of each world and size, about an hour on one core
python -m benchmarks.advice --studies 20 --sizes 10
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.simulated.ruled import WORLDS, counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 10], help="replicates")
    parser.add_argument("--seed", type=int, default=1, help="of the first study; the next ones follow")
    options = parser.parse_args()
    heads = ("true", "replicates", "studies", "with a wrong rule", "rules of a study")
    sys.stdout.write(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n")
    for world in WORLDS:
        for replicates in options.sizes:
            found = counts(world, replicates, options.studies, options.seed)
            numbers = (replicates, options.studies, f"{found.wrong} ({100 * found.wrong / options.studies:.1f} %)")
            sys.stdout.write(f"| {world.name} | {' | '.join(map(str, numbers))} | {found.rules:.1f} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
