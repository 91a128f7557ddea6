"""A chain as a picture shows it, of one testbed or of two in one.  Plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass


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
