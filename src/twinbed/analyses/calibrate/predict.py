"""`twinbed predict`: predict the expensive testbed by a calibration, for given levels or new results of the cheap testbed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.model.error import TwinbedError
from twinbed.model.near import instead
from twinbed.model.run import Level, level_text
from twinbed.observations.options import OF_ROWS, table_text, write_rows

if TYPE_CHECKING:
    from twinbed.analyses.calibrate.result import Calibrated, Calibrations
    from twinbed.model.tables import Tables


@click.command(
    name="predict",
    context_settings={"ignore_unknown_options": True},
    epilog="docs/calibration.md explains what an interval promises, and where a prediction is refused.",
)
@click.argument("calibration", type=click.Path(path_type=Path))
@click.argument("levels", nargs=-1, type=click.UNPROCESSED, metavar="--FACTOR LEVEL ...")
@click.option("--response", metavar="METRIC", help="Metric to predict. Default: the first of the calibration.")
@click.option(
    "--with", "results", type=click.Path(path_type=Path), metavar="RESULTS", help="Predict every cell of new results."
)
@click.option("--testbed", help="With --with: the cheap testbed in RESULTS. Default: the name in the calibration.")
@click.option("--one-run", is_flag=True, help="Give the interval of one new run, not of the mean.")
@click.option("--format", "style", type=click.Choice(OF_ROWS), help="Default: by the name of -o, else text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write. Default: standard output.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    calibration: Path,
    levels: tuple[str, ...],
    response: str | None,
    results: Path | None,
    testbed: str | None,
    one_run: bool,
    style: str | None,
    output: Path | None,
) -> int:
    """Predict the expensive (real) testbed. CALIBRATION is a file that `twinbed calibrate` wrote.

    \b
      twinbed predict results/calibrations/virtio-physical.json --payload 64KiB --threads 3
      twinbed predict virtio-physical.json --response cpu_seconds_per_request --payload 1MiB --threads 1
      twinbed predict virtio-physical.json --with new-results/         each cell of new runs on virtio

    Without a prediction the reason is printed, and the exit code is 5.
    """
    from twinbed.analyses.calibrate import words
    from twinbed.analyses.calibrate.saved import read

    calibrations, remarks = read(calibration)
    asked = _asked(levels)
    if (results is None) == (not asked):
        raise TwinbedError("predict needs either levels or --with RESULTS", advice=f"such as {words.example(calibrations)}")
    wanted: Sequence[Mapping[str, Level]] = [asked]
    cheap: Sequence[float | None] = [None]
    if results is None:
        calibrated = _covering(calibrations, response, asked)
    else:
        calibrated, wanted, cheap = _new(inputs, calibrations, results, testbed or calibrations.cheap, response)
    at = [{name: level for name, level in cell.items() if name not in calibrated.fitted.levels} for cell in wanted]
    places = calibrated.predict(at, one_run=one_run)
    rows = words.predicted(calibrated, places, cheap).rows()
    lines = [words.belief(calibrations, calibrated), *words.assurance(calibrations, calibrated)]
    if results is None:
        lines.insert(0, words.place_sentence(calibrations, calibrated, places[0], one_run=one_run))
    else:
        lines += ["", table_text(rows)]
    lines += [*words.despite(calibrations), *remarks]
    write_rows({"predictions": rows}, calibrations.cautions, {}, calibration, style, "predictions", iter(lines), output)
    return codes.INCONCLUSIVE if all(place.refused for place in places) else codes.DONE


def _asked(words: Sequence[str]) -> Mapping[str, Level]:
    """Read ``--payload 64KiB --threads=3``. Raises TwinbedError for anything else."""
    levels: dict[str, Level] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, sign, level = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not name or not (sign or rest):
            raise TwinbedError(f"{word!r} is not --FACTOR LEVEL", advice="such as --payload 64KiB --threads 3")
        levels[name] = _level(level if sign else rest.pop(0))
    return levels


def _level(text: str) -> Level:
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        return text


def _covering(calibrations: Calibrations, response: str | None, asked: Mapping[str, Level]) -> Calibrated:
    from twinbed.analyses.calibrate.words import example

    calibrated = calibrations.of(response, asked)
    if calibrated is None:
        names = list(dict.fromkeys(other.response for other in calibrations.responses))
        if response is not None and response not in names:
            raise TwinbedError(f"the calibration has no response {response}", advice=instead(response, names))
        raise TwinbedError("the calibration does not cover these levels", advice=f"such as {example(calibrations)}")
    known = {factor.name for factor in calibrated.fitted.inputs} | calibrated.fitted.levels.keys()
    for name in asked:
        if name not in known:
            raise TwinbedError(f"the calibration has no factor {name}", advice=instead(name, sorted(known)))
    return calibrated


def _new(
    inputs: Inputs, calibrations: Calibrations, results: Path, testbed: str, response: str | None
) -> tuple[Calibrated, Sequence[Mapping[str, Level]], Sequence[float | None]]:
    """Return the calibration, the cells of new results, and their means. Raises TwinbedError if their passport differs from the
    calibration's."""
    from twinbed.analyses.calibrate.data import differences, passport
    from twinbed.analyses.calibrate.words import example

    tables = inputs.tables(results)
    if testbed not in tables.outline.testbeds:
        raise TwinbedError(
            f"{results} has no testbed {testbed!r}", advice=f"give --testbed; {instead(testbed, tables.outline.testbeds)}"
        )
    if other := list(differences(calibrations.passports[calibrations.cheap], passport(tables, testbed))):
        raise TwinbedError(
            f"{testbed} is not the testbed that was calibrated: {'; '.join(other[:4])}",
            advice="calibrate it again: the old calibration is not valid for it",
        )
    cells: dict[str, Mapping[str, Level]] = {}
    for record in tables.records:
        if record.settings["testbed"]["name"] == testbed:
            cells.setdefault(record.cell, {name: level for name, level in record.levels.items() if name != "testbed"})
    calibrated = next((own for own in calibrations.responses if response in (None, own.response)), None)
    names = [factor.name for factor in calibrated.fitted.inputs] if calibrated else []
    wanted = list({level_text(str(sorted(of.items(), key=str))): of for of in cells.values()}.values())
    if calibrated is None or not wanted or any(not of.keys() >= {*names} for of in wanted):
        raise TwinbedError(f"{results} does not vary {', '.join(names)}", advice=example(calibrations))
    kept = [
        of for of in wanted if all(level_text(of.get(name)) == level_text(at) for name, at in calibrated.fitted.levels.items())
    ]
    means = _means(tables, testbed, calibrated, kept)
    return calibrated, [{name: of[name] for name in (*calibrated.fitted.levels, *names)} for of in kept], means


def _means(
    tables: Tables, testbed: str, calibrated: Calibrated, wanted: Sequence[Mapping[str, Level]]
) -> Sequence[float | None]:
    """Return the geometric mean of each cell's runs; None without runs, or if one is not above 0."""
    from twinbed.observations.frame import of_tables

    frame = of_tables(tables, *calibrated.place).only("testbed", [testbed])
    names = list(wanted[0]) if wanted else []
    values: dict[tuple[Level, ...], list[float]] = {}
    columns = [[frame.column(name).levels[code] for code in frame.column(name).codes] for name in names]
    for value, *levels in zip(frame.y.tolist(), *columns, strict=True):
        values.setdefault(tuple(levels), []).append(value)
    cells = [values.get(tuple(of[name] for name in names), []) for of in wanted]
    return [math.exp(fmean(map(math.log, own))) if own and min(own) > 0 else None for own in cells]
