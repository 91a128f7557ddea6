"""Draw a chain, or two in one: states and transitions as SVG, differences as a heat map.

States stand in a circle, ordered by use, so that the most used are neighbours.  A disc's area is the share of time in calls (or
of calls, if no time was measured); an arrow's width is its probability.  With two chains, discs show the first and rings the
second; arrows of only one chain differ by colour and dashes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TypeAlias

from twinbed.analyses.chain.graph import Shown, most_used
from twinbed.analyses.chain.result import ChainRow, Edge, Graph, Node, where
from twinbed.model.json import Json
from twinbed.render import plots
from twinbed.render.plots import DIFFERENT, EQUIVALENT, INK, MUTED, RULE, Spec
from twinbed.show.figure import PAGE, Colours, Figure
from twinbed.show.quantities import NONE, share
from twinbed.show.section import Section
from twinbed.show.words import cell_title
from twinbed.terminal import visible

ONLY = (("different", "7 4"), ("equivalent", "2 3"))
"""Colour and dashes of transitions that only the first, or only the second, chain has."""
WIDTH, HEIGHT, RADIUS = 640, 560, 185
MIDDLE = (WIDTH / 2, 245.0)
LARGEST, SMALLEST = 30.0, 3.5
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
CELL = 22
FAINTEST = 0.005
"""Differences of probabilities below this are not coloured."""

Point: TypeAlias = tuple[float, float]


def pictures(row: ChainRow, graph: Graph, at: int) -> Section:
    """Return both chains in one picture, and a heat map of their differences; unfolded only at place 0."""
    names = testbed, reference = row.testbed, row.reference
    shown = most_used(graph)
    title = f"{where(row)}, {cell_title(row.cell)}: {testbed} compared with {reference}"
    label = f"{title}. Transitions between system calls; the table above has the distances."
    chains = Figure(
        f"chain of {title}",
        label,
        drawing=lambda colours: svg(shown, label, names, colours),
        caption="The call that follows each call. Point at a state or an arrow for its numbers.",
    )
    differences = Figure(
        f"differences of chain of {title}",
        f"{title}. Differences of transition probabilities.",
        spec=lambda: heat_map(shown, testbed, reference),
        caption=f"Difference in percentage points of how often the column's call follows the row's, by the testbed with more; "
        f"+: only {testbed} has the transition, -: only {reference}.",
    )
    notes = [shown.note] if shown.note else []
    return Section(f"chain-{at + 1}", title, "", (*notes, chains, differences), folded=at > 0, in_text=False)


def svg(shown: Shown, label: str, names: Sequence[str], colours: Colours) -> str:
    """Return the picture. ``names``: the name of the chain, or of both; ``label`` describes it to readers who cannot see it.
    States and transitions have titles, except in the colours of a page, which shows their labels itself."""
    nodes, edges = shown.graph.nodes, shown.graph.edges
    places = {node.state: _place(at, len(nodes)) for at, node in enumerate(nodes)}
    sizes = {node.state: _radius(max(_weight(node, 0), _weight(node, 1))) for node in nodes}
    two = len(names) > 1
    loops = {edge.state for edge in edges if edge.state == edge.next_state}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{_safe(label)}" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' width="{WIDTH}" height="{HEIGHT}" font-family="{FONT}" font-size="13">'
    ]
    if colours is not PAGE:
        parts.append(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{colours["paper"]}"/>')
    # Draw the most likely last, on top of the others.
    for edge in sorted(edges, key=lambda edge: (two and edge.only is not None, _probability(edge))):
        parts.append(_arrow(edge, places, sizes, names, colours))
    parts += [_disc(node, places[node.state], names, colours) for node in nodes]
    parts += [_label(node, places[node.state], sizes[node.state] + 14 * (node.state in loops), colours) for node in nodes]
    what = "time in calls" if any(node.times[0] is not None for node in nodes) else "calls"
    parts.append(_legend_of_two(names, what, colours) if two else _legend_of_one(what, colours))
    if two and any(edge.only is not None for edge in edges):
        parts += [_legend_of_only(at, name, colours) for at, name in enumerate(names)]
    return "".join((*parts, "</svg>"))


def _safe(text: str) -> str:
    return escape(visible(text))


def _weight(node: Node, side: int) -> float:
    """Return the share of time, or of calls if no time was measured; 0 if that chain has no such state."""
    time = node.times[side]
    return (time if time is not None else node.shares[side]) or 0.0


def _place(at: int, of: int) -> Point:
    angle = 2 * math.pi * at / max(of, 1) - math.pi / 2
    return MIDDLE[0] + RADIUS * math.cos(angle), MIDDLE[1] + RADIUS * math.sin(angle)


def _radius(part: float) -> float:
    """Return the radius of a disc whose area is that part of the largest."""
    return max(SMALLEST, LARGEST * math.sqrt(part))


def _probability(edge: Edge) -> float:
    return max(probability or 0.0 for probability in edge.probabilities)


def _arrow(edge: Edge, places: dict[str, Point], sizes: dict[str, float], names: Sequence[str], colours: Colours) -> str:
    probability = _probability(edge)
    width, opacity, colour, dashes = 0.7 + 4.3 * probability, 0.35 + 0.55 * probability, colours["ink"], ""
    if len(names) > 1 and edge.only is not None:
        # Visible however rare: the picture must show that one of them never does it.
        width, opacity = max(width, 1.6), 0.95
        colour, dashes = colours[ONLY[edge.only][0]], f' stroke-dasharray="{ONLY[edge.only][1]}"'
    start, end = places[edge.state], places[edge.next_state]
    if edge.state == edge.next_state:
        path, tip, towards = _loop(start, sizes[edge.state])
    else:
        path, tip, towards = _curve(start, end, sizes[edge.state], sizes[edge.next_state], width)
    label = _edge_label(edge, names)
    return (
        f'<g aria-roledescription="transition" aria-label="{label}" opacity="{opacity:.2f}">'
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:.2f}"{dashes}/>'
        f'<path d="{_head(tip, towards, 4.5 + 1.1 * width)}" fill="{colour}"/>{_title(label, colours)}</g>'
    )


def _curve(start: Point, end: Point, from_size: float, to_size: float, width: float) -> tuple[str, Point, Point]:
    """Return an arrow bent to the left of its way, so that there and back are two arrows: path, tip and direction."""
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1)
    bend = 0.16 * length
    control = ((x1 + x2) / 2 + bend * (y2 - y1) / length, (y1 + y2) / 2 - bend * (x2 - x1) / length)
    first, last = _towards(start, control, from_size + 1), _towards(end, control, to_size + 3)
    neck = _towards(last, control, 3 + width)
    return f"M{_xy(first)}Q{_xy(control)} {_xy(neck)}", last, _direction(control, last)


def _loop(at: Point, size: float) -> tuple[str, Point, Point]:
    """Return an arrow from a state to itself, outside of the circle: path, tip and direction."""
    out = _direction(MIDDLE, at)
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


def _disc(node: Node, at: Point, names: Sequence[str], colours: Colours) -> str:
    label = _state_label(node, names)
    first, second = _weight(node, 0), _weight(node, 1)
    place = f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}"'
    disc = ring = ""
    if node.shares[0] is not None:
        disc = f'{place} r="{_radius(first):.1f}" fill="{colours["muted"]}" fill-opacity="0.55"/>'
    if len(names) > 1 and node.shares[1] is not None:
        dashes = "" if disc else f' stroke-dasharray="{ONLY[1][1]}"'
        line = f'stroke="{colours["equivalent"]}" stroke-width="1.6"{dashes}'
        ring = f'{place} r="{_radius(second):.1f}" fill="none" {line}/>'
    # Large enough to be pointed at.
    pointed = f'{place} r="{max(9.0, _radius(max(first, second))):.1f}" fill="transparent"/>'
    return f'<g aria-roledescription="state" aria-label="{label}">{disc}{ring}{pointed}{_title(label, colours)}</g>'


def _label(node: Node, at: Point, size: float, colours: Colours) -> str:
    dx, dy = _direction(MIDDLE, at)
    x, y = at[0] + (size + 10) * dx, at[1] + (size + 10) * dy + 4 + 6 * dy
    anchor = "middle" if abs(dx) < 0.25 else ("start" if dx > 0 else "end")
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colours["ink"]}" stroke="{colours["paper"]}"'
        f' stroke-width="3" paint-order="stroke" aria-hidden="true">{_safe(_short(node.state))}</text>'
    )


def _short(state: str) -> str:
    """Return a state's name, with arrows between its calls."""
    return " → ".join(state.split(" "))


LEGEND = HEIGHT - 58
"""Where the legend begins."""


def _text(x: float, y: float, text: str, colours: Colours, rest: str = "") -> str:
    return f'<text x="{x}" y="{y}"{rest} fill="{colours["muted"]}" aria-hidden="true">{_safe(text)}</text>'


def _legend_of_one(what: str, colours: Colours) -> str:
    return _text(14, LEGEND + 40, f"disc: share of {what} (area) · arrow: probability (width)", colours)


def _legend_of_two(names: Sequence[str], what: str, colours: Colours) -> str:
    return "".join(
        (
            f'<circle cx="22" cy="{LEGEND}" r="7" fill="{colours["muted"]}" fill-opacity="0.55"/>',
            _text(36, LEGEND + 4, names[0], colours),
            f'<circle cx="182" cy="{LEGEND}" r="7" fill="none" stroke="{colours["equivalent"]}" stroke-width="1.6"/>',
            _text(196, LEGEND + 4, f"{names[1]} (area: share of {what})", colours),
            _text(WIDTH - 14, LEGEND + 4, "arrow: probability (width)", colours, ' text-anchor="end"'),
        )
    )


def _legend_of_only(at: int, name: str, colours: Colours) -> str:
    x, y, (colour, dashes) = 14 + 300 * at, LEGEND + 28, ONLY[at]
    line = f'x1="{x}" x2="{x + 40}" y1="{y}" y2="{y}" stroke="{colours[colour]}" stroke-width="2.4" stroke-dasharray="{dashes}"'
    return f"<line {line}/>{_text(x + 50, y + 4, f'only {name} does this', colours)}"


def _edge_label(edge: Edge, names: Sequence[str]) -> str:
    parts = (
        f"{name}: {'never' if probability is None else share(round(probability, 5))}"
        for name, probability in zip(names, edge.probabilities, strict=False)
    )
    return _safe(f"{_short(edge.state)} → {edge.call}. {', '.join(parts)}")


def _state_label(node: Node, names: Sequence[str]) -> str:
    parts = []
    for name, calls, time in zip(names, node.shares, node.times, strict=False):
        of_calls = "not there" if calls is None else f"{share(round(calls, 4))} of calls"
        parts.append(f"{name}: {of_calls}" + ("" if time is None else f", {share(round(time, 4))} of time"))
    return _safe(f"{_short(node.state)}. {'; '.join(parts)}")


def _title(label: str, colours: Colours) -> str:
    return "" if colours is PAGE else f"<title>{label}</title>"


def heat_map(shown: Shown, testbed: str, reference: str) -> Spec:
    """Return the differences: rows are states, columns the calls that follow. The colour shows the testbed with the larger
    probability, its strength the difference."""
    rows: list[dict[str, Json]] = []
    for edge in shown.graph.edges:
        first, second = (probability or 0.0 for probability in edge.probabilities)
        difference = first - second
        pair = (NONE if probability is None else share(round(probability, 5)) for probability in edge.probabilities)
        label = f"{edge.state} → {edge.call}. {testbed}: {next(pair)}, {reference}: {next(pair)}"
        mark = {None: "", 0: "+", 1: "-"}[edge.only]
        text = mark or (f"{abs(difference) * 100:.0f}" if abs(difference) >= FAINTEST else "")
        more = testbed if difference >= 0 else reference
        rows.append(
            {"state": edge.state, "call": edge.call, "size": abs(difference), "more": more, "text": text, "said": label}
        )
    states = [node.state for node in shown.graph.nodes]
    calls = list(dict.fromkeys(state.split(" ")[-1] for state in states))
    axis = {"title": None, "ticks": False, "labelColor": INK, "labelLimit": 220, "grid": False, "labelOverlap": False}
    x = {"field": "call", "type": "nominal", "sort": calls, "axis": {**axis, "orient": "top", "labelAngle": -50}}
    # A page's fonts are wider than those of the layout.
    room = 12 + 7.5 * max(map(len, states), default=0)
    y = {"field": "state", "type": "nominal", "sort": states, "axis": {**axis, "minExtent": room}}
    colour = {
        "field": "more",
        "type": "nominal",
        "scale": {"domain": [testbed, reference], "range": [DIFFERENT, EQUIVALENT]},
        "legend": {
            "title": "more often on",
            "orient": "bottom",
            "labelColor": INK,
            "titleColor": MUTED,
            "symbolType": "square",
        },
    }
    # The root makes small differences visible.
    strength = {
        "field": "size",
        "type": "quantitative",
        "scale": {"type": "sqrt", "domain": [0, 1], "range": [0, 0.95]},
        "legend": None,
    }
    layers: list[Spec] = [
        {
            "mark": {"type": "rect", "stroke": RULE, "strokeWidth": 1},
            "encoding": {"x": x, "y": y, "color": colour, "fillOpacity": strength, "description": {"field": "said"}},
        },
        {
            "mark": {"type": "text", "fontSize": 10, "color": INK, "aria": False},
            "encoding": {"x": x, "y": y, "text": {"field": "text"}},
        },
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"values": rows},
        "width": CELL * len(calls),
        "height": CELL * len(states),
        "layer": layers,
        "config": plots.CONFIG,
    }
