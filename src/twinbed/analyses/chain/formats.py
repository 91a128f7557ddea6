"""Write chains for other programs: DOT (graphviz.org/doc/info/lang.html) and GraphML (graphml.graphdrawing.org).

Both have all states and transitions.  Attributes of two chains end in ``_first`` and ``_second``, and are missing if that chain
has no such state or transition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.etree import ElementTree

from twinbed.analyses.chain.result import Alone, Graph
from twinbed.contracts.analysis import File
from twinbed.model.run import level_text
from twinbed.render.file_names import Names
from twinbed.render.spreadsheet import csv_text
from twinbed.show.words import cell_title
from twinbed.terminal import one_line, visible

DASHES = ("dashed", "dotted")
COLOURS = ("#b84a00", "#0a6aa6")
_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
SIDES = ("first", "second")
INDEX = "chains.csv"


def dot(graph: Graph, name: str) -> str:
    """Return a digraph; ``dot -Tsvg`` draws it."""
    lines = [f"digraph {_quoted(name)} {{", "  node [shape=circle, fixedsize=true];"]
    for node in graph.nodes:
        size = max(part or 0.0 for part in (node.times if any(node.times) else node.shares))
        attributes = {"width": f"{0.2 + 1.2 * size**0.5:.3f}", **dict(_attributes(node.shares, "share"))}
        attributes |= dict(_attributes(node.times, "time"))
        lines.append(f"  {_quoted(node.state)} [{_listed(attributes)}];")
    for edge in graph.edges:
        probability = max(part or 0.0 for part in edge.probabilities)
        attributes = {"label": f"{probability:.3g}", "penwidth": f"{0.5 + 4 * probability:.2f}"}
        if edge.only is not None and _two(graph):
            attributes |= {"style": DASHES[edge.only], "color": COLOURS[edge.only]}
        attributes |= {**dict(_attributes(edge.probabilities, "probability")), **dict(_attributes(edge.shares, "share"))}
        lines.append(f"  {_quoted(edge.state)} -> {_quoted(edge.next_state)} [{_listed(attributes)}];")
    return "\n".join([*lines, "}", ""])


def graphml(graph: Graph, name: str) -> str:
    """Return GraphML, with weights as typed attributes."""
    ElementTree.register_namespace("", _NAMESPACE)
    root = ElementTree.Element(f"{{{_NAMESPACE}}}graphml")
    keys = [("node", what) for what in ("share", "time")] + [("edge", what) for what in ("probability", "share")]
    for where, what in keys:
        for side in SIDES:
            attributes = {"id": f"{where}_{what}_{side}", "for": where, "attr.name": f"{what}_{side}", "attr.type": "double"}
            ElementTree.SubElement(root, f"{{{_NAMESPACE}}}key", attributes)
    ElementTree.SubElement(
        root, f"{{{_NAMESPACE}}}key", {"id": "edge_call", "for": "edge", "attr.name": "call", "attr.type": "string"}
    )
    drawn = ElementTree.SubElement(root, f"{{{_NAMESPACE}}}graph", {"id": name, "edgedefault": "directed"})
    for node in graph.nodes:
        element = ElementTree.SubElement(drawn, f"{{{_NAMESPACE}}}node", {"id": node.state})
        for what, pair in (("share", node.shares), ("time", node.times)):
            _data(element, "node", what, pair)
    for edge in graph.edges:
        attributes = {"source": edge.state, "target": edge.next_state}
        element = ElementTree.SubElement(drawn, f"{{{_NAMESPACE}}}edge", attributes)
        for what, pair in (("probability", edge.probabilities), ("share", edge.shares)):
            _data(element, "edge", what, pair)
        ElementTree.SubElement(element, f"{{{_NAMESPACE}}}data", {"key": "edge_call"}).text = edge.call
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + visible(ElementTree.tostring(root, encoding="unicode")) + "\n"


Pair = tuple[float | None, float | None]


def _two(graph: Graph) -> bool:
    return any(edge.probabilities[1] is not None for edge in graph.edges)


def _data(element: ElementTree.Element, where: str, what: str, pair: Pair) -> None:
    for side, value in zip(SIDES, pair, strict=True):
        if value is not None:
            data = ElementTree.SubElement(element, f"{{{_NAMESPACE}}}data", {"key": f"{where}_{what}_{side}"})
            data.text = repr(value)


def _attributes(pair: Pair, what: str) -> Iterator[tuple[str, str]]:
    for side, value in zip(SIDES, pair, strict=True):
        if value is not None:
            yield f"{what}_{side}", f"{value:.6g}"


def _listed(attributes: dict[str, str]) -> str:
    return ", ".join(f"{name}={_quoted(value)}" for name, value in attributes.items())


def _quoted(text: str) -> str:
    escaped = one_line(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def files(chains: Iterable[Alone]) -> Iterator[File]:
    """Yield two files for each chain, and last ``chains.csv``, an index of them."""
    names = Names()
    rows: list[dict[str, object]] = []
    factors: dict[str, None] = {}
    for chain in chains:
        name = names.of(" ".join([chain.testbed, chain.program or "unnamed", "on", chain.host, cell_title(chain.cell)]))
        title = " ".join([chain.program or "a program without a name", "on", chain.host, "of", chain.testbed])
        yield File(f"{name}.graphml", graphml(chain.graph, title))
        yield File(f"{name}.dot", dot(chain.graph, title))
        factors |= dict.fromkeys(chain.cell)
        rows.append(
            {
                "file": name,
                "testbed": chain.testbed,
                **{factor: level_text(level) for factor, level in chain.cell.items()},
                "host": chain.host,
                "program": chain.program,
                "replicates": chain.replicates,
                "calls": chain.calls,
                "states": len(chain.graph.nodes),
                "transitions": len(chain.graph.edges),
            }
        )
    ends = ("host", "program", "replicates", "calls", "states", "transitions")
    heads = ("file", "testbed", *factors, *ends)
    yield File(INDEX, csv_text(heads, ([row.get(name) for name in heads] for row in rows)))
