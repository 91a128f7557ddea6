"""`twinbed analyse tails`: the times of single requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.observations.options import STYLES, write

if TYPE_CHECKING:
    from twinbed.analyses.tails.result import Tails


@click.command(name="tails", epilog="docs/tails.md says what is compared, and what a quantile of few requests is worth.")
@click.argument("results", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--margin", metavar="SHARE", help="How far apart still counts as equivalent. Default: the study's.")
@click.option("--reference", metavar="TESTBED", help="Hold the others against this one. Default: the study's reference.")
@click.option(
    "--times",
    type=click.Choice(["exchanges", "requests"]),
    help="As captured on the clients' links, or as ab wrote them. Default: as captured, if they were.",
)
@click.option("--all", "everything", is_flag=True, help="Every quantile, not only the median, P90 and P99.")
@click.option("--table", type=click.Choice(["shifts", "quantiles"]), default="shifts", help="Which table CSV is of.")
@click.option("--format", "style", type=click.Choice(STYLES), help="Default: by the name of -o, else text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; .html makes a page.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    results: Path,
    margin: str | None,
    reference: str | None,
    times: str | None,
    everything: bool,
    table: str,
    style: str | None,
    output: Path | None,
) -> int:
    """What do users feel: do the slowest requests take as long as on the reference?

    Each run has its own quantiles of the times of its requests; those of runs are compared, since requests of one run are not
    independent. The median, P90 and P99 get verdicts.

    \b
    twinbed analyse tails results/
    twinbed analyse tails results/ --all
    twinbed analyse tails results/ -o tails.html                 as a page
    """
    from twinbed.analyses.tails.method import TailsParams
    from twinbed.analyses.tails.method import analysis as tails
    from twinbed.model.error import TwinbedError
    from twinbed.model.units import QuantityError, parse_share

    try:
        params = TailsParams(margin=None if margin is None else parse_share(margin), source=times)
    except (QuantityError, ValueError) as error:
        raise TwinbedError(f"--margin: {margin!r} is not a share above 0", advice="such as 10% or 0.1") from error
    result = tails.run(inputs.tables(results, reference), params)
    text = _text(result, everything)
    write(tails, result, results, style, table, text, output)
    return codes.DONE


def _text(result: Tails, everything: bool) -> Iterator[str]:
    from twinbed.analyses.tails.tables import caption, shift_table
    from twinbed.analyses.tails.words import sentence
    from twinbed.show.words import caution_sentences

    yield shift_table(result, result.shifts if everything else result.verdicts).as_text()
    yield caption(result)
    yield sentence(result)
    yield from (f"! {each}" for each in caution_sentences(result.cautions))
