"""The result of ``chain``: chains compared with the reference's, walks, and chains as graphs for pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from twinbed.analyses.chain.long_run import Spectrum, total_variation
from twinbed.analyses.chain.sameness import Sameness
from twinbed.analyses.chain.walks import Walked, exponent
from twinbed.model.caution import Cautioned
from twinbed.model.run import Level

if TYPE_CHECKING:
    import pyarrow as pa

    from twinbed._core import ChainComparison


@dataclass(frozen=True, slots=True)
class Node:
    """A state: its calls, the latest last. Pairs belong to the first and second chain, None if that chain lacks the node."""

    state: str
    shares: tuple[float | None, float | None]
    """The share of all transitions that leave it."""
    times: tuple[float | None, float | None]
    """The share of all time in calls; None also if no time was measured."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition. Pairs belong to the first and second chain, None if that chain has no such edge."""

    state: str
    call: str
    next_state: str
    probabilities: tuple[float | None, float | None]
    shares: tuple[float | None, float | None]
    """The share of all transitions."""

    @property
    def only(self) -> int | None:
        """Return the only chain that has it (0 or 1); None if both have it."""
        first, second = self.probabilities
        return None if first is not None and second is not None else int(first is None)


@dataclass(frozen=True, slots=True)
class Graph:
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class ChainRow:
    """A testbed's chain and the reference's: the "first" and "second" of ``_core.ChainComparison``."""

    cell: Mapping[str, Level]
    host: str
    program: str | None
    testbed: str
    reference: str
    shared_edges: int
    only_first: int
    only_second: int
    different_edges: float | None
    only_first_share: float | None
    only_second_share: float | None
    greatest_difference: float | None
    mean_difference: float | None
    divergence_bits: float | None
    distance: float | None
    stationary_distance: float | None
    use_distance: float | None
    spectral_gap: float | None
    reference_spectral_gap: float | None
    closed_classes: int | None
    reference_closed_classes: int | None
    p_value: float | None
    p_adjusted: float | None
    """After Holm's correction over all rows; None before it, and without a test."""
    different: bool | None
    permutations: int
    permutations_exact: bool
    least_p: float


@dataclass(frozen=True, slots=True)
class WalkRow(Walked):
    """One testbed's walks, with their cell, host and program."""

    cell: Mapping[str, Level]
    host: str
    program: str | None

    @property
    def relative_probability(self) -> str:
        """Return the exponent as the seeds print it."""
        return exponent(self.relative_log10_mean)

    @property
    def low(self) -> float | None:
        """Return the lower end of the interval of ``per_call_difference``."""
        return self.interval.low if self.interval else None

    @property
    def high(self) -> float | None:
        """Return the upper end of it."""
        return self.interval.high if self.interval else None


@dataclass(frozen=True, slots=True)
class Chains(Cautioned):
    """Each row of ``chains`` compares a testbed's chain with the reference's; ``graphs`` has both in one, in the same order."""

    chains: tuple[ChainRow, ...] = ()
    walks: tuple[WalkRow, ...] = ()
    """The seeds' Tables VIII and IX, and the loss per call with its interval."""
    graphs: tuple[Graph, ...] = ()
    confidence: float = 0.95

    def of(self, program: str) -> Chains:
        """Return the chains and walks of one program. P-values keep their correction over all programs."""
        kept = [(row, graph) for row, graph in zip(self.chains, self.graphs, strict=True) if row.program == program]
        walks = tuple(row for row in self.walks if row.program == program)
        return replace(self, chains=tuple(row for row, _ in kept), graphs=tuple(graph for _, graph in kept), walks=walks)


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison of two groups of replicates, each pooled into one chain."""

    summary: ChainComparison
    edges: pa.Table
    """Each edge with its weights in both, null if a chain lacks it."""
    spectra: tuple[Spectrum, Spectrum] | None
    """None if a chain has no states, or more than ``long_run.MOST_STATES``."""
    sameness: Sameness

    @property
    def stationary_distance(self) -> float | None:
        """Return the total variation of the two long runs."""
        return total_variation(*self.spectra) if self.spectra else None

    @property
    def use_distance(self) -> float | None:
        """Return the total variation of the use of states."""
        return total_variation(*self.spectra, of_use=True) if self.spectra else None


@dataclass(frozen=True, slots=True)
class Alone:
    """One chain without a comparison: the first of its graph."""

    testbed: str
    cell: Mapping[str, Level]
    host: str
    program: str | None
    replicates: int
    calls: int
    graph: Graph


def where(row: ChainRow | WalkRow) -> str:
    """Return ``nginx on server``."""
    return f"{row.program or 'unknown program'} on {row.host}"
