"""How well the analysis `anomaly` finds what moves with the rate, by simulation: writes docs/anomaly.md.

python -m benchmarks.anomaly                      all of it, some ten minutes on one core
python -m benchmarks.anomaly --studies 20 -o /tmp/anomaly.md
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.simulated.anomaly import METRICS, SHARES, SPREAD, Anomaly, outcome

PLANTED = (
    *(Anomaly("more a request where faster", 10, correlation) for correlation in (0.6, 0.7, 0.8, 0.9)),
    Anomaly("the same, 5 replicates", 5, 0.9),
    Anomaly("the same, 20 replicates", 20, 0.6),
    Anomaly("the same, others have half their variance in common", 10, 0.8, common=0.5),
    Anomaly("fewer a request where faster", 10, 0.8, -1),
    Anomaly("the same, 20 replicates", 20, 0.8, -1),
    Anomaly("the same, 40 replicates", 40, 0.8, -1),
    Anomaly("none", 10, None),
    Anomaly("none, half the variance in common", 10, None, common=0.5),
    Anomaly("more a request where faster; 20 others change with N", 10, 0.8, of_n=20),
)
HEADS = ("planted", "correlation", "replicates", "found", "first of all", "false discoveries", "any false", "of N")


def document(studies: int, tell: Callable[[str], None]) -> str:
    """The whole page."""
    lines = [HEADS, ["---"] * len(HEADS)]
    for planted in PLANTED:
        of = outcome(planted, studies)
        shares = (of.found, of.first, of.false, of.any_false, of.of_n)
        correlation = "" if planted.correlation is None else f"{planted.correlation * planted.direction:g}"
        shown = ["" if math.isnan(share) else f"{100 * share:.1f}" for share in shares]
        lines.append([planted.name, correlation, str(planted.replicates), *shown])
        tell(planted.name)
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    rates = ", ".join(f"{share:g} at {n}" for n, share in SHARES.items())
    return f"""# How well what moves with an anomaly is found

Made by `python -m benchmarks.anomaly --studies {studies}`; do not edit. {studies} planted studies each, in per cent. Monte \
Carlo standard error of a share of studies: at most {50 / math.sqrt(studies):.1f}, of one near 5 or 95 %: \
{100 * math.sqrt(0.05 * 0.95 / studies):.1f}.

The rate of a pair is {rates} pairs, with a standard deviation of {100 * SPREAD:g} % at equal N. Of {METRICS} metrics one \
is planted: its logarithm has the named correlation with that of the rate, for each unit of work. The others are counts that \
go with the work, the time, the time of each pair, or a mix of these with shares drawn at random and noise of 0.2 to 30 %; \
rare counts (0.5 to 50 a run); the rate, the work and their inverses under other names; and levels that carry no information.

- *Found*: the share of studies that name the planted metric, at `--alpha 0.05`. *First of all*: above all others.
- *False discoveries*: the share of wrong ones among those named, mean over studies, 0 where none is named; the limit is 5. \
*Any false*: the share of studies that name a wrong one at all.
- *Fewer a request where faster* is found less often: what falls for each request as pairs are added is what a part that goes \
with time alone does, and at one or two numbers of pairs no test distinguishes the two. More replicates do.
- *Of N*: of metrics that change with N for a reason of their own (by a factor of 1.04 to 1.41 for each doubling, up or down), \
the share that is named. They count neither as found nor as false: they do move with a rate that changes with N.

{table}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parents[1] / "docs" / "anomaly.md")
    options = parser.parse_args()

    def tell(part: str) -> None:
        sys.stderr.write(f"{part}\n")

    options.output.write_text(document(options.studies, tell))


if __name__ == "__main__":
    main()
