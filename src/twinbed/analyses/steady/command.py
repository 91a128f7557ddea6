"""`twinbed analyse steady`: what the rate does inside runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.observations.options import STYLES, write

if TYPE_CHECKING:
    from twinbed.analyses.steady.result import SteadyStates


@click.command(name="steady", epilog="docs/steady.md says what is tested, and what to do about it.")
@click.argument("results", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--margin", metavar="SHARE", help="How much drift still counts as none. Default: the study's.")
@click.option("--table", type=click.Choice(["cells", "series"]), default="cells", help="Which table CSV is of.")
@click.option("--format", "style", type=click.Choice(STYLES), help="Default: by the name of -o, else text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; .html makes a page.")
@click.pass_obj
def command(inputs: Inputs, /, results: Path, margin: str | None, table: str, style: str | None, output: Path | None) -> int:
    """Do runs warm up, do they settle, and how long should they last?

    \b
    twinbed analyse steady results/
    twinbed analyse steady results/ -o steady.html               as a page, with the rate over time
    """
    from twinbed.analyses.steady.method import SteadyParams
    from twinbed.analyses.steady.method import analysis as steady
    from twinbed.model.error import TwinbedError
    from twinbed.model.units import QuantityError, parse_share

    try:
        params = SteadyParams(margin=None if margin is None else parse_share(margin))
    except (QuantityError, ValueError) as error:
        raise TwinbedError(f"--margin: {margin!r} is not a share above 0", advice="such as 10% or 0.1") from error
    result = steady.run(inputs.tables(results), params)
    write(steady, result, results, style, table, _text(result), output)
    return codes.DONE


def _text(result: SteadyStates) -> Iterator[str]:
    from twinbed.analyses.steady.tables import caption, sentence, table

    yield table(result).as_text()
    yield caption(result)
    yield sentence(result)
