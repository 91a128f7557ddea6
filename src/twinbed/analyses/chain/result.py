"""What ``chain`` returns: chains compared with the reference's, walks, and chains as graphs for pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinbed.model.caution import Caution
from twinbed.model.run import Level


@dataclass(frozen=True, slots=True)
class Node:
    """``state`` is its calls, the latest last. Pairs are of the first and second chain; None where that one lacks the node."""

    state: str
    shares: tuple[float | None, float | None]
    """The share of all transitions that leave it."""
    times: tuple[float | None, float | None]
    """The share of all time in calls; None too where no time was measured."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Pairs are of the first and second chain; None where that one has no such edge."""

    state: str
    call: str
    next_state: str
    probabilities: tuple[float | None, float | None]
    shares: tuple[float | None, float | None]
    """The share of all transitions."""

    @property
    def only(self) -> int | None:
        """0 or 1: the only chain that has it; None where both have."""
        first, second = self.probabilities
        return None if first is not None and second is not None else int(first is None)


@dataclass(frozen=True, slots=True)
class Graph:
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class ChainRow:
    """A testbed's chain against the reference's, the "first" and "second" of ``_core.ChainComparison``."""

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
    """By Holm's correction over all rows; None before it, and where there is no test."""
    different: bool | None
    permutations: int
    permutations_exact: bool
    least_p: float


@dataclass(frozen=True, slots=True)
class WalkRow:
    """One testbed's walks: the fields of ``walks.Walked``, the exponent as the seeds print it, and the interval's ends."""

    cell: Mapping[str, Level]
    host: str
    program: str | None
    testbed: str
    walks: int
    invalid: int
    transitions: int
    valid_walks: int
    equal_lengths: bool
    log10_mean: float | None
    mean_log10: float | None
    relative_log10_mean: float | None
    relative_mean_log10: float | None
    per_call: float | None
    per_call_difference: float | None
    relative_probability: str
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Chains:
    """Each row of ``chains`` is a testbed's chain against the reference's; ``graphs`` has both in one, in the same order."""

    chains: tuple[ChainRow, ...] = ()
    walks: tuple[WalkRow, ...] = ()
    """The seeds' Tables VIII and IX, and the loss per call with its interval."""
    graphs: tuple[Graph, ...] = ()
    cautions: tuple[Caution, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alone:
    """One chain, compared with none: the first of its graph."""

    testbed: str
    cell: Mapping[str, Level]
    host: str
    program: str | None
    replicates: int
    calls: int
    graph: Graph
