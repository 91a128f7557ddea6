"""Keep a calibration and plan the runs to make next: `twinbed calibrate` beyond printing a result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.model.error import TwinbedError
from twinbed.observations.options import STYLES, SUFFIXES, write

if TYPE_CHECKING:
    from twinbed.analyses.calibrate.method import CalibrateParams
    from twinbed.analyses.calibrate.result import Calibrations
    from twinbed.model.tables import Tables


@click.command(name="calibrate")
@click.argument("results", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option(
    "--next",
    "steps",
    type=click.IntRange(1),
    metavar="N",
    help="Print the N levels to measure next, and write a study of them.",
)
@click.option("--until", metavar="SHARE", help="With --next: stop when nine of ten cells are within this, such as 5%.")
@click.option(
    "--study", type=click.Path(path_type=Path), default="next.yaml", show_default=True, help="With --next: the study to write."
)
@click.option("--format", "style", type=click.Choice(STYLES), help="The form to print. Default: text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File for the calibration; .html writes a page instead.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    results: Path,
    params: CalibrateParams,
    steps: int | None,
    until: str | None,
    study: Path,
    table: str,
    style: str | None,
    output: Path | None,
) -> int:
    from twinbed.analyses.calibrate.method import analysis
    from twinbed.analyses.calibrate.words import example
    from twinbed.render.sections import lines

    tables = inputs.tables(results)
    calibrations = analysis.run(tables, params)
    page = output is not None and SUFFIXES.get(output.suffix.lower()) == "html"
    saved = None if page else _save(calibrations, results, output)
    text = list(lines(analysis.section(calibrations)))
    if steps is not None:
        text += _next(tables, calibrations, steps, until, study)
    elif saved is not None:
        text += ["", f"Written: {saved}. Next: twinbed predict {saved} {example(calibrations)}"]
    write(analysis, calibrations, results, style or ("html" if page else None), table, iter(text), output if page else None)
    return codes.DONE


def _save(calibrations: Calibrations, results: Path, output: Path | None) -> Path:
    from twinbed.analyses.calibrate.saved import file_name, to_json
    from twinbed.observations.predictable import FOLDER
    from twinbed.render.output import write as write_file
    from twinbed.tree import Tree

    if output is None and not results.is_dir():
        raise TwinbedError(f"{results} is not a folder that can hold the calibration", advice="name a file: -o FILE")
    file = output or results / FOLDER / file_name(calibrations)
    try:
        if output is None:
            Tree(results).make(FOLDER)
            Tree(results).write(f"{FOLDER}/{file.name}", to_json(calibrations))
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_file(to_json(calibrations), file)
    except OSError as error:
        raise TwinbedError(f"{file} cannot be written: {error.strerror}", advice="name another file: -o FILE") from error
    return file


def _next(tables: Tables, calibrations: Calibrations, steps: int, until: str | None, study: Path) -> Iterator[str]:
    from twinbed.analyses.calibrate.next_runs import next_runs, study_text
    from twinbed.analyses.calibrate.words import next_sentences
    from twinbed.model.units import QuantityError, parse_share
    from twinbed.render.output import write as write_file

    try:
        share = 0.0 if until is None else parse_share(until)
    except QuantityError as error:
        raise TwinbedError(f"--until: {until} {error.message}", advice=error.allowed) from error
    chosen = next_runs(tables, calibrations, calibrations.responses[0], steps, share)
    if chosen.levels:
        write_file(study_text(tables, calibrations, chosen), study)
    yield from next_sentences(tables, calibrations, chosen, study)
