"""How well and how early contention is detected, by simulation: writes docs/contention.md.

python -m benchmarks.contention                      all of it, some minutes on one core
python -m benchmarks.contention --studies 20 -o /tmp/contention.md
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.simulated.contention import PLANTED, outcome
from twinbed.statistics.contention import FALSE_ALARMS

REPLICATES = (4, 8, 16)
HEADS = (
    "planted",
    "replicates",
    "area, mean (least)",
    "false alarms",
    "alarms without contention",
    "detected in time",
    "best there can be",
    "studies that lead",
    "no detector",
)


def document(studies: int, tell: Callable[[str], None]) -> str:
    """The whole page."""
    lines = [HEADS, ["---"] * len(HEADS)]
    for planted in PLANTED:
        for replicates in REPLICATES:
            found = outcome(planted, replicates, studies)
            cells = [f"{found.area:.3f} ({found.least_area:.3f})"]
            shares = (found.false_alarms, found.quiet, found.in_time, planted.best(), found.leads, found.without)
            cells += [f"{100 * share:.1f}" for share in shares]
            lines.append([planted.name, str(replicates), *cells])
        tell(planted.name)
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"""# How well and how early contention is detected

Made by `python -m benchmarks.contention --studies {studies}`; do not edit. In {studies} planted studies each, in \
per cent but for the area under the ROC curve. Monte Carlo standard error of studies that lead: at most \
{50 / math.sqrt(studies):.1f}.

The rate falls from 12 pairs on: by 7.7 % at 14, by 14.8 % at 16; the tested numbers are 1, 2, 4, 8, 14, 16, 24, 32 and 40 \
pairs. An alarm comes in time only at 14 pairs. Idle time and interrupts turn from 6 pairs on ("first"), or from 12 on \
("with the rate"), a delay in run queues always turns from 12 on; a fourth metric carries no information.

- *False alarms* are those of the studies' own test runs, *alarms without contention* those of other studies in which \
nothing is contended; the limit of both is {100 * FALSE_ALARMS:g}.
- *Detected in time* is the share of runs at 14 pairs, of other studies, that alarm. *Best there can be* is the share that the \
likelihood ratio, which knows how the metrics were planted, detects at exactly {100 * FALSE_ALARMS:g} % false alarms: no \
detector can exceed it.
- *Studies that lead*: most test runs alarm at a smaller number of pairs than the one at which the rate has fallen by 10 %. \
If the machine turns with the rate, the only information at 14 pairs is three metrics that are each 1.33 standard deviations \
away. With four replicates half of them are test runs, so "most" means two of two. *No detector*: too few runs of one kind. \
If the rate itself varies by 5 %, the means of few replicates put 14 pairs on the wrong side of 5 or 10 % in some studies, \
which no detector can correct.

{table}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parents[1] / "docs" / "contention.md")
    options = parser.parse_args()

    def tell(part: str) -> None:
        sys.stderr.write(f"{part}\n")

    options.output.write_text(document(options.studies, tell))


if __name__ == "__main__":
    main()
