"""A chain as a graph for pictures: nodes with their weight, edges with their probability, and which chain alone has them.

In: the counts of one testbed, or of two to be shown as one; the time in each call where it was measured.  Out: ``Graph``.
A node's time is that of its last call, shared among the states that end with it as often as each is reached.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinbed._core import Transitions
from twinbed.analyses.chain.result import Edge, Graph, Node

Seconds = Mapping[str, float]
"""Call: time in it, of one program."""


def graph(
    one: Transitions,
    two: Transitions | None = None,
    *,
    order: int = 1,
    threshold: float = 0.0,
    seconds: tuple[Seconds | None, Seconds | None] = (None, None),
) -> Graph:
    """Both chains in one graph. A chain alone is the first, and no edge has a second probability."""
    second = two if two is not None else Transitions([])
    _, table = one.compare(second, order, threshold)
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
    there = sorted({state for edge in edges for state in (edge.state, edge.next_state)})
    sides = [
        (_shares(counts, order, threshold), _times(counts, order, of))
        for counts, of in zip((one, second), seconds, strict=True)
    ]
    nodes = tuple(
        Node(state, (sides[0][0].get(state), sides[1][0].get(state)), (sides[0][1].get(state), sides[1][1].get(state)))
        for state in there
    )
    return Graph(nodes, edges)


def _shares(counts: Transitions, order: int, threshold: float) -> dict[str, float]:
    table = counts.states(order, threshold)
    return dict(zip(table["state"].to_pylist(), table["share"].to_pylist(), strict=True))


def _times(counts: Transitions, order: int, seconds: Seconds | None) -> dict[str, float]:
    """The share of time by state."""
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


__all__ = ["Edge", "Graph", "Node", "graph"]
