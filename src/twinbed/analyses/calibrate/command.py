"""`twinbed calibrate`: what one testbed would give where only another was measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.model.error import TwinbedError
from twinbed.observations.options import STYLES, table_text, write

if TYPE_CHECKING:
    from twinbed.analyses.calibrate.next_runs import Next
    from twinbed.analyses.calibrate.result import Calibrated, Calibrations
    from twinbed.model.tables import Tables


@click.command(name="calibrate", epilog="docs/calibration.md says how, what it promises, and where it says nothing.")
@click.argument("results", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--from", "cheap", metavar="TESTBED", help="The testbed that is measured often. Default: of two the other one.")
@click.option("--to", "dear", metavar="TESTBED", help="The one to know about. Default: the study's reference.")
@click.option("--response", "responses", multiple=True, metavar="METRIC", help="Default: every headline metric.")
@click.option("--host", help="The host it was measured on, where there are several.")
@click.option("--direction", help="client_to_server or server_to_client, where there are both.")
@click.option("--level", metavar="SHARE", default="95%", show_default=True, help="Of the intervals.")
@click.option(
    "--random", metavar="FACTOR", help="Its levels on the --to testbed were drawn at random, though no study says so."
)
@click.option(
    "--despite",
    multiple=True,
    metavar="CAUTION",
    help="Calibrate although this speaks against it: software_cpu or cpu_exhausted. Said wherever it is used.",
)
@click.option("--next", "steps", type=click.IntRange(1), metavar="N", help="The N levels to measure next, and a study of them.")
@click.option("--until", metavar="SHARE", help="With --next: stop where nine of ten cells are within this, such as 5%.")
@click.option("--study", "study", type=click.Path(path_type=Path), help="With --next: the study to write. Default: next.yaml.")
@click.option("--table", type=click.Choice(["calibrations", "predictions", "left_out"]), default="predictions", help="Of CSV.")
@click.option("--format", "style", type=click.Choice(STYLES), help="What to print. Default: text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Where the calibration goes; .html makes a page instead.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    results: Path,
    cheap: str | None,
    dear: str | None,
    responses: tuple[str, ...],
    host: str | None,
    direction: str | None,
    level: str,
    random: str | None,
    despite: tuple[str, ...],
    steps: int | None,
    until: str | None,
    study: Path | None,
    table: str,
    style: str | None,
    output: Path | None,
) -> int:
    """What would the real testbed give where only the virtual one was measured?

    A few payloads (or any sizes, rates, numbers) are measured on both testbeds, many on the cheap one; out comes what the dear
    one gives at the others, with an interval, or a refusal. The calibration is kept in RESULTS/calibrations, for
    `twinbed predict` and `compare`.

    \b
    twinbed calibrate results/                                  from the other testbed to the reference
    twinbed calibrate results/ --from virtio --to physical --response requests_per_second
    twinbed calibrate results/ -o calibration.html              the page: curves, what was left out, residuals
    twinbed calibrate results/ --next 4                         which runs of the dear testbed tell most
    """
    from twinbed.analyses.calibrate.method import CalibrateParams
    from twinbed.analyses.calibrate.method import analysis as calibrate

    if not inputs.is_results(results):
        raise TwinbedError(f"{results} is no results folder", advice="`twinbed run` and `twinbed import` make them")
    tables = inputs.tables(results)
    params = CalibrateParams(
        cheap=cheap,
        dear=dear,
        responses=responses,
        host=host,
        direction=direction,
        level=_share(level),
        random=random,
        despite=tuple(map(_kind, despite)),
    )
    found = calibrate.run(tables, params)
    page = output is not None and output.suffix.lower() in (".html", ".htm")
    saved = None if page else _save(found, results, output)
    lines = list(_text(found))
    if steps is not None:
        lines += _next(tables, found, steps, 0.0 if until is None else _share(until), study or Path("next.yaml"))
    elif saved is not None:
        lines += ["", f"{saved}; next: twinbed predict {saved} {_example(found)}"]
    write(calibrate, found, results, style or ("html" if page else None), table, iter(lines), output if page else None)
    return codes.DONE


def _share(text: str) -> float:
    from twinbed.model.units import QuantityError, parse_share

    try:
        return float(parse_share(text))
    except QuantityError as error:
        raise TwinbedError(f"{text} {error.message}", advice=error.allowed) from error


def _kind(name: str) -> object:
    from twinbed.analyses.calibrate.trust import DISQUALIFYING

    known = {kind.name.lower(): kind for kind in DISQUALIFYING}
    if name not in known:
        raise TwinbedError(f"{name!r} does not speak against a calibration", advice=f"--despite {' or '.join(known)}")
    return known[name]


def _save(found: Calibrations, results: Path, output: Path | None) -> Path:
    from twinbed.analyses.calibrate.saved import file_name, to_json
    from twinbed.observations.predictable import FOLDER
    from twinbed.render.output import write as write_file
    from twinbed.tree import Tree

    if output is None and not results.is_dir():
        raise TwinbedError(f"{results} is no folder", advice="-o FILE says where the calibration goes")
    file = output or results / FOLDER / file_name(found)
    try:
        if output is None:
            Tree(results).make(FOLDER)
            Tree(results).write(f"{FOLDER}/{file.name}", to_json(found))
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_file(to_json(found), file)
    except OSError as error:
        raise TwinbedError(f"{file} cannot be written: {error.strerror}") from error
    return file


def _text(found: Calibrations) -> Iterator[str]:
    from twinbed.analyses.calibrate.words import sentences

    for each in found.each:
        yield from sentences(found, each)
        yield ""
    from twinbed.analyses.calibrate.result import tables as rows_of

    first = found.each[0]
    rows = [row for row in rows_of(found)["predictions"] if row["response"] == first.response]
    hidden = {"response", *(["cut_at"] if all(row["cut_at"] is None for row in rows) else [])}
    yield table_text([{name: value for name, value in row.items() if name not in hidden} for row in rows])


def _next(tables: Tables, found: Calibrations, steps: int, until: float, study: Path) -> Iterator[str]:
    from twinbed.analyses.calibrate.next_runs import next_runs, study_text
    from twinbed.analyses.calibrate.words import next_sentences
    from twinbed.render.output import write as write_file

    chosen: Next = next_runs(tables, found, found.each[0], steps, until)
    if chosen.levels:
        write_file(study_text(tables, found, chosen), study)
    yield from next_sentences(tables, found, chosen, study)


def _example(found: Calibrations) -> str:
    """A place that was measured on the cheap testbed alone."""
    from twinbed.model.run import level_text

    first: Calibrated = found.each[0]
    cells = [each for each in first.cells if each.refused is None] or list(first.cells)
    place = next((each for each in cells if each.dear is None), cells[0])
    return " ".join(f"--{name} {level_text(level)}" for name, level in place.levels.items())
