"""A chain as a picture: SVG drawn by hand, nothing to install.  It also chooses what to show of a large chain.

States stand in a circle in the order of their use, so that the most used are side by side.  A disc's area is the share of
time in calls (of calls, where no time was measured); an arrow's width is its probability.  Of two chains, discs show the first
and rings the second; arrows that only one of them has differ by colour and by dashes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from twinbed.analyses.chain.result import Edge, Graph, Node
from twinbed.render.collected import Figure, kept
from twinbed.render.html import html
from twinbed.show.quantities import share

MOST_NODES = 14
MOST_EDGES = 40
"""A reader cannot distinguish more; the tables have all."""

PAGE: Mapping[str, str] = {name: f"var(--{name})" for name in ("ink", "muted", "rule", "paper", "different", "equivalent")}
"""Colours that follow the page around them."""
FILE: Mapping[str, str] = {
    "ink": "#1a1d21",
    "muted": "#5b6470",
    "rule": "#dfe3e8",
    "paper": "#ffffff",
    "different": "#b84a00",
    "equivalent": "#0a6aa6",
}
ONLY = (("different", "7 4"), ("equivalent", "2 3"))
"""Colour and dashes of what only the first and only the second chain has."""
WIDTH, HEIGHT, RADIUS = 640, 560, 185
LARGEST, SMALLEST = 30.0, 3.5
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class Shown:
    """The part of a graph that is drawn, and what is not."""

    graph: Graph
    nodes_left_out: int
    edges_left_out: int
    share_left_out: float
    """The share of transitions that is lost, in the chain that loses more."""

    @property
    def note(self) -> str:
        """What is left out, in words; empty where nothing is."""
        if not self.nodes_left_out and not self.edges_left_out:
            return ""
        nodes = f"{self.nodes_left_out} states and " if self.nodes_left_out else ""
        most = "less than 0.1 %" if self.share_left_out < 0.001 else share(round(self.share_left_out, 3))
        return f"Not drawn: {nodes}{self.edges_left_out} transitions, {most} of the use."


def weight(node: Node, side: int) -> float:
    """The share of time, of calls where no time was measured; 0 where that chain has no such state."""
    time = node.times[side]
    return (time if time is not None else node.shares[side]) or 0.0


def most_used(graph: Graph, nodes: int = MOST_NODES, edges: int = MOST_EDGES) -> Shown:
    """The most used states, in the order of their use, and the most used transitions between them."""
    kept = sorted(graph.nodes, key=lambda node: (-max(each or 0.0 for each in node.shares), node.state))[:nodes]
    names = {node.state for node in kept}
    between = [edge for edge in graph.edges if edge.state in names and edge.next_state in names]
    drawn = sorted(between, key=lambda edge: (-max(each or 0.0 for each in edge.shares), edge.state, edge.call))[:edges]
    lost = [1 - sum(edge.shares[side] or 0.0 for edge in drawn) for side in (0, 1) if any(e.shares[side] for e in graph.edges)]
    left = max(0.0, *lost) if lost else 0.0
    return Shown(Graph(tuple(kept), tuple(drawn)), len(graph.nodes) - len(kept), len(graph.edges) - len(drawn), left)


def svg(shown: Shown, label: str, names: Sequence[str], colours: Mapping[str, str] = PAGE, name: str = "") -> Markup:
    """The picture. ``names`` are those of the one chain or of the two; ``label`` describes it to readers who cannot see it;
    ``name`` does so in a few words. Nothing where a page's picture is wanted as a file instead (``collected``)."""
    if colours is PAGE and kept(lambda: Figure(name or label, label, drawing=svg(shown, label, names, FILE))):
        return Markup()
    nodes, edges = shown.graph.nodes, shown.graph.edges
    places = {node.state: _place(at, len(nodes)) for at, node in enumerate(nodes)}
    sizes = {node.state: _radius(max(weight(node, 0), weight(node, 1))) for node in nodes}
    two = len(names) > 1
    alone = two and any(edge.only is not None for edge in edges)
    parts = [
        html(
            '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{}" viewBox="0 0 {} {}"'
            ' width="{}" height="{}" font-family="{}" font-size="13">',
            label,
            WIDTH,
            HEIGHT,
            WIDTH,
            HEIGHT,
            Markup(FONT),
        )
    ]
    if colours is FILE:
        parts.append(html('<rect width="{}" height="{}" fill="{}"/>', WIDTH, HEIGHT, colours["paper"]))
    # The most likely last, on top of the others.
    for edge in sorted(edges, key=lambda edge: (len(names) > 1 and edge.only is not None, _probability(edge))):
        parts.append(_arrow(edge, places, sizes, names, colours))
    parts += [_disc(node, places[node.state], names, colours) for node in nodes]
    loops = {edge.state for edge in edges if edge.state == edge.next_state}
    parts += [_label(node, places[node.state], sizes[node.state] + 14 * (node.state in loops), colours) for node in nodes]
    parts += _legend(names, alone, any(node.times[0] is not None for node in nodes), colours)
    return Markup().join([*parts, Markup("</svg>")])


Point = tuple[float, float]


def _place(at: int, of: int) -> Point:
    angle = 2 * math.pi * at / max(of, 1) - math.pi / 2
    return WIDTH / 2 + RADIUS * math.cos(angle), 245 + RADIUS * math.sin(angle)


def _radius(part: float) -> float:
    """By area."""
    return max(SMALLEST, LARGEST * math.sqrt(part))


def _probability(edge: Edge) -> float:
    return max(each or 0.0 for each in edge.probabilities)


def _style(edge: Edge, two: bool, colours: Mapping[str, str]) -> tuple[str, str]:
    """Colour and dashes."""
    if not two or edge.only is None:
        return colours["ink"], ""
    colour, dashes = ONLY[edge.only]
    return colours[colour], html(' stroke-dasharray="{}"', dashes)


def _arrow(
    edge: Edge, places: Mapping[str, Point], sizes: Mapping[str, float], names: Sequence[str], colours: Mapping[str, str]
) -> Markup:
    colour, dashes = _style(edge, len(names) > 1, colours)
    probability = _probability(edge)
    width = 0.7 + 4.3 * probability
    opacity = 0.35 + 0.55 * probability
    if len(names) > 1 and edge.only is not None:
        # However seldom it is: the picture is to show that one of them never does it.
        width, opacity = max(width, 1.6), 0.95
    (x1, y1), (x2, y2) = places[edge.state], places[edge.next_state]
    if edge.state == edge.next_state:
        path, end, towards = _loop((x1, y1), sizes[edge.state])
    else:
        path, end, towards = _curve((x1, y1), (x2, y2), sizes[edge.state], sizes[edge.next_state], width)
    head = _head(end, towards, 4.5 + 1.1 * width)
    return html(
        '<g aria-roledescription="transition" aria-label="{}" opacity="{:.2f}">'
        '<path d="{}" fill="none" stroke="{}" stroke-width="{:.2f}"{}/>'
        '<path d="{}" fill="{}"/>{}</g>',
        _edge_label(edge, names),
        opacity,
        path,
        colour,
        width,
        dashes,
        head,
        colour,
        _title(_edge_label(edge, names), colours),
    )


def _curve(start: Point, end: Point, from_size: float, to_size: float, width: float) -> tuple[str, Point, Point]:
    """An arrow bent to the left of its way, so that there and back are two arrows."""
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1)
    bend = 0.16 * length
    control = ((x1 + x2) / 2 + bend * (y2 - y1) / length, (y1 + y2) / 2 - bend * (x2 - x1) / length)
    first, last = _towards(start, control, from_size + 1), _towards(end, control, to_size + 3)
    neck = _towards(last, control, 3 + width)
    return f"M{_xy(first)}Q{_xy(control)} {_xy(neck)}", last, _direction(control, last)


def _loop(at: Point, size: float) -> tuple[str, Point, Point]:
    """An arrow from a state to itself, outside of the circle."""
    out = _direction((WIDTH / 2, 245), at)
    side = (-out[1], out[0])
    reach, spread = size + 24, 15

    def point(along: float, across: float) -> Point:
        return at[0] + along * out[0] + across * side[0], at[1] + along * out[1] + across * side[1]

    begin, end = point(size * 0.85, -size * 0.5 - 1), point(size * 0.85 + 2, size * 0.5 + 2)
    path = f"M{_xy(begin)}C{_xy(point(reach, -spread))} {_xy(point(reach, spread))} {_xy(end)}"
    return path, end, _direction(point(reach, spread), end)


def _head(tip: Point, towards: Point, length: float) -> str:
    (x, y), (dx, dy) = tip, towards
    back, half = (x - length * dx, y - length * dy), 0.38 * length
    return f"M{_xy(tip)}L{_xy((back[0] - half * dy, back[1] + half * dx))}L{_xy((back[0] + half * dy, back[1] - half * dx))}Z"


def _towards(start: Point, end: Point, distance: float) -> Point:
    dx, dy = _direction(start, end)
    return start[0] + distance * dx, start[1] + distance * dy


def _direction(start: Point, end: Point) -> Point:
    length = math.hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    return (end[0] - start[0]) / length, (end[1] - start[1]) / length


def _xy(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"


def _disc(node: Node, at: Point, names: Sequence[str], colours: Mapping[str, str]) -> Markup:
    label = _state_label(node, names)
    first, second = weight(node, 0), weight(node, 1)
    place = html('cx="{:.1f}" cy="{:.1f}"', at[0], at[1])
    drawn = html('<circle {} r="{:.1f}" fill="{}" fill-opacity="0.55"/>', place, _radius(first), colours["muted"])
    if node.shares[0] is None:
        drawn = Markup()
    if len(names) > 1 and node.shares[1] is not None:
        dashes = "" if node.shares[0] is not None else html(' stroke-dasharray="{}"', ONLY[1][1])
        line = html('stroke="{}" stroke-width="1.6"{}', colours["equivalent"], dashes)
        drawn += html('<circle {} r="{:.1f}" fill="none" {}/>', place, _radius(second), line)
    # Large enough to be pointed at.
    drawn += html('<circle {} r="{:.1f}" fill="transparent"/>', place, max(9.0, _radius(max(first, second))))
    return html('<g aria-roledescription="state" aria-label="{}">{}{}</g>', label, drawn, _title(label, colours))


def _label(node: Node, at: Point, size: float, colours: Mapping[str, str]) -> Markup:
    dx, dy = _direction((WIDTH / 2, 245), at)
    x, y = at[0] + (size + 10) * dx, at[1] + (size + 10) * dy + 4 + 6 * dy
    anchor = "middle" if abs(dx) < 0.25 else ("start" if dx > 0 else "end")
    return html(
        '<text x="{:.1f}" y="{:.1f}" text-anchor="{}" fill="{}" stroke="{}"'
        ' stroke-width="3" paint-order="stroke" aria-hidden="true">{}</text>',
        x,
        y,
        anchor,
        colours["ink"],
        colours["paper"],
        _short(node.state),
    )


def _short(state: str) -> str:
    """A state of several calls is named with arrows between them."""
    return " → ".join(state.split(" "))


def _legend(names: Sequence[str], alone: bool, timed: bool, colours: Mapping[str, str]) -> list[Markup]:
    """The meaning of sizes, lines and colours."""
    what = "time in calls" if timed else "calls"
    y = HEIGHT - 58
    text = html('fill="{}" aria-hidden="true"', colours["muted"])
    if len(names) == 1:
        return [
            html(
                '<text x="14" y="{}" {}>disc: share of {} (area) · arrow: probability (width)</text>',
                y + 40,
                text,
                what,
            )
        ]
    first, second = (escape(name) for name in names)
    parts = [
        html(
            '<circle cx="22" cy="{}" r="7" fill="{}" fill-opacity="0.55"/>'
            '<text x="36" y="{}" {}>{}</text>'
            '<circle cx="182" cy="{}" r="7" fill="none" stroke="{}" stroke-width="1.6"/>'
            '<text x="196" y="{}" {}>{} (area: share of {})</text>'
            '<text x="{}" y="{}" text-anchor="end" {}>arrow: probability (width)</text>',
            y,
            colours["muted"],
            y + 4,
            text,
            first,
            y,
            colours["equivalent"],
            y + 4,
            text,
            second,
            what,
            WIDTH - 14,
            y + 4,
            text,
        )
    ]
    if alone:
        for at, (name, (colour, dashes)) in enumerate(zip((first, second), ONLY, strict=True)):
            x = 14 + 300 * at
            parts.append(
                html(
                    '<line x1="{}" x2="{}" y1="{}" y2="{}" stroke="{}" stroke-width="2.4"'
                    ' stroke-dasharray="{}"/><text x="{}" y="{}" {}>only {} does this</text>',
                    x,
                    x + 40,
                    y + 28,
                    y + 28,
                    colours[colour],
                    dashes,
                    x + 50,
                    y + 32,
                    text,
                    name,
                )
            )
    return parts


def _edge_label(edge: Edge, names: Sequence[str]) -> str:
    what = f"{_short(edge.state)} → {edge.call}"
    parts = [
        f"{name}: {'never' if probability is None else share(round(probability, 5))}"
        for name, probability in zip(names, edge.probabilities, strict=False)
    ]
    return f"{what}. {', '.join(parts)}"


def _state_label(node: Node, names: Sequence[str]) -> str:
    parts = []
    for name, calls, time in zip(names, node.shares, node.times, strict=False):
        of_calls = "not there" if calls is None else f"{share(round(calls, 4))} of calls"
        parts.append(f"{name}: {of_calls}" + ("" if time is None else f", {share(round(time, 4))} of time"))
    return f"{_short(node.state)}. {'; '.join(parts)}"


def _title(label: str, colours: Mapping[str, str]) -> Markup:
    """A title for files; pages have their own way to show it."""
    return html("<title>{}</title>", label) if colours is FILE else Markup()
