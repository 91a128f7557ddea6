"""`twinbed explain`: find causes of differences, and prove them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.observations.options import STYLES, write
from twinbed.observations.pages import no_page
from twinbed.terminal import say

if TYPE_CHECKING:
    from twinbed.analyses.explain.result import Explanation
    from twinbed.model.tables import Tables

TABLES = ("causes", "responses", "proofs")


@click.command(name="explain", epilog="docs/explain.md lists the causes, and explains how one is proved.")
@click.argument("results", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--reference", metavar="TESTBED", help="Compare the others with this testbed. Default: the study's.")
@click.option("--study", "study_file", type=click.Path(path_type=Path), help="Write the small study that would prove a cause.")
@click.option("--cause", metavar="NAME", help="The cause that --study switches. Default: the most likely one with a switch.")
@click.option(
    "--proof",
    "proofs",
    metavar="RESULTS",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Results of such a study: print whether its cause is proved. May be repeated.",
)
@click.option("--table", type=click.Choice(TABLES), default=TABLES[0], show_default=True, help="The table that CSV has.")
@click.option("--format", "style", type=click.Choice(STYLES), help="Default: by the name of -o, else text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; .html makes a page.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    results: Path,
    reference: str | None,
    study_file: Path | None,
    cause: str | None,
    proofs: tuple[Path, ...],
    table: str,
    style: str | None,
    output: Path | None,
) -> int:
    """Rank candidate causes of each difference between testbeds, and write the study that proves one.

    Looks in RESULTS for signs of the hosts' CPUs, the initial window, autocorking, segmentation and receive offload, interrupt
    coalescing, delayed acknowledgements and Nagle's algorithm. The study needs the instruments packets and counters.

    \b
      twinbed explain results/                                      candidates, the most likely first
      twinbed explain results/ --study proof.yaml                   a study that switches the first one on and off
      twinbed explain results/ --study proof.yaml --cause gro       the same for another cause
      twinbed run proof.yaml -o proof/
      twinbed explain results/ --proof proof/                       was it the cause?
    """
    from twinbed.analyses.explain.method import analysis
    from twinbed.analyses.explain.proof import proved

    tables = inputs.tables(results, reference)
    result = analysis.run(tables)
    if study_file is not None:
        no_page("a study", "give --study and --html in two commands")
        return _write_study(result, tables, cause, study_file)
    if cause is not None:
        raise click.UsageError("--cause needs --study FILE, the study to write")
    if proofs:
        result = proved(result, tables, [inputs.tables(proof) for proof in proofs])
    write(analysis, result, results, style, table, None, output)
    return codes.DONE


def _write_study(result: Explanation, tables: Tables, name: str | None, file: Path) -> int:
    from twinbed.analyses.explain.proof import cause_of, study_text
    from twinbed.render.output import put

    cause = cause_of(result, name)
    text = study_text(result, tables, cause)
    put(text, file)
    say(f"{file} switches {cause.title} on and off. Next: twinbed run {file} -o PROOF, then explain --proof PROOF", err=True)
    return codes.DONE
