"""How often intervals of mixed estimates hold the truth: prints the tables of docs/multifidelity.md.

python -m benchmarks.multifidelity        five minutes
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence

from benchmarks.simulated.multifidelity import QUANTITIES, SIZES, WORLDS, held, spread

STUDIES = 1000
SEED = 1
SPREAD_SIZES = (20, 40)


def means(studies: int) -> str:
    rows = []
    for world in WORLDS:
        for n in SIZES:
            if n < world.least:
                continue
            each = held(world, n, studies, SEED)
            usual = "" if math.isnan(each.usual) else f"{100 * each.usual:.1f}"
            rows.append(
                [world.about, str(n), f"{100 * each.coverage:.1f}", usual, f"{100 * each.decided:.1f}", f"{each.bias:+.3f}"]
            )
    heads = ["testbeds", "expensive draws", "held, %", "by 1.96, %", "with the decision, %", "bias / standard error"]
    return "".join(_table(heads, rows))


def others(studies: int) -> str:
    rows = []
    for name in QUANTITIES:
        for n in SPREAD_SIZES:
            each = spread(name, n, studies, SEED)
            rows.append([name, str(n), f"{100 * each.coverage:.1f}", f"{100 * each.alone:.1f}", f"{each.width:.2f}"])
    heads = ["quantity", "expensive draws", "held, %", "alone, %", "width / alone"]
    return "".join(_table(heads, rows))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(row)} |\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=STUDIES, help="simulated studies for each number of the first table")
    given = parser.parse_args().studies
    sys.stdout.write(f"{means(given)}\n{others(max(given // 4, 2))}")
