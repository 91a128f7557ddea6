"""How often the interval of a total over drawn hosts holds it: prints the table of docs/packets.md.

python -m benchmarks.sampled        two minutes
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.simulated.sampled import POPULATIONS, SIZES, coverage

RUNS = 100_000
SEED = 1


def table(runs: int) -> str:
    """A row a kind of links, a column a sample; bold where Student's interval may be expected to hold."""
    heads = ["packets of a pair", *(f"{drawn} of {of}" for drawn, of in SIZES)]
    rows = [heads, ["---"] * len(heads)]
    for links in POPULATIONS:
        shares = [f"{100 * coverage(links, drawn, of, runs, SEED):.1f}" for drawn, of in SIZES]
        marked = [f"**{share}**" for share in shares] if links.holds else shares
        rows.append([f"{links.name}: {links.about}", *marked])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="simulated runs for each number")
    sys.stdout.write(table(parser.parse_args().runs))
