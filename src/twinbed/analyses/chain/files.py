"""Every testbed's and program's chain of system calls as GraphML and DOT, with ``chains.csv`` that says which is which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twinbed.analyses.chain.formats import dot, graphml
from twinbed.analyses.chain.result import Alone
from twinbed.contracts.analysis import File
from twinbed.model.run import level_text
from twinbed.render.file_names import Names
from twinbed.render.spreadsheet import csv_text
from twinbed.show.words import cell_title

INDEX = "chains.csv"


def files(chains: Iterable[Alone]) -> Iterator[File]:
    """Two files a chain, and the index last."""
    names = Names()
    rows: list[dict[str, object]] = []
    factors: dict[str, None] = {}
    for each in chains:
        name = names.of(" ".join([each.testbed, each.program or "unnamed", "on", each.host, cell_title(each.cell)]))
        title = " ".join([each.program or "a program without a name", "on", each.host, "of", each.testbed])
        yield File(f"{name}.graphml", graphml(each.graph, title))
        yield File(f"{name}.dot", dot(each.graph, title))
        factors |= dict.fromkeys(each.cell)
        rows.append(
            {
                "file": name,
                "testbed": each.testbed,
                **{factor: level_text(level) for factor, level in each.cell.items()},
                "host": each.host,
                "program": each.program,
                "replicates": each.replicates,
                "calls": each.calls,
                "states": len(each.graph.nodes),
                "transitions": len(each.graph.edges),
            }
        )
    ends = ("host", "program", "replicates", "calls", "states", "transitions")
    heads = ("file", "testbed", *factors, *ends)
    yield File(INDEX, csv_text(heads, ([row.get(name) for name in heads] for row in rows)))
