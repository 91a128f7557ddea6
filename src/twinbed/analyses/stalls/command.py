"""`twinbed analyse stalls`: when connections stood still."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.observations.options import STYLES, write

if TYPE_CHECKING:
    from twinbed.analyses.stalls.result import StallsFound


@click.command(name="stalls", epilog="docs/stalls.md says what counts as a stall.")
@click.argument("results", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--table", type=click.Choice(["stalls", "messages"]), default="stalls", help="Which table CSV is of.")
@click.option("--format", "style", type=click.Choice(STYLES), help="Default: by the name of -o, else text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; .html makes a page.")
@click.pass_obj
def command(inputs: Inputs, /, results: Path, table: str, style: str | None, output: Path | None) -> int:
    """When did connections stand still, for how long, where, and what did the kernels say?

    \b
    twinbed analyse stalls results/
    twinbed analyse stalls results/ --table messages -o messages.csv    what kernels said near them
    """
    from twinbed.analyses.stalls.analysis import analysis as stalls

    result = stalls.run(inputs.tables(results))
    write(stalls, result, results, style, table, _text(result), output)
    return codes.DONE


def _text(result: StallsFound) -> Iterator[str]:
    from twinbed.analyses.stalls.tables import CAPTION, messages, sentence, table

    yield sentence(result)
    if result.stalls:
        yield table(result).as_text()
        yield CAPTION
        yield from messages(result)
