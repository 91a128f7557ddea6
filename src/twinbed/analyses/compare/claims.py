"""Decide comparisons of one or several studies together: their errors are controlled over all of them.

A verdict of ``compare`` is right as often as its study says, cell by cell (equivalence) or study by study (difference). Who
acts on any of many sentences needs more: that all are right at once. Half of the error alpha goes to what is called
equivalent and half to what is called different, each corrected by Holm (1979, Scand. J. Stat. 6:65) over all comparisons,
whatever their dependence. So the chance that any verdict here is wrong is at most alpha.  A sentence on several of them,
such as "equivalent from 64 KiB on", is wrong no more often: an intersection-union test (Berger 1982, Technometrics 24:295),
whose p-value is the largest of its cells'.  It needs every cell, and costs no correction of its own.

Nothing is concluded from fewer than FEW values on a side, whatever they are: such comparisons are not tested, which is a
matter of the design, so that it changes no error rate. Nor is it from files that contradict what their paths say of them, or
where no session has runs of both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from twinbed.model.caution import NO_VERDICT
from twinbed.model.comparison import FEW, Comparison
from twinbed.model.result import Verdict
from twinbed.statistics.multiplicity import holm


@dataclass(frozen=True, slots=True)
class Decided:
    """Comparisons in the order given, with verdicts that hold together; p-values are corrected, None where none was tested."""

    comparisons: tuple[Comparison, ...]
    tested: int
    """How many comparisons were tested."""
    equivalent_level: float
    """For planning: the level at which the next one would be called equivalent, were all that are open tested."""
    different_level: float


def values(comparison: Comparison) -> int:
    """Return how many independent values the side has that has fewer: of runs, or of sessions where these are compared."""
    return comparison.runs if comparison.sessions is None else min(comparison.sessions)


def testable(comparison: Comparison) -> bool:
    return values(comparison) >= FEW and not any(caution.kind in NO_VERDICT for caution in comparison.cautions)


def decided(comparisons: Sequence[Comparison], alpha: float) -> Decided:
    """Return the verdicts that hold together, with probability 1 - ``alpha``."""
    able = [testable(comparison) for comparison in comparisons]
    half = alpha / 2
    alone = (
        [comparison.p_equivalent for comparison in comparisons],
        [comparison.p_different_alone for comparison in comparisons],
    )
    within, beyond = (
        holm([p_value if tested else None for p_value, tested in zip(p_values, able, strict=True)]) for p_values in alone
    )
    of_all = tuple(
        replace(comparison, verdict=_verdict(equivalent, different, half), p_equivalent=equivalent, p_different=different)
        for comparison, equivalent, different in zip(comparisons, within, beyond, strict=True)
    )
    shown = [sum(p_value is not None and p_value <= half for p_value in p_values) for p_values in (within, beyond)]
    counts = [sum(p_value is not None for p_value in p_values) for p_values in alone]
    return Decided(
        of_all,
        sum(equivalent is not None or different is not None for equivalent, different in zip(within, beyond, strict=True)),
        *(half / max(1, count - already) for count, already in zip(counts, shown, strict=True)),
    )


def _verdict(p_equivalent: float | None, p_different: float | None, level: float) -> Verdict:
    if p_equivalent is not None and p_equivalent <= level:
        return Verdict.EQUIVALENT
    return Verdict.DIFFERENT if p_different is not None and p_different <= level else Verdict.INCONCLUSIVE
