"""The analysis ``chain``: programs' system calls as Markov chains, compared with the reference testbed's.

In: runs with levels and status, and the table ``transitions`` (run, host, program, before_3, before_2, before_1, call, count;
the rows of ``_core.Transitions.grams`` with their run, host and program).  Out, for each cell, host, program and
testbed but the reference:

* ``chains``: edges in only one chain, differences of weights, Jensen-Shannon distance, total variation of the stationary
  distributions and of the use, spectral gaps, and the test of "same chain" with Holm's correction over all of them;
* ``walks``: the seeds' Tables VIII and IX and the loss per call with its interval (``walks``);
* ``graphs``: both chains in one ``Graph``, for pictures.

Replicates are pooled for the chains, with a break between them.  Limits: replicates are taken as exchangeable; a program that
runs on one testbed alone is not compared.  Sources: see ``sameness``, ``long_run`` and ``walks``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from pydantic import Field

from twinbed._core import Transitions
from twinbed.analyses.chain.graph import graph
from twinbed.analyses.chain.groups import ReplicatedChains, gathered
from twinbed.analyses.chain.long_run import MOST_STATES, spectrum
from twinbed.analyses.chain.result import Alone, ChainRow, Chains, Compared, Graph, WalkRow
from twinbed.analyses.chain.sameness import same_chain
from twinbed.analyses.chain.walks import Rules, Walked, walk_all
from twinbed.analyses.chain.words import section
from twinbed.contracts import exit_codes
from twinbed.contracts.analysis import Analysis, File, NoSettings
from twinbed.model.caution import Caution, Kind
from twinbed.model.tables import Tables
from twinbed.show.section import Section
from twinbed.statistics.multiplicity import holm


class ChainParams(NoSettings):
    """The settings of ``chain``."""

    order: int = Field(default=1, ge=1, le=3, description="calls in a state")
    threshold: float = Field(default=0.0, ge=0, lt=1, description="edges of a lower probability are dropped (the seeds: 0.001)")
    alpha: float | None = Field(
        default=None, gt=0, description="additive smoothing of walks: the count added to each transition"
    )
    confidence: float | None = Field(default=None, gt=0.5, lt=1, description="null takes the study's")


def compare_chains(
    own: Sequence[Transitions], reference: Sequence[Transitions], *, order: int = 1, threshold: float = 0.0, seed: int = 0
) -> Compared:
    """Compare one testbed's replicates with another's. The test uses the whole chains, whatever the threshold."""
    first, second = Transitions.pool(own), Transitions.pool(reference)
    summary, edges = first.compare(second, order, threshold)
    fits = all(0 < counts.states(order, threshold).num_rows <= MOST_STATES for counts in (first, second))
    spectra = (spectrum(first, order, threshold), spectrum(second, order, threshold)) if fits else None
    return Compared(summary, edges, spectra, same_chain(own, reference, order=order, seed=seed))


def alone(tables: Tables) -> Iterator[Alone]:
    """Yield every chain of order 1 by itself, pooled over the replicates of a cell, host, program and testbed."""
    for group in gathered(tables):
        for testbed, replicates in group.replicates.items():
            pooled = Transitions.pool(replicates)
            drawn = graph(pooled, seconds=(group.seconds.get(testbed), None))
            yield Alone(testbed, group.cell, group.host, group.program, len(replicates), pooled.calls, drawn)


class Chain(Analysis[ChainParams, Chains]):
    """System calls as Markov chains, compared with the reference testbed."""

    name = "chain"
    params = ChainParams
    is_in_reports = True

    def run(self, source: Tables, params: ChainParams | None = None) -> Chains:
        tables, params = source, params or ChainParams()
        confidence = params.confidence if params.confidence is not None else tables.outline.confidence
        rules = Rules(params.order, params.threshold, params.alpha)
        reference = tables.outline.reference
        chains: list[ChainRow] = []
        walks: list[WalkRow] = []
        graphs: list[Graph] = []
        cautions: list[Caution] = []
        for group in gathered(tables):
            groups = group.replicates
            if reference is None or reference not in groups or len(groups) < 2:
                continue
            for testbed in groups:
                if testbed != reference:
                    seed = tables.outline.seed or 0
                    compared = compare_chains(
                        groups[testbed], groups[reference], order=params.order, threshold=params.threshold, seed=seed
                    )
                    chains.append(_row(group, testbed, reference, compared))
                    graphs.append(_graph(group, testbed, reference, params))
                    if compared.sameness.least_p > 1 - confidence:
                        counts = f"{len(groups[testbed])} and {len(groups[reference])} replicates"
                        detail = f"{counts}: the smallest p that the test can reach is {compared.sameness.least_p:.2g}"
                        cautions.append(Caution(Kind.FEW_REPLICATES, detail, testbed))
            walks.extend(_walk_row(group, walked) for walked in walk_all(groups, reference, rules, confidence))
        return Chains(
            _corrected(chains, confidence), tuple(walks), tuple(graphs), confidence, cautions=tuple(dict.fromkeys(cautions))
        )

    def section(self, result: Chains) -> Section:
        return section(result)

    def says_something(self, result: Chains) -> bool:
        return bool(result.chains)

    def exit_code(self, result: Chains) -> int:
        """Return the code of "different" if a chain is shown to differ, of "inconclusive" if so few replicates could not show
        it."""
        rows = result.chains
        if any(row.different for row in rows):
            return exit_codes.DIFFERENT
        inconclusive = any(row.different is None or row.least_p * len(rows) > 1 - result.confidence for row in rows)
        return exit_codes.INCONCLUSIVE if inconclusive else exit_codes.DONE

    def files(self, source: Tables) -> Iterator[File]:
        from twinbed.analyses.chain.formats import files

        return files(alone(source)) if source.table("transitions").num_rows else iter(())


def _graph(group: ReplicatedChains, testbed: str, reference: str, params: ChainParams) -> Graph:
    own, other = (Transitions.pool(group.replicates[name]) for name in (testbed, reference))
    seconds = (group.seconds.get(testbed), group.seconds.get(reference))
    return graph(own, other, order=params.order, threshold=params.threshold, seconds=seconds)


def _row(group: ReplicatedChains, testbed: str, reference: str, compared: Compared) -> ChainRow:
    first, second = compared.spectra or (None, None)
    return ChainRow(
        cell=group.cell,
        host=group.host,
        program=group.program,
        testbed=testbed,
        reference=reference,
        **compared.summary,
        stationary_distance=compared.stationary_distance,
        use_distance=compared.use_distance,
        spectral_gap=first.gap if first else None,
        reference_spectral_gap=second.gap if second else None,
        closed_classes=first.closed_classes if first else None,
        reference_closed_classes=second.closed_classes if second else None,
        p_value=compared.sameness.p_value,
        p_adjusted=None,
        different=None,
        permutations=compared.sameness.ways,
        permutations_exact=compared.sameness.exact,
        least_p=compared.sameness.least_p,
    )


def _corrected(rows: Sequence[ChainRow], confidence: float) -> tuple[ChainRow, ...]:
    """Return the rows with Holm's correction over all that have a p-value."""
    adjusted = iter(holm([row.p_value for row in rows if row.p_value is not None]))
    return tuple(row if row.p_value is None else _with_verdict(row, next(adjusted), confidence) for row in rows)


def _with_verdict(row: ChainRow, p_adjusted: float, confidence: float) -> ChainRow:
    return replace(row, p_adjusted=p_adjusted, different=p_adjusted <= round(1 - confidence, 12))


def _walk_row(group: ReplicatedChains, walked: Walked) -> WalkRow:
    values = {field.name: getattr(walked, field.name) for field in fields(walked)}
    return WalkRow(**values, cell=group.cell, host=group.host, program=group.program)


analysis = Chain()
