"""What ``chain`` returns: chains held against the reference's, walks, and chains as pictures show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinbed.contracts.analysis import Row
from twinbed.model.caution import Caution
from twinbed.model.run import Level


@dataclass(frozen=True, slots=True)
class Node:
    """``state`` is its calls, the latest last. Pairs are of the first and second chain; None where that one lacks the node."""

    state: str
    shares: tuple[float | None, float | None]
    """Of all transitions, those that leave it."""
    times: tuple[float | None, float | None]
    """Of all time in calls; None too where no time was measured."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Pairs are of the first and second chain; None where that one has no such edge."""

    state: str
    call: str
    next_state: str
    probabilities: tuple[float | None, float | None]
    shares: tuple[float | None, float | None]
    """Of all transitions."""

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
class Chains:
    """Each row of ``chains`` is a testbed's chain against the reference's; ``graphs`` has both in one, in the same order."""

    chains: tuple[Row, ...] = ()
    walks: tuple[Row, ...] = ()
    """The seeds' Tables VIII and IX, and the loss per call with its interval."""
    graphs: tuple[Graph, ...] = ()
    cautions: tuple[Caution, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alone:
    """One chain, held against none: the first of its graph."""

    testbed: str
    cell: Mapping[str, Level]
    host: str
    program: str | None
    replicates: int
    calls: int
    graph: Graph
