"""System calls as Markov chains in the report: how far each testbed's programs are from the reference's, and pictures of it.

The analysis ``chain`` gives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from twinbed.analyses.chain.drawing import Shown, most_used, svg
from twinbed.analyses.chain.result import ChainRow, Chains, Graph, WalkRow
from twinbed.contracts.analysis import Part, Section
from twinbed.model.json import Json
from twinbed.render import plots
from twinbed.render.html import html
from twinbed.render.plots import DIFFERENT, EQUIVALENT, INK, MUTED, RULE, Spec
from twinbed.render.tabular import Tabular
from twinbed.show.quantities import NONE, number, share
from twinbed.show.words import cell_title

MOST_PICTURES = 8
"""So many comparisons have pictures: those that are furthest apart."""
CELL = 22
FAINTEST = 0.005
"""Differences of probabilities below this are not coloured."""


def section(result: Chains) -> Section:
    """The same for a notebook."""
    apart = sum(row.different is True for row in result.chains)
    said = f"{apart} of {len(result.chains)} chains are shown to differ from the reference's."
    if not result.chains:
        said = "There is no chain to hold against the reference's."
    part = Part(
        "chains", "tab-chains", "System calls as Markov chains", said, _tabular(result.chains) if result.chains else None
    )
    return Section(
        "chain",
        part.title,
        lambda: Markup().join(chains(result)),
        (part,),
        lede=said,
        kicker="Which call follows which, for each program on each host",
    )


def _tabular(rows: Sequence[ChainRow]) -> Tabular:
    verdicts = {True: "different", False: "not shown to differ", None: NONE}
    lines = tuple(
        (
            verdicts[row.different],
            cell_title(row.cell),
            _where(row),
            row.testbed,
            _number(row.distance),
            _number(row.p_adjusted),
        )
        for row in rows
    )
    caption = f"Distance of Jensen and Shannon from the chain on {rows[0].reference}; p by Holm's correction."
    return Tabular("Chains", caption, ("verdict", "cell", "program", "testbed", "distance", "p"), lines, texts=4)


def chains(result: Chains) -> Iterator[Markup]:
    """The section of the page; nothing where there was nothing to compare."""
    rows = result.chains
    if not rows:
        return
    yield Markup("<h3>System calls as Markov chains</h3>")
    yield Markup(
        "<p>Which call follows which, on each host and for each program, over all replicates. The distance is that of Jensen "
        "and Shannon: 0 for equal chains, 1 for chains that share no transition. p is the chance of a distance as large if "
        "both were one chain (permutation of replicates, Holm's correction over this table).</p>"
    )
    yield _table(rows)
    yield from (html('<p class="note">{}.</p>', caution.detail) for caution in result.cautions)
    yield _walks(result.walks, rows[0].reference)
    drawn = zip(rows, result.graphs, strict=True)
    apart = [(row.distance, row, graph) for row, graph in drawn if row.distance is not None]
    apart.sort(key=lambda each: -each[0])
    for at, (_, row, graph) in enumerate(apart[:MOST_PICTURES]):
        yield _pictures(row, graph, is_open=at == 0)
    if len(apart) > MOST_PICTURES:
        yield html(
            '<p class="note">Pictures of the {} that are furthest apart; the table has all.</p>',
            MOST_PICTURES,
        )


def _where(row: ChainRow | WalkRow) -> str:
    return f"{row.program or 'unknown program'} on {row.host}"


HEADS = ("Cell", "Program", "Testbed", "Distance", "Edges in one only", "Stationary", "Spectral gap", "p", "One chain?")


def _table(rows: Sequence[ChainRow]) -> Markup:
    body = []
    for row in rows:
        verdict = {True: "no", False: "not refuted", None: NONE}[row.different]
        gaps = f"{_number(row.spectral_gap)} / {_number(row.reference_spectral_gap)}"
        numbers = (
            *(_number(row.distance), _share(row.different_edges), _number(row.stationary_distance)),
            *(gaps, _number(row.p_adjusted)),
        )
        texts = Markup().join(html("<td>{}</td>", text) for text in (_where(row), row.testbed))
        cells = Markup().join(html('<td class="number">{}</td>', text) for text in numbers)
        title = html('<th scope="row">{}</th>', cell_title(row.cell))
        body.append(html("<tr>{}{}{}<td>{}</td></tr>", title, texts, cells, verdict))
    reference = escape(rows[0].reference)
    caption = (
        f"Against {reference}. Stationary: total variation of the long-run use of states; spectral gap: testbed / {reference}."
    )
    heads = Markup().join(html('<th scope="col"{}>{}</th>', _aligned(head), head) for head in HEADS)
    return html(
        '<div class="scroll"><table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>',
        caption,
        heads,
        Markup().join(body),
    )


def _aligned(head: str) -> Markup:
    return Markup(' class="number"') if head in HEADS[3:8] else Markup()


WALKS = (
    "Cell",
    "Program",
    "Testbed",
    "Walks",
    "Valid",
    "Invalid transitions",
    "Relative probability",
    "log10 a call",
    "Against the reference",
)


def _walks(rows: Sequence[WalkRow], reference: str) -> Markup:
    """The seeds' Tables VIII and IX."""
    body = []
    for row in rows:
        interval = "" if row.low is None else f" [{row.low:.3g}, {row.high:.3g}]"
        none = row.per_call_difference is None or row.testbed == reference
        difference = NONE if none else f"{row.per_call_difference:.3g}{interval}"
        numbers = (
            *(f"{row.walks:,}", f"{row.valid_walks:,}", f"{row.invalid:,}", row.relative_probability or NONE),
            *(_number(row.per_call), difference),
        )
        texts = Markup().join(html("<td>{}</td>", text) for text in (_where(row), row.testbed))
        cells = Markup().join(html('<td class="number">{}</td>', text) for text in numbers)
        body.append(html('<tr><th scope="row">{}</th>{}{}</tr>', cell_title(row.cell), texts, cells))
    heads = Markup().join(html('<th scope="col"{}>{}</th>', _numbered(head), head) for head in WALKS)
    caption = (
        "Sequences of every testbed through the reference's chains. A transition that a chain lacks is invalid and makes the "
        "walk impossible; probabilities are of valid walks, and compare only where walks are equally long."
    )
    return html(
        '<details><summary>Walks through the reference\'s chains</summary><div class="scroll"><table>'
        "<caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div></details>",
        caption,
        heads,
        Markup().join(body),
    )


def _numbered(head: str) -> Markup:
    return Markup(' class="number"') if head in WALKS[3:] else Markup()


def _pictures(row: ChainRow, graph: Graph, *, is_open: bool) -> Markup:
    testbed, reference = row.testbed, row.reference
    shown = most_used(graph)
    title = f"{_where(row)}, {cell_title(row.cell)}: {testbed} against {reference}"
    drawn = svg(
        shown,
        f"{title}. Transitions between system calls; the table above has the distances.",
        (testbed, reference),
        name=f"chain of {title}",
    )
    label = f"{title}. Differences of transition probabilities."
    heat = plots.svg(heat_map(shown, testbed, reference), label, f"differences of chain of {title}")
    differences = (
        f"By how many percentage points more often the column's call follows the row's on {testbed} or on {reference}; "
        f"+ where only {testbed} has the transition, - where only {reference}."
    )
    note = html('<p class="note">{}</p>', shown.note) if shown.note else ""
    return html(
        '<details class="print"{}><summary>{}</summary>{}<div class="plots chain">'
        "<figure><figcaption>What follows what. Point at a state or an arrow for its numbers.</figcaption>{}</figure>"
        "<figure><figcaption>{}</figcaption>{}</figure></div></details>",
        " open" if is_open else "",
        title,
        note,
        drawn,
        differences,
        heat,
    )


def heat_map(shown: Shown, testbed: str, reference: str) -> Spec:
    """Rows are states, columns the calls that follow; colour says whose probability is larger, strength by how much."""
    rows: list[dict[str, Json]] = []
    for edge in shown.graph.edges:
        first, second = (probability or 0.0 for probability in edge.probabilities)
        difference = first - second
        pair = (NONE if each is None else share(round(each, 5)) for each in edge.probabilities)
        label = f"{edge.state} → {edge.call}. {testbed}: {next(pair)}, {reference}: {next(pair)}"
        mark = {None: "", 0: "+", 1: "-"}[edge.only]
        text = mark or (f"{abs(difference) * 100:.0f}" if abs(difference) >= FAINTEST else "")
        rows.append(
            {
                "state": edge.state,
                "call": edge.call,
                "size": abs(difference),
                "more": testbed if difference >= 0 else reference,
                "text": text,
                "said": label,
            }
        )
    states = [node.state for node in shown.graph.nodes]
    calls = list(dict.fromkeys(state.split(" ")[-1] for state in states))
    axis = {"title": None, "ticks": False, "labelColor": INK, "labelLimit": 220, "grid": False, "labelOverlap": False}
    x = {"field": "call", "type": "nominal", "sort": calls, "axis": {**axis, "orient": "top", "labelAngle": -50}}
    # The fonts of a page are wider than those that the picture is laid out with.
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


def _number(value: float | None) -> str:
    return NONE if value is None else (f"{value:.3g}" if abs(value) < 1 else number(value))


def _share(value: float | None) -> str:
    return NONE if value is None else share(round(value, 4))
