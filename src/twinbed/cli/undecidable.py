"""Finds what a study has too few replicates to show, whatever its runs measure. It is printed before runs are made.

The smallest possible p-value of some tests follows from the number of replicates alone. If it is above the study's level, no
data can decide these tests:

* A verdict needs a spread, and with two values Welch's test exceeds its level (``statistics.power``).
* The number of pairs that fit needs a spread at each number. For a loss, the sign test is 1 - 2^-n sure with n of n runs
  (``statistics.capacity``).
* The test of a chain of system calls counts the ways to deal n and n labels. Its smallest p is 2 / C(2n, n), corrected for the
  number of tests (``statistics.permutations``). Each pair has at least two traced programs, a client and a server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twinbed import registry
from twinbed.model.units import format_share
from twinbed.observations.numbered import MOST_LOSS, of_pairs
from twinbed.statistics.capacity import LEAST, fewest_of_a_loss
from twinbed.statistics.permutations import least_p
from twinbed.statistics.power import FEWEST
from twinbed.study.cell import Cell
from twinbed.study.factor import TESTBED
from twinbed.study.study import Study

SYSTEM_CALLS, PROGRAMS = "syscalls", 2
MOST = 100
"""Most replicates that are proposed for a test of chains."""


@dataclass(frozen=True, slots=True)
class Undecidable:
    """A conclusion that the replicates cannot support."""

    what: str
    why: str
    replicates: int
    needs: int | None
    """The fewest replicates of each cell that can show it; None where no number can."""

    def sentence(self) -> str:
        """Return such as ``Too few replicates for any verdict: ... At least 3 are needed: -s replicates=3``."""
        remedy = (
            "No number is enough." if self.needs is None else f"At least {self.needs} are needed: -s replicates={self.needs}"
        )
        return f"Too few replicates for {self.what}: {self.why}. {remedy}"


def undecidable(study: Study) -> tuple[Undecidable, ...]:
    """Return what the replicates cannot show, in the order of the report."""
    return (*_pairs(study), *_verdicts(study), *_chains(study))


def _pairs(study: Study) -> Iterator[Undecidable]:
    """Yield limits on how many pairs fit, if the number of pairs varies."""
    over, n = of_pairs(name for name, levels in study.factors.items() if len(levels) > 1), study.replicates
    if over is None:
        return
    if n < LEAST:
        yield Undecidable("the number of pairs that fit", "one run at a number of pairs shows no spread", n, LEAST)
    needs = fewest_of_a_loss(study.confidence)
    if n < needs and any(_loses(cell) for cell in study.cells):
        sure = f"{n} of {n} good runs give a confidence of {100 * (1 - 0.5**n):.4g} %"
        why = f"{sure}, below the study's {format_share(study.confidence)}"
        yield Undecidable(f"the number of pairs that fit by loss (at most {100 * MOST_LOSS:g} %)", why, n, needs)


def _loses(cell: Cell) -> bool:
    workload = registry.PLUGINS.workloads[cell.workload.kind]
    return any(metric.name == "loss" for metric in workload.described(cell.workload.params).metrics)


def _verdicts(study: Study) -> Iterator[Undecidable]:
    if study.replicates < LEAST and any(_compared(study, study.cells)):
        yield Undecidable("any verdict", "a single run shows no spread", study.replicates, FEWEST)


def _chains(study: Study) -> Iterator[Undecidable]:
    traced = [cell for cell in study.cells if SYSTEM_CALLS in cell.instruments]
    tests = sum(PROGRAMS * cell.topology.pairs for cell in _compared(study, traced))
    alpha, n = round(1 - study.confidence, 12), study.replicates
    if tests and least_p(n, n) * tests > alpha:
        needs = next((more for more in range(n, MOST) if least_p(more, more) * tests <= alpha), None)
        smallest = (
            f"{least_p(n, n):.2g}{f', corrected for {tests} tests {min(1.0, tests * least_p(n, n)):.2g}' if tests > 1 else ''}"
        )
        why = f"with {n} and {n} replicates the smallest possible p is {smallest}"
        yield Undecidable("a difference of system-call chains", why, n, needs)


def _compared(study: Study, cells: Sequence[Cell]) -> Iterator[Cell]:
    """Yield the cells that the reference has too."""

    def rest(cell: Cell) -> tuple[tuple[str, str], ...]:
        return tuple((name, repr(level)) for name, level in cell.levels.items() if name != TESTBED)

    of_reference = {rest(cell) for cell in cells if cell.testbed_name == study.reference}
    return (cell for cell in cells if cell.testbed_name != study.reference and rest(cell) in of_reference)
