"""Make a graph of a chain: nodes with their weight, edges with their probability, and the chain that alone has them.

In: the counts of one testbed, or of two to be shown as one; the time in each call, if measured.  Out: ``Graph``.  A node's time
is the time of its last call, divided among the states that end with it by how often each is reached.  ``most_used`` chooses
what a picture has room for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed._core import Transitions
from twinbed.analyses.chain.result import Edge, Graph, Node
from twinbed.show.quantities import share

Seconds = Mapping[str, float]
"""Call: time in it, of one program."""
MOST_NODES = 14
MOST_EDGES = 40
"""A reader cannot distinguish more; the tables have all."""


def graph(
    own: Transitions,
    reference: Transitions | None = None,
    *,
    order: int = 1,
    threshold: float = 0.0,
    seconds: tuple[Seconds | None, Seconds | None] = (None, None),
) -> Graph:
    """Return both chains in one graph. A chain alone is the first, and no edge has a second probability."""
    second = reference if reference is not None else Transitions([])
    _, table = own.compare(second, order, threshold)
    edges = tuple(
        Edge(
            state=row["state"],
            call=row["call"],
            next_state=" ".join([*row["state"].split(" ")[1:], row["call"]]),
            probabilities=(row["probability_first"], row["probability_second"]),
            shares=(row["share_first"], row["share_second"]),
        )
        for row in table.to_pylist()
    )
    states = sorted({state for edge in edges for state in (edge.state, edge.next_state)})
    sides = [
        (_shares(counts, order, threshold), _times(counts, order, of))
        for counts, of in zip((own, second), seconds, strict=True)
    ]
    nodes = tuple(
        Node(state, (sides[0][0].get(state), sides[1][0].get(state)), (sides[0][1].get(state), sides[1][1].get(state)))
        for state in states
    )
    return Graph(nodes, edges)


def _shares(counts: Transitions, order: int, threshold: float) -> dict[str, float]:
    table = counts.states(order, threshold)
    return dict(zip(table["state"].to_pylist(), table["share"].to_pylist(), strict=True))


def _times(counts: Transitions, order: int, seconds: Seconds | None) -> dict[str, float]:
    """Return the share of time by state."""
    whole = sum(seconds.values()) if seconds else 0.0
    if not seconds or not whole:
        return {}
    states, edges = counts.states(order), counts.edges(order)
    reached = dict(zip(states["state"].to_pylist(), states["starts"].to_pylist(), strict=True))
    for state, count in zip(edges["next_state"].to_pylist(), edges["count"].to_pylist(), strict=True):
        reached[state] += count
    of_call: dict[str, int] = {}
    for state, count in reached.items():
        call = state.split(" ")[-1]
        of_call[call] = of_call.get(call, 0) + count
    times: dict[str, float] = {}
    for state, count in reached.items():
        call = state.split(" ")[-1]
        if call in seconds and of_call[call]:
            times[state] = seconds[call] / whole * count / of_call[call]
    return times


@dataclass(frozen=True, slots=True)
class Shown:
    """The drawn part of a graph, and the size of the rest."""

    graph: Graph
    nodes_left_out: int
    edges_left_out: int
    share_left_out: float
    """The share of transitions that is not drawn, in the chain with the larger one."""

    @property
    def note(self) -> str:
        """Return what is not drawn, in words; empty if everything is."""
        if not self.nodes_left_out and not self.edges_left_out:
            return ""
        nodes = f"{self.nodes_left_out} states and " if self.nodes_left_out else ""
        most = "less than 0.1 %" if self.share_left_out < 0.001 else share(round(self.share_left_out, 3))
        return f"Not drawn: {nodes}{self.edges_left_out} transitions, {most} of the use."


def most_used(graph: Graph, nodes: int = MOST_NODES, edges: int = MOST_EDGES) -> Shown:
    """Return the most used states, in the order of their use, and the most used transitions between them."""
    kept = sorted(graph.nodes, key=lambda node: (-max(part or 0.0 for part in node.shares), node.state))[:nodes]
    names = {node.state for node in kept}
    between = [edge for edge in graph.edges if edge.state in names and edge.next_state in names]
    drawn = sorted(between, key=lambda edge: (-max(part or 0.0 for part in edge.shares), edge.state, edge.call))[:edges]
    lost = [1 - sum(edge.shares[side] or 0.0 for edge in drawn) for side in (0, 1) if any(e.shares[side] for e in graph.edges)]
    left = max(0.0, *lost) if lost else 0.0
    return Shown(Graph(tuple(kept), tuple(drawn)), len(graph.nodes) - len(kept), len(graph.edges) - len(drawn), left)
