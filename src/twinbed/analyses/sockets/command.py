"""`twinbed analyse sockets`: what holds TCP senders up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.observations.options import STYLES, write

if TYPE_CHECKING:
    from twinbed.analyses.sockets.result import Senders


@click.command(name="sockets", epilog="docs/sockets.md says how each reason is measured.")
@click.argument("results", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--table", type=click.Choice(["limits", "windows"]), default="limits", help="Which table CSV is of.")
@click.option("--format", "style", type=click.Choice(STYLES), help="Default: by the name of -o, else text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; .html makes a page.")
@click.pass_obj
def command(inputs: Inputs, /, results: Path, table: str, style: str | None, output: Path | None) -> int:
    """What holds TCP senders up: the application, the receive window, the send buffer, or the network?

    The study needs the instrument sockets.

    \b
    twinbed analyse sockets results/
    twinbed analyse sockets results/ -o sockets.html             as a page, with congestion windows over time
    twinbed analyse sockets results/ --table windows -o w.csv    the windows as rows
    """
    from twinbed.analyses.sockets.method import analysis as sockets

    tables = inputs.tables(results)
    result = sockets.run(tables)
    write(sockets, result, results, style, table, _text(result), output)
    return codes.DONE


def _text(result: Senders) -> Iterator[str]:
    from twinbed.analyses.sockets.tables import CAPTION, sentence, table

    yield table(result).as_text()
    yield CAPTION
    yield sentence(result)
