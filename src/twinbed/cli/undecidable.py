"""What a study has too few replicates to show, whatever its runs measure: said before it runs.

Some tests have a smallest p-value that follows from the number of replicates alone. Where this is above the level that the
study asks for, no data decide them:

* a verdict needs a spread, and with two values Welch's test oversteps its level (``statistics.power``);
* how many pairs fit needs a spread at each number, and of a loss the sign test as well: n of n runs are 1 - 2^-n sure
  (``statistics.capacity``);
* the test of one chain of system calls counts the ways to deal n and n labels, 2 / C(2n, n) at best, and is corrected for the
  number of tests (``statistics.permutations``). Of each pair at least two programs are traced, a client and a server.
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
"""More replicates of a test of chains are not proposed."""


@dataclass(frozen=True, slots=True)
class Undecidable:
    """What cannot be shown."""

    what: str
    why: str
    replicates: int
    needs: int | None
    """The fewest replicates of each cell that can show it; None where no number of them does."""

    def sentence(self) -> str:
        """Such as ``a verdict: 1 replicate has no spread; 3 are the fewest that can (-s replicates=3)``."""
        least = "no number of them can" if self.needs is None else f"{self.needs} are the fewest that can"
        advice = "" if self.needs is None else f" (-s replicates={self.needs})"
        return f"{self.what}: {self.why}; {least}{advice}"


def undecidable(study: Study) -> tuple[Undecidable, ...]:
    """In the order of the report; nothing where the design can decide all that it asks."""
    return (*_pairs(study), *_verdicts(study), *_chains(study))


def _pairs(study: Study) -> Iterator[Undecidable]:
    """How many fit: where the number of pairs varies."""
    over, n = of_pairs(name for name, levels in study.factors.items() if len(levels) > 1), study.replicates
    if over is None:
        return
    if n < LEAST:
        yield Undecidable("how many pairs fit", "one run at a number says nothing of how the next will be", n, LEAST)
    needs = fewest_of_a_loss(study.confidence)
    if n < needs and any(_loses(cell) for cell in study.cells):
        sure = f"even {n} of {n} runs that keep it make it {100 * (1 - 0.5**n):.4g} % sure that most do"
        why = f"{sure}, where {format_share(study.confidence)} is asked"
        yield Undecidable(f"how many pairs fit by loss at most {100 * MOST_LOSS:g} %", why, n, needs)


def _loses(cell: Cell) -> bool:
    workload = registry.PLUGINS.workloads[cell.workload.kind]
    return any(metric.name == "loss" for metric in workload.described(cell.workload.params).metrics)


def _verdicts(study: Study) -> Iterator[Undecidable]:
    if study.replicates < LEAST and any(_compared(study, study.cells)):
        yield Undecidable("any verdict", "a single run has no spread", study.replicates, FEWEST)


def _chains(study: Study) -> Iterator[Undecidable]:
    traced = [cell for cell in study.cells if SYSTEM_CALLS in cell.instruments]
    tests = sum(PROGRAMS * cell.topology.pairs for cell in _compared(study, traced))
    alpha, n = round(1 - study.confidence, 12), study.replicates
    if tests and least_p(n, n) * tests > alpha:
        needs = next((more for more in range(n, MOST) if least_p(more, more) * tests <= alpha), None)
        smallest = (
            f"{least_p(n, n):.2g}{f', corrected for {tests} tests {min(1.0, tests * least_p(n, n)):.2g}' if tests > 1 else ''}"
        )
        why = f"with {n} and {n} replicates the smallest p is {smallest}"
        yield Undecidable("that chains of system calls differ", why, n, needs)


def _compared(study: Study, cells: Sequence[Cell]) -> Iterator[Cell]:
    """Those that the reference has as well."""

    def rest(cell: Cell) -> tuple[tuple[str, str], ...]:
        return tuple((name, repr(level)) for name, level in cell.levels.items() if name != TESTBED)

    held_against = {rest(cell) for cell in cells if cell.testbed_name == study.reference}
    return (cell for cell in cells if cell.testbed_name != study.reference and rest(cell) in held_against)
