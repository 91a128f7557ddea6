"""Write chains as sections: chains of results compared with the reference's, one chain of traces, and two compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, TypedDict

from twinbed.analyses.chain.draw import pictures
from twinbed.analyses.chain.result import ChainRow, Chains, Compared, Graph, WalkRow, where
from twinbed.analyses.chain.walks import Walked, exponent
from twinbed.metrics.metric import Layer
from twinbed.model.amount import amount
from twinbed.show.numbers import percent
from twinbed.show.quantities import NONE
from twinbed.show.section import Item, Section
from twinbed.show.table import Column, Table
from twinbed.show.words import cell_title

if TYPE_CHECKING:
    from twinbed._core import Transitions, Walk

MOST_PICTURES = 8
"""Comparisons with pictures: those with the largest distances."""
NAMELESS = "a program without a name"
METHOD = (
    "A chain describes the call that follows each call, for a program on a host, over all replicates. Distance "
    "(Jensen-Shannon): 0 for equal chains, 1 for chains without a common transition. p: the chance of such a distance if both "
    "were one chain (permutation of replicates, Holm's correction over this table)."
)
VERDICTS = {True: "different", False: "not shown to differ", None: None}
PLACE = (
    Column(head="cell", value=lambda row: cell_title(row.cell)),
    Column(head="program", value=where),
    Column(head="testbed", value="testbed"),
)


def section(result: Chains) -> Section:
    """Return the distances between each testbed's programs and the reference's, and pictures of the largest ones."""
    rows = result.chains
    differ = sum(row.different is True for row in rows)
    answer = f"{differ} of {amount(len(rows), 'chain')} of system calls are shown to differ from the reference's."
    if few := sum(row.different is not True and row.least_p * len(rows) > 1 - result.confidence for row in rows):
        answer += f" {few} have too few replicates to show a difference."
    if not rows:
        answer = "Nothing to compare: no program has system calls on the reference and on another testbed."
    walks = Section("walks", "Walks through the reference's chains", "", (_walks(result.walks),), folded=True)
    items: list[Item] = [*([METHOD] if rows else []), _chains(rows), walks]
    drawn = [(row, graph) for row, graph in zip(rows, result.graphs, strict=True) if row.distance is not None]
    drawn.sort(key=lambda entry: -(entry[0].distance or 0.0))
    items += [pictures(row, graph, at) for at, (row, graph) in enumerate(drawn[:MOST_PICTURES])]
    if len(drawn) > MOST_PICTURES:
        items.append(f"Only the {MOST_PICTURES} largest distances have pictures; the table has all.")
    kicker = "The order of system calls, for each program on each host"
    return Section("chain", "System calls as Markov chains", answer, items, kicker=kicker, layer=Layer.OS)


def _chains(rows: Sequence[ChainRow]) -> Table:
    columns = (
        *(Column(field.name) for field in fields(ChainRow)),
        *PLACE,
        Column(head="verdict", value=lambda row: VERDICTS[row.different]),
        Column(head="distance", format=".4g", value="distance"),
        Column(head="in one only", format=percent, value="different_edges"),
        Column(head="stationary", format=".4g", value="stationary_distance"),
        Column(head="spectral gap", format="s", value=_gaps),
        Column(head="p", format=".4g", value="p_adjusted"),
    )
    reference = rows[0].reference if rows else ""
    caption = (
        f"Compared with {reference}. Stationary: total variation of the long-run use of states. Spectral gap: testbed / "
        f"{reference}."
    )
    return Table("chains", "Chains", caption, columns, rows)


def _gaps(row: ChainRow) -> str:
    return " / ".join(_short(gap) or NONE for gap in (row.spectral_gap, row.reference_spectral_gap))


def _walks(rows: Sequence[WalkRow]) -> Table:
    columns = (
        *(Column(name) for name in ("cell", "host", "program")),
        *(Column(field.name) for field in fields(Walked) if field.name != "interval"),
        *(Column(name) for name in ("relative_probability", "low", "high")),
        *PLACE,
        Column(head="walks", format=",", value="walks"),
        Column(head="valid", format=",", value="valid_walks"),
        Column(head="invalid transitions", format=",", value="invalid"),
        Column(head="relative probability", format="s", value=lambda row: row.relative_probability or None),
        Column(head="log10 a call", format=".4g", value="per_call"),
        Column(head="minus the reference's", format="s", value=_against),
    )
    caption = (
        "Sequences of every testbed, walked through the reference's chains (the seeds' Tables VIII and IX). A transition that "
        "a chain lacks is invalid, and makes the walk impossible. Probabilities cover valid walks, and are comparable only "
        "between walks of equal length."
    )
    return Table("walks", "", caption, columns, rows)


def _against(row: WalkRow) -> str | None:
    bounds = "" if row.low is None else f" [{row.low:.3g}, {row.high:.3g}]"
    return None if row.per_call_difference is None else f"{row.per_call_difference:.4g}{bounds}"


def one_chain(program: str | None, counts: Transitions, graph: Graph, order: int) -> Section:
    """Return the states of one chain by their use, then its transitions by state."""
    of = "" if order == 1 else f", states of {order} calls"
    summary = (
        f"{program or NAMELESS}: {amount(counts.calls, 'call')} (sequences: {counts.sequences:,}){of}; "
        f"{amount(len(graph.nodes), 'state')}, {amount(len(graph.edges), 'transition')}"
    )
    nodes = sorted(graph.nodes, key=lambda node: (-(node.shares[0] or 0.0), node.state))
    use = {node.state: at for at, node in enumerate(nodes)}
    edges = sorted(graph.edges, key=lambda edge: (use[edge.state], -(edge.probabilities[0] or 0.0), edge.call))
    timed = any(node.times[0] is not None for node in nodes)
    states = (
        Column(head="state", value="state"),
        Column(head="share", format=percent, value=lambda node: node.shares[0]),
        *([Column(head="time", format=percent, value=lambda node: node.times[0])] if timed else []),
    )
    transitions = (
        Column(head="state", value="state"),
        Column(head="next call", value="call"),
        Column(head="probability", format=".4g", value=lambda edge: edge.probabilities[0]),
        Column(head="share", format=percent, value=lambda edge: edge.shares[0]),
    )
    return Section("chain", "", summary, (Table("states", "", "", states, nodes), Table("edges", "", "", transitions, edges)))


class EdgeRow(TypedDict):
    """The shown columns of ``_core.Transitions.compare``'s table."""

    state: str
    call: str
    probability_first: float | None
    probability_second: float | None
    share_first: float | None
    share_second: float | None


def two_chains(program: str | None, compared: Compared, walks: Mapping[str, tuple[Walk, Walk]]) -> Section:
    """Return two chains compared. ``walks``: such as ``first through second`` -> that walk, and the chain's own sequence's."""
    shared = percent(1 - (compared.summary["different_edges"] or 0.0))
    answer = f"{program or NAMELESS}: the first traces and the second (--against) share {shared} of their transitions"
    rows: list[EdgeRow] = sorted(compared.edges.to_pylist(), key=_apart)
    differing = [row for row in rows if _difference(row) > 0]
    walked = (
        Column(head="walk", value=lambda row: row[0]),
        Column(head="transitions", format="d", value=lambda row: row[1]["transitions"]),
        Column(head="invalid", format="d", value=lambda row: row[1]["invalid"]),
        Column(head="kinds", format="d", value=lambda row: row[1]["invalid_kinds"]),
        Column(head="log10 a call", format=".4g", value=lambda row: row[1]["log10_per_call"]),
        Column(head="its own", format=".4g", value=lambda row: row[2]["log10_per_call"]),
        # As the seeds print it: the power of ten alone.
        Column(head="probability", format="s", value=lambda row: exponent(row[1]["log10_probability"])),
    )
    edges = (
        Column(head="state", value="state"),
        Column(head="next call", value="call"),
        Column(head="first", format=".4g", value="probability_first"),
        Column(head="second", format=".4g", value="probability_second"),
        Column(head="in", value=_only),
    )
    records = [(name, *pair) for name, pair in walks.items()]
    title = f"transitions that differ: {len(differing):,}"
    last = Table("edges", title, "", edges, differing) if differing else title
    items = (_facts(compared), Table("walks", "", "", walked, records), last)
    return Section("chains", "", answer, items)


def _facts(compared: Compared) -> tuple[str, ...]:
    summary, same, spectra = compared.summary, compared.sameness, compared.spectra
    facts = {
        "transitions in both": f"{summary['shared_edges']:,}",
        "only in the first": f"{summary['only_first']:,} ({percent(summary['only_first_share'])} of its calls)",
        "only in the second": f"{summary['only_second']:,} ({percent(summary['only_second_share'])} of its calls)",
        "in one only, of all": percent(summary["different_edges"]),
        "greatest difference of a probability": _short(summary["greatest_difference"]),
        "Jensen-Shannon distance of the rows": _short(summary["distance"]),
        "total variation, stationary": _short(compared.stationary_distance),
        "total variation, of use": _short(compared.use_distance),
        "spectral gaps": " and ".join(_short(side.gap) or "-" for side in spectra) if spectra else None,
    }
    if same.p_value is not None and same.least_p < 1:
        facts["p of one chain"] = f"{same.p_value:.4g} (permutation of the files; at least {same.least_p:.2g})"
    return ("", *(f"  {name:<38}{'-' if value is None else value}" for name, value in facts.items()))


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g}"


def _only(row: EdgeRow) -> str:
    if row["probability_second"] is None:
        return "only first"
    return "only second" if row["probability_first"] is None else "both"


def _difference(row: EdgeRow) -> float:
    return abs((row["probability_first"] or 0.0) - (row["probability_second"] or 0.0))


def _apart(row: EdgeRow) -> tuple[float, str, str]:
    """Return what sorts edges by their part of the distance: the difference times the use of the state."""
    use = max(row["share_first"] or 0.0, row["share_second"] or 0.0)
    return (-_difference(row) * use, row["state"], row["call"])
