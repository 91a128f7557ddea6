"""`twinbed analyse detectability`: can an observer tell a testbed from the reference?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.observations.options import STYLES, write

if TYPE_CHECKING:
    from twinbed.analyses.detectability.result import Detectability


@click.command(name="detectability", epilog="docs/detectability.md has the method and its error rates.")
@click.argument("results", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--reference", metavar="TESTBED", help="The testbed that others are told from. Default: the study's.")
@click.option(
    "--observer", type=click.Choice(["passive", "active", "host"]), help="Default: all that something was recorded for."
)
@click.option("--table", type=click.Choice(["detectability", "features", "lengths", "costs"]), default="detectability")
@click.option("--format", "style", type=click.Choice(STYLES), help="Default: by the name of -o, else text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; .html makes a page.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    results: Path,
    reference: str | None,
    observer: str | None,
    table: str,
    style: str | None,
    output: Path | None,
) -> int:
    """Can an observer tell a testbed from the reference, how well, from how many packets, and by what?

    The study needs the instrument packets, for the active observer and the one on the host the instrument fingerprint.

    \b
    twinbed analyse detectability results/
    twinbed analyse detectability results/ -o told.html                   as a page, with what hiding costs in speed
    twinbed analyse detectability results/ --table features -o f.csv      every feature, and the setting that removes it
    """
    from twinbed.analyses.detectability.method import DetectabilityParams
    from twinbed.analyses.detectability.method import analysis as detectability

    result = detectability.run(inputs.tables(results, reference), DetectabilityParams(observer=observer))
    write(detectability, result, results, style, table, _text(result), output)
    return codes.DONE


def _text(result: Detectability) -> Iterator[str]:
    from twinbed.analyses.detectability.tables import CAPTION, FEATURES_CAPTION, cost_table, feature_table, table
    from twinbed.analyses.detectability.words import sentences

    yield from sentences(result)
    yield ""
    yield table(result).as_text()
    yield f"{CAPTION}\n"
    yield feature_table(result).as_text()
    yield f"{FEATURES_CAPTION}\n"
    if result.costs:
        yield cost_table(result).as_text()
