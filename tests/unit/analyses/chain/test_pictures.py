"""Pictures of chains in the report: what is drawn, what is left out, and how what one testbed alone has is told apart."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ElementTree

from tests.unit.analyses.chain.test_chain import results

from twinbed._core import Transitions
from twinbed.analyses.chain.draw import heat_map, svg
from twinbed.analyses.chain.formats import dot, graphml
from twinbed.analyses.chain.graph import MOST_EDGES, MOST_NODES, graph, most_used
from twinbed.analyses.chain.method import analysis as chain
from twinbed.analyses.chain.result import Chains
from twinbed.render.colours import light
from twinbed.render.pages import in_report
from twinbed.render.sections import body
from twinbed.show.figure import PAGE

ONE = Transitions.of_sequence(["read", "write", "read", "close"])
TWO = Transitions.of_sequence(["read", "write", "write", "read"])


def test_what_one_testbed_alone_has_differs_by_colour_and_dash() -> None:
    shown = most_used(graph(ONE, TWO))
    text = svg(shown, "a chain", ("e1000", "physical"), PAGE)
    assert text.count("<svg ") == 1
    groups = dict(re.findall(r'<g aria-roledescription="transition" aria-label="([^"]+)"[^>]*>(<path[^>]*>)', text))
    shared, first, second = (
        groups["read → write. e1000: 50 %, physical: 100 %"],
        *(
            next(path for label, path in groups.items() if label.startswith(f"{edge}."))
            for edge in ("read → close", "write → write")
        ),
    )
    assert PAGE["ink"] in shared and "dasharray" not in shared
    assert PAGE["different"] in first and PAGE["equivalent"] in second
    dashes = [re.search(r'dasharray="([^"]+)"', path)[1] for path in (first, second)]
    assert dashes[0] != dashes[1]
    assert "only e1000 does this" in text and "only physical does this" in text
    assert "read → close. e1000: 50 %, physical: never" in text


def test_a_chain_alone_has_no_such_marks() -> None:
    text = svg(most_used(graph(ONE)), "a chain", ("ab",), light())
    assert "dasharray" not in text and "only" not in text
    ElementTree.fromstring(text)


def test_a_disc_has_the_area_of_its_share_of_time() -> None:
    result = graph(ONE, seconds=({"read": 3.0, "write": 0.75, "close": 0.0}, None))
    text = svg(most_used(result), "a chain", ("ab",), PAGE)
    radius = {
        state: float(size)
        for state, size in re.findall(r'aria-label="(\w+)\. ab[^>]*><circle [^>]*?r="([\d.]+)" fill="var\(--muted', text)
    }
    assert abs((radius["read"] / radius["write"]) ** 2 - 4) < 0.1


def test_a_large_chain_is_cut_to_what_is_used_most_and_says_so() -> None:
    chance = random.Random(7)
    calls = [f"call{round(chance.expovariate(0.1))}" for _ in range(5000)]
    whole = graph(Transitions.of_sequence(calls))
    shown = most_used(whole)
    assert len(shown.graph.nodes) == MOST_NODES and len(shown.graph.edges) == MOST_EDGES
    assert shown.nodes_left_out == len(whole.nodes) - MOST_NODES and shown.edges_left_out == len(whole.edges) - MOST_EDGES
    least = min(edge.shares[0] for edge in shown.graph.edges)
    names = {node.state for node in shown.graph.nodes}
    rest = [edge for edge in whole.edges if edge not in shown.graph.edges and {edge.state, edge.next_state} <= names]
    assert all(edge.shares[0] <= least for edge in rest)
    assert shown.note.startswith(f"Not drawn: {shown.nodes_left_out} states and {shown.edges_left_out} transitions, ")
    assert not most_used(graph(ONE)).note


def test_the_heat_map_has_the_differences() -> None:
    rows = heat_map(most_used(graph(ONE, TWO)), "e1000", "physical")["data"]["values"]
    table = {(row["state"], row["call"]): (row["more"], round(row["size"], 6), row["text"]) for row in rows}
    assert table == {
        ("read", "write"): ("physical", 0.5, "50"),
        ("read", "close"): ("e1000", 0.5, "+"),
        ("write", "read"): ("e1000", 0.5, "50"),
        ("write", "write"): ("physical", 0.5, "-"),
    }


def test_names_are_escaped_everywhere() -> None:
    odd = Transitions.of_sequence(["<b>&", 'a"\\', "<b>&"])
    result = graph(odd)
    ElementTree.fromstring(svg(most_used(result), 'x "<&', ("<i>",), light()))
    ElementTree.fromstring(graphml(result, '"<&').partition("\n")[2])
    assert r'"a\"\\" -> "<b>&"' in dot(result, "odd")


def test_the_page_shows_tables_and_pictures_of_what_differs() -> None:
    (section,) = chain.sections(results(6, {"physical": 0.0, "container": 0.0, "e1000": 0.2}))
    text = in_report(section)
    assert "<h2>System calls as Markov chains</h2>" in text
    assert text.count("<svg ") == 8 and text.count(' class="print">') == 3
    # The furthest apart is open, and first.
    assert text.index("<h3>ab on client, payload 500B: e1000 compared with physical") < text.index(
        "nginx on server, payload 500B: e1000"
    )
    assert "not shown to differ" in text and ">different<" in text
    assert "#0505" not in text, "colours are the page's"


def test_without_system_calls_there_is_nothing() -> None:
    assert not chain.says_something(Chains()) and not body(chain.section(Chains()))
