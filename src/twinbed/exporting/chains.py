"""Every testbed's and program's chain of system calls as GraphML and DOT, with ``chains.csv`` that says which is which."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from twinbed.exporting.folder import Names
from twinbed.model.graph import Graph
from twinbed.model.run import Level, level_text
from twinbed.render.chain_formats import dot, graphml
from twinbed.render.words import cell_title

INDEX = "chains.csv"


class Chain(Protocol):
    """What the analysis ``chain`` gives of each (``Alone``)."""

    @property
    def testbed(self) -> str: ...
    @property
    def cell(self) -> Mapping[str, Level]: ...
    @property
    def host(self) -> str: ...
    @property
    def program(self) -> str | None: ...
    @property
    def replicates(self) -> int: ...
    @property
    def calls(self) -> int: ...
    @property
    def graph(self) -> Graph: ...


def write(chains: Iterable[Chain], folder: Path) -> int:
    """The number of chains."""
    names = Names()
    rows: list[dict[str, Any]] = []
    factors: dict[str, None] = {}
    for each in chains:
        name = names.of(" ".join([each.testbed, each.program or "unnamed", "on", each.host, cell_title(each.cell)]))
        title = " ".join([each.program or "a program without a name", "on", each.host, "of", each.testbed])
        (folder / f"{name}.graphml").write_text(graphml(each.graph, title), encoding="utf-8")
        (folder / f"{name}.dot").write_text(dot(each.graph, title), encoding="utf-8")
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
    with (folder / INDEX).open("w", newline="", encoding="utf-8") as stream:
        ends = ("host", "program", "replicates", "calls", "states", "transitions")
        writer = csv.DictWriter(stream, ("file", "testbed", *factors, *ends), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)
