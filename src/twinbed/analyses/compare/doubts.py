"""Collect the doubts about comparisons: by cell, by metric, by the time of runs, and over the whole study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.analyses.compare import settling
from twinbed.analyses.compare.cautions import carried, of_group, of_study, residue
from twinbed.analyses.compare.decision import DOUBTS
from twinbed.analyses.compare.gathered import Gathered
from twinbed.analyses.compare.ordering import order_cautions, orderings, session_cautions
from twinbed.model.caution import Caution, Kind
from twinbed.model.comparison import CellCautions, Comparison, Ordering
from twinbed.observations.apart import Times
from twinbed.observations.samples import CellRuns, Key

MOST_NAMED = 3
"""Metrics that a caution names."""
Group = tuple[str, str]
"""(cell, testbed)"""


@dataclass(frozen=True, slots=True)
class Doubts:
    """The cautions of a study, before its comparisons are judged."""

    of_groups: Mapping[Group, tuple[Caution, ...]]
    unsettled: Mapping[Group, Caution]
    """Cautions of ``of_groups`` about runs that never settle."""
    of_metrics: Sequence[Mapping[tuple[Key, str], Sequence[Caution]]]
    """(metric, testbed) -> what their order does to runs, and what their sessions do."""
    of_times: Mapping[Group, Caution]
    """Cautions about testbeds that were measured apart from the reference."""
    of_interim: Sequence[Caution]
    """Cautions about a study that may end with any interim analysis: similar neighbouring runs end it too soon."""
    whole: Sequence[Caution]
    """Cautions about the study, whatever is compared."""
    orderings: tuple[Ordering, ...]

    def of(self, key: Key, cell: str, names: tuple[str, str]) -> Iterator[Caution]:
        """Yield those of one comparison: of the testbed ``names[0]`` with the reference ``names[1]``."""
        yield from self.of_interim
        for name in names:
            yield from self.of_groups.get((cell, name), ())
        if (cell, names[0]) in self.of_times:
            yield self.of_times[cell, names[0]]
        for cautions in self.of_metrics:
            yield from dict.fromkeys(caution for name in names for caution in cautions.get((key, name), ()))

    def of_study(self, comparisons: Sequence[Comparison], gathered: Gathered) -> Iterator[Caution]:
        """Yield those of the whole study, each once."""
        yield from self.whole
        yield from _of_headlines(comparisons, gathered.samples.testbeds)
        yield from self.of_interim
        for cautions in self.of_metrics:
            yield from dict.fromkeys(caution for of_cell in cautions.values() for caution in of_cell)
        yield from settling.of_study(self.unsettled, len(gathered.samples.groups))
        yield from dict.fromkeys(self.of_times.values())

    def of_cells(self, gathered: Gathered) -> tuple[CellCautions, ...]:
        """Return those of each cell that a testbed has runs of."""
        cells = gathered.samples.cells
        return tuple(CellCautions(cells[cell], testbed, own) for (cell, testbed), own in self.of_groups.items())


def doubts(gathered: Gathered) -> Doubts:
    """Return what speaks against the comparisons of what was gathered."""
    tables, samples, rules = gathered.tables, gathered.samples, gathered.rules
    carry, left = carried(tables), residue(tables, gathered.sessions)
    ordered = orderings(samples, tables.records, rules.alpha)
    of_order = order_cautions(ordered, samples.testbeds, rules.margin, rules.alpha)
    of_sessions = {} if gathered.units.of_run else session_cautions(samples, tables.records, rules.margin, rules.alpha)
    of_groups = {
        (cell, testbed): of_group(testbed, cell, group, carry, left)
        for cell, groups in samples.groups.items()
        for testbed, group in groups.items()
    }
    unsettled = settling.of_cells(samples, rules.margin, rules.confidence)
    for place, caution in unsettled.items():
        of_groups[place] = (*of_groups[place], caution)
    interim_cautions: tuple[Caution, ...] = ()
    if gathered.interim_analyses and not gathered.units.sessions and (interim := tables.outline.interim):
        detail = f"{gathered.interim_analyses} interim analyses, the last of {interim.blocks} replicates"
        interim_cautions = (Caution(Kind.LOOKS, detail),)
    return Doubts(
        of_groups,
        unsettled,
        (of_order, of_sessions),
        {} if gathered.units.sessions else _apart(gathered),
        interim_cautions,
        of_study(tables, samples, carry, left),
        ordered,
    )


def _apart(gathered: Gathered) -> Mapping[Group, Caution]:
    tables, groups = gathered.tables, gathered.samples.groups
    times = Times(tables.records, tables.outline.data.get("order"), stated=gathered.without_sessions)
    reference, cautions = str(tables.outline.reference), {}
    for cell, of_cell in groups.items():
        theirs = of_cell.get(reference, CellRuns()).complete
        for testbed, group in of_cell.items():
            if testbed != reference and (caution := times.caution((testbed, group.complete), (reference, theirs))):
                cautions[cell, testbed] = caution
    return cautions


def _of_headlines(comparisons: Sequence[Comparison], testbeds: Sequence[str]) -> Iterator[Caution]:
    """Yield what headline comparisons carry, each kind once."""
    headlines = [comparison for comparison in comparisons if comparison.headline]
    for kind in (Kind.FEW_REPLICATES, Kind.SKEWED):
        for testbed in testbeds:
            hit = {
                (str(comparison.cell), comparison.place): comparison.metric
                for comparison in headlines
                for caution in comparison.cautions
                if caution.kind is kind and caution.subject == testbed
            }
            if hit:
                metrics = sorted(set(hit.values()))
                which = ", ".join(metrics) if len(metrics) <= MOST_NAMED else f"{len(metrics)} metrics"
                yield Caution(kind, f"{len(hit)} headline values: {which}", testbed)
    for kind in (*DOUBTS.values(), Kind.UNLIKE_LENGTHS):
        few = {comparison.metric for comparison in headlines if any(own.kind is kind for own in comparison.cautions)}
        if few:
            yield Caution(kind, ", ".join(sorted(few)))
