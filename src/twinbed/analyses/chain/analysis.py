"""The analysis ``chain``: what programs asked of the kernel, as Markov chains, held against the reference testbed's.

In: runs with levels and status, and the table ``transitions`` (run, host, program, before_3, before_2, before_1, call, count;
``_core.Transitions.grams`` with what it is of).  Out, for each cell, host, program and testbed but the reference:

* ``chains``: edges in only one chain, differences of weights, Jensen-Shannon distance, total variation of the stationary
  distributions and of the use, spectral gaps, and the test of "same chain" with Holm's correction over all of them;
* ``walks``: the seeds' Tables VIII and IX and the loss per call with its interval (``walks``);
* ``graphs``: both chains in one ``Graph``, for pictures.

Replicates are pooled for the chains, with a break between one and the next.  Limits: replicates are taken as exchangeable; a
program that one testbed alone runs is compared with nothing.  Sources: see ``sameness``, ``long_run`` and ``walks``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from twinbed._core import Transitions
from twinbed.analyses.chain.graph import Graph, graph
from twinbed.analyses.chain.groups import Group, gathered
from twinbed.analyses.chain.long_run import MOST_STATES, Spectrum, spectrum, total_variation
from twinbed.analyses.chain.result import Alone, Chains
from twinbed.analyses.chain.sameness import Sameness, same_chain
from twinbed.analyses.chain.walks import Rules, Walked, exponent, walk_all
from twinbed.contracts.analysis import Analysis, File, Row, Section
from twinbed.metrics.metric import Layer
from twinbed.model.caution import Caution, Kind
from twinbed.model.tables import Tables
from twinbed.statistics.multiplicity import holm


class ChainParams(BaseModel):
    """What ``chain`` can be told."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    order: int = Field(default=1, ge=1, le=3, description="how many calls make a state")
    threshold: float = Field(default=0.0, ge=0, lt=1, description="edges of a lower probability are dropped (the seeds: 0.001)")
    alpha: float | None = Field(
        default=None, gt=0, description="additive smoothing of walks: how often more each call followed each state"
    )
    confidence: float | None = Field(default=None, gt=0.5, lt=1, description="null takes what the study file says")


@dataclass(frozen=True, slots=True)
class Compared:
    """Two groups of replicates, pooled into a chain each."""

    summary: Mapping[str, Any]
    """``_core.ChainComparison``"""
    edges: Any
    """``pyarrow.Table``: each edge with its weights in both, null where a chain lacks it."""
    spectra: tuple[Spectrum, Spectrum] | None
    """None where a chain has no states, or more than ``long_run.MOST_STATES``."""
    sameness: Sameness

    @property
    def stationary_distance(self) -> float | None:
        return total_variation(*self.spectra) if self.spectra else None

    @property
    def use_distance(self) -> float | None:
        return total_variation(*self.spectra, of_use=True) if self.spectra else None


def compare_chains(
    one: Sequence[Transitions], two: Sequence[Transitions], *, order: int = 1, threshold: float = 0.0, seed: int = 0
) -> Compared:
    """One testbed's replicates against another's. The test is of the whole chains, whatever the threshold."""
    first, second = Transitions.pool(one), Transitions.pool(two)
    summary, edges = first.compare(second, order, threshold)
    there = all(0 < counts.states(order, threshold).num_rows <= MOST_STATES for counts in (first, second))
    spectra = (spectrum(first, order, threshold), spectrum(second, order, threshold)) if there else None
    return Compared(summary, edges, spectra, same_chain(one, two, order=order, seed=seed))


def alone(tables: Tables) -> Iterator[Alone]:
    """Every chain by itself, all replicates of a cell, host, program and testbed pooled; of one call a state."""
    for group in gathered(tables):
        for testbed, replicates in group.replicates.items():
            pooled = Transitions.pool(replicates)
            drawn = graph(pooled, seconds=(group.seconds.get(testbed), None))
            yield Alone(testbed, group.cell, group.host, group.program, len(replicates), pooled.calls, drawn)


class Chain(Analysis[ChainParams, Chains]):
    """The analysis."""

    name = "chain"
    params = ChainParams
    summary = "system calls as Markov chains against the reference testbed: edges, distances, walks, the test of one chain"

    def run(self, source: Tables, params: ChainParams | None = None) -> Chains:
        tables, params = source, params or ChainParams()
        confidence = params.confidence if params.confidence is not None else tables.outline.confidence
        rules = Rules(params.order, params.threshold, params.alpha)
        reference = tables.outline.reference
        chains: list[dict[str, Any]] = []
        walks: list[dict[str, Any]] = []
        graphs: list[Graph] = []
        cautions: list[Caution] = []
        for group in gathered(tables):
            groups = group.replicates
            where = {"cell": group.cell, "host": group.host, "program": group.program}
            if reference is None or reference not in groups or len(groups) < 2:
                continue
            for testbed in groups:
                if testbed != reference:
                    seed = tables.outline.seed or 0
                    found = compare_chains(
                        groups[testbed], groups[reference], order=params.order, threshold=params.threshold, seed=seed
                    )
                    pair = {**where, "testbed": testbed, "reference": reference}
                    chains.append({**pair, **_row(found)})
                    graphs.append(_graph(group, testbed, reference, params))
                    if found.sameness.least_p > 1 - confidence:
                        counts = f"{len(groups[testbed])} and {len(groups[reference])} replicates"
                        detail = f"{counts}: the test of one chain cannot come below p = {found.sameness.least_p:.2g}"
                        cautions.append(Caution(Kind.FEW_REPLICATES, detail, testbed))
            walks.extend({**where, **_walk_row(walked)} for walked in walk_all(groups, reference, rules, confidence))
        tested = [row for row in chains if row["p_value"] is not None]
        for row, p_value in zip(tested, holm([row["p_value"] for row in tested]), strict=True):
            row["p_adjusted"] = p_value
            row["different"] = p_value <= round(1 - confidence, 12)
        return Chains(tuple(chains), tuple(walks), tuple(graphs), tuple(dict.fromkeys(cautions)))

    def tables(self, result: Chains) -> Mapping[str, Sequence[Row]]:
        return {"chains": result.chains, "walks": result.walks}

    def sections(self, source: Tables) -> Sequence[Section]:
        from twinbed.analyses.chain.section import chains

        if not source.table("transitions").num_rows:
            return ()
        return (Section(self.name, "", lambda: "".join(chains(self.run(source))), layer=Layer.OS),)

    def files(self, source: Tables) -> Iterator[File]:
        from twinbed.analyses.chain.files import files

        return files(alone(source)) if source.table("transitions").num_rows else iter(())


def _graph(group: Group, testbed: str, reference: str, params: ChainParams) -> Graph:
    one, two = (Transitions.pool(group.replicates[name]) for name in (testbed, reference))
    seconds = (group.seconds.get(testbed), group.seconds.get(reference))
    return graph(one, two, order=params.order, threshold=params.threshold, seconds=seconds)


def _row(found: Compared) -> dict[str, Any]:
    spectra = found.spectra
    return {
        **found.summary,
        "stationary_distance": found.stationary_distance,
        "use_distance": found.use_distance,
        "spectral_gap": spectra[0].gap if spectra else None,
        "reference_spectral_gap": spectra[1].gap if spectra else None,
        "closed_classes": spectra[0].closed_classes if spectra else None,
        "reference_closed_classes": spectra[1].closed_classes if spectra else None,
        "p_value": found.sameness.p_value,
        "p_adjusted": None,
        "different": None,
        "permutations": found.sameness.ways,
        "permutations_exact": found.sameness.exact,
        "least_p": found.sameness.least_p,
    }


def _walk_row(walked: Walked) -> dict[str, Any]:
    row = asdict(walked)
    interval = row.pop("interval")
    row["relative_probability"] = exponent(walked.relative_log10_mean)
    return {**row, "low": interval["low"] if interval else None, "high": interval["high"] if interval else None}


analysis = Chain()
