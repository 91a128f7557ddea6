"""Chains and comparisons of chains in text, for `twinbed chain`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from twinbed.analyses.chain.walks import exponent
from twinbed.model.amount import amount
from twinbed.render.rows import as_text

if TYPE_CHECKING:
    from twinbed._core import Transitions, Walk
    from twinbed.analyses.chain.method import Compared
    from twinbed.analyses.chain.result import ChainRow, Graph, WalkRow

NAMELESS = "a program without a name"


class EdgeRow(TypedDict):
    """The columns that are shown of ``_core.Transitions.compare``'s table."""

    state: str
    call: str
    probability_first: float | None
    probability_second: float | None
    share_first: float | None
    share_second: float | None


def percent(value: float | None, digits: int = 2) -> str | None:
    if value is None:
        return None
    least = 10.0**-digits
    return f"<{least:g} %" if 0 < value * 100 < least else f"{value * 100:.{digits}f} %"


def short(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g}"


def one_chain(program: str | None, counts: Transitions, graph: Graph, order: int) -> Iterator[str]:
    """States by their use, then transitions by state."""
    of = "" if order == 1 else f", states of {order} calls"
    yield (
        f"{program or NAMELESS}: {amount(counts.calls, 'call')} (sequences: {counts.sequences:,}){of}; "
        f"{amount(len(graph.nodes), 'state')}, {amount(len(graph.edges), 'transition')}\n\n"
    )
    nodes = sorted(graph.nodes, key=lambda node: (-(node.shares[0] or 0.0), node.state))
    timed = any(node.times[0] is not None for node in nodes)
    yield as_text(
        [
            {"state": node.state, "share": percent(node.shares[0]), **({"time": percent(node.times[0])} if timed else {})}
            for node in nodes
        ]
    )
    yield "\n"
    use = {node.state: at for at, node in enumerate(nodes)}
    edges = sorted(graph.edges, key=lambda edge: (use[edge.state], -(edge.probabilities[0] or 0.0), edge.call))
    yield as_text(
        [
            {
                "state": edge.state,
                "next call": edge.call,
                "probability": short(edge.probabilities[0]),
                "share": percent(edge.shares[0]),
            }
            for edge in edges
        ]
    )


def two_chains(program: str | None, compared: Compared, walks: Mapping[str, tuple[Walk, Walk]]) -> Iterator[str]:
    """Two chains compared. ``walks``: such as first through second -> that walk, and the walk of the chain's own sequence."""
    about = compared.summary
    yield f"{program or NAMELESS}: the first traces against the second (--against)\n\n"
    spectra = compared.spectra
    facts: list[tuple[str, str | None]] = [
        ("transitions in both", f"{about['shared_edges']:,}"),
        ("only in the first", f"{about['only_first']:,} ({percent(about['only_first_share'])} of its calls)"),
        ("only in the second", f"{about['only_second']:,} ({percent(about['only_second_share'])} of its calls)"),
        ("in one only, of all", percent(about["different_edges"])),
        ("greatest difference of a probability", short(about["greatest_difference"])),
        ("Jensen-Shannon distance of the rows", short(about["distance"])),
        ("total variation, stationary", short(compared.stationary_distance)),
        ("total variation, of use", short(compared.use_distance)),
        ("spectral gaps", f"{short(spectra[0].gap) or '-'} and {short(spectra[1].gap) or '-'}" if spectra else None),
    ]
    same = compared.sameness
    if same.p_value is not None and same.least_p < 1:
        facts.append(("p of one chain", f"{same.p_value:.4g} (permutation of the files; at least {same.least_p:.2g})"))
    yield "".join(f"  {name:<38}{'-' if value is None else value}\n" for name, value in facts)
    yield "\n"
    yield as_text(
        [
            {
                "walk": name,
                "transitions": walk["transitions"],
                "invalid": walk["invalid"],
                "kinds": walk["invalid_kinds"],
                "log10 a call": short(walk["log10_per_call"]),
                "its own": short(own["log10_per_call"]),
                "probability": probability(walk),
            }
            for name, (walk, own) in walks.items()
        ]
    )
    rows: list[EdgeRow] = sorted(compared.edges.to_pylist(), key=_apart)
    differing = [row for row in rows if _difference(row) > 0]
    yield f"\ntransitions that differ: {len(differing):,}\n"
    yield as_text(
        [
            {
                "state": row["state"],
                "next call": row["call"],
                "first": short(row["probability_first"]),
                "second": short(row["probability_second"]),
                "": "only first"
                if row["probability_second"] is None
                else ("only second" if row["probability_first"] is None else ""),
            }
            for row in differing
        ]
    )


def probability(walk: Walk) -> str:
    """The probability of the whole walk as the seeds print it: the power of ten alone."""

    return str(exponent(walk["log10_probability"]))


def _difference(row: EdgeRow) -> float:
    return abs((row["probability_first"] or 0.0) - (row["probability_second"] or 0.0))


def _apart(row: EdgeRow) -> tuple[float, str, str]:
    """Sorts by how much an edge matters: distances add up the difference times the use of the state."""
    use = max(row["share_first"] or 0.0, row["share_second"] or 0.0)
    return (-_difference(row) * use, row["state"], row["call"])


def results(chains: Sequence[ChainRow], walks: Sequence[WalkRow]) -> Iterator[str]:
    """The analysis of a results folder."""
    from twinbed.show.words import cell_title

    def where(row: ChainRow | WalkRow) -> dict[str, str | None]:
        return {"cell": cell_title(row.cell), "host": row.host, "program": row.program, "testbed": row.testbed}

    verdicts = {True: "different", False: "not shown to differ", None: ""}
    yield "Chains against the reference's\n\n"
    yield as_text(
        [
            {
                **where(row),
                "distance": short(row.distance),
                "in one only": percent(row.different_edges),
                "stationary": short(row.stationary_distance),
                "p": short(row.p_adjusted),
                "": verdicts[row.different],
            }
            for row in chains
        ]
    )
    yield "\nWalks of each testbed's sequences through the reference's chains (the seeds' Tables VIII and IX)\n\n"
    yield as_text(
        [
            {
                **where(row),
                "walks": row.walks,
                "valid": row.valid_walks,
                "invalid transitions": row.invalid,
                "relative": row.relative_probability or None,
                "log10 a call": short(row.per_call),
                "difference": short(row.per_call_difference),
                "interval": None if row.low is None else f"{row.low:.3g} to {row.high:.3g}",
            }
            for row in walks
        ]
    )
