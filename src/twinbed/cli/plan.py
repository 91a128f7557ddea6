"""``twinbed plan``: show what a study will do, before anything is done."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.cli.studyfile import read_study, study_options
from twinbed.model.amount import amount
from twinbed.model.result import Pairing
from twinbed.model.run import Level
from twinbed.render.rows import STYLES, print_json, print_table
from twinbed.terminal import say

if TYPE_CHECKING:
    from twinbed.contracts.check import Check
    from twinbed.lab.needs import Quick
    from twinbed.study.run import Run
    from twinbed.study.study import Study

_BLOCKS_SHOWN = 3
_REASON = 300
"""Characters of a reason at most; JSON has all of it."""
_RUNS_SHOWN = 20
"""Runs of a block that are shown; JSON and CSV have all."""
_CELLS_SHOWN = 12
"""Cells that are shown; JSON has all."""


_COMPARISONS = {
    Pairing.PAIRED: "paired within blocks, so that a disturbance of a whole block cancels",
    Pairing.INDEPENDENT: "between independent runs",
}


@click.command("plan")
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@study_options
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Results folder of `twinbed run`. Default: results/<study>."
)
@click.option(
    "--pilot",
    metavar="RESULTS",
    type=click.Path(path_type=Path),
    help="Results of a few replicates of STUDY, to estimate how many replicates reach a verdict.",
)
@click.option(
    "--multifidelity",
    metavar="PILOT",
    type=click.Path(path_type=Path),
    help="Results of STUDY with few draws on every testbed, to choose how many to make on each.",
)
@click.option("--format", "style", type=click.Choice(STYLES), default="text", show_default=True, help="Format to print.")
def command(
    study_file: Path,
    profile: str | None,
    overrides: tuple[str, ...],
    output: Path | None,
    pilot: Path | None,
    multifidelity: Path | None,
    style: str,
) -> None:
    """Show the cells, the order of runs, the time and the disk of STUDY; nothing is run.

    \b
    Examples:
      twinbed plan studies/quickstart.yaml
      twinbed plan studies/quickstart.yaml -s replicates=20      what would 20 replicates cost?
      twinbed plan studies/quickstart.yaml --pilot results/quickstart

    The time is an estimate. The disk is an upper limit: captures of links that are full all the time. The plan also shows
    what this few replicates can never show, problems that quick local checks found, and runs that exist already.

    With --pilot: how many replicates show each headline metric to be equivalent or different with 80 and 90 % power, and
    their time and disk (docs/planning.md).

    With --multifidelity: how many draws of uncertain inputs on each testbed estimate the reference's mean most precisely in
    the time of STUDY, compared with plain Monte Carlo (docs/multifidelity.md).

    Exit code 0: the study is valid; 2: it is not, and every problem is listed; 3: some cells do not fit on this machine.
    """
    from twinbed import design, registry
    from twinbed.cli.standing import progress
    from twinbed.cli.undecidable import undecidable
    from twinbed.lab.needs import PreflightFailed, quick

    if pilot is not None and multifidelity is not None:
        raise click.UsageError("--pilot and --multifidelity exclude each other: give one of them")
    study = read_study(study_file, overrides, profile)
    runs = design.runs(study)
    refused = _refused(study)
    if pilot is not None:
        _plan_by(study, runs, pilot, style)
    elif multifidelity is not None:
        _mix_by(study, runs, multifidelity, style)
    elif style == "csv":
        print_table([_row(run) for run in runs], style)
    else:
        here, made = quick(_of_cells(study), registry.PLUGINS), progress(study, runs, output)
        if style == "json":
            cannot = [asdict(limit) for limit in undecidable(study)]
            refusals = [_refusal(check) for check in (*refused, *here.refused)]
            machine = {"refused": refusals, "untried": list(here.untried), "results": made.to_json()}
            print_json({**_as_json(study, runs), **machine, "undecidable": cannot})
        else:
            _print_text(study, runs, [*_machine_lines(here), made.sentence()])
            options = _options(profile, overrides)
            if made.due and not refused and not here.refused:
                run = [*options, *(["-o", str(output)] if output else [])]
                say("", f"Next: {shlex.join(['twinbed', 'run', str(study_file), *run])}")
            pilot_line = shlex.join(["twinbed", "plan", str(study_file), *options, "--pilot", str(made.folder)])
            if made.complete or made.others:
                say("", f"Are these replicates enough? {pilot_line}")
    if refused:
        raise PreflightFailed(study.name, refused, "run it on a machine with more, or choose fewer pairs")


def _options(profile: str | None, overrides: Sequence[str]) -> list[str]:
    return [*(["--profile", profile] if profile else []), *(part for override in overrides for part in ("-s", override))]


def _refused(study: Study) -> Sequence[Check]:
    from twinbed import registry
    from twinbed.hosts.resources import available
    from twinbed.lab import resources

    return resources.checks(_of_cells(study), registry.PLUGINS, available())


def _of_cells(study: Study) -> list[Run]:
    return [cell.run(replicate=0, block=0, position=0) for cell in study.cells]


def _machine_lines(here: Quick) -> Iterator[str]:
    """Yield a line for each problem of this machine, with its remedy, and for what was not tested."""
    for check in here.refused:
        problem = textwrap.shorten(check.found, _REASON, placeholder=" ...")
        yield f"Not ready: {check.what}: {problem}" + (f"; fix: {check.mend}" if check.mend else "")
    for what in here.untried:
        yield f"Not tested: {what} (`twinbed check` tests them)"
    if not here.refused and not here.untried:
        yield "This machine is ready for the study."


def _refusal(check: Check) -> dict[str, str]:
    return {"what": check.what, "found": check.found, "mend": check.mend}


def _plan_by(study: Study, runs: Sequence[Run], results: Path, style: str) -> None:
    from twinbed.cli.pilot import Pilot

    planned = Pilot(study, results)
    if style == "json":
        print_json({**_as_json(study, runs), "pilot": {"comparisons": planned.rows(), "study": planned.cases()}})
    elif style == "csv":
        print_table(planned.rows(), style)
    else:
        _print_head(study, runs)
        planned.print_text(clock, _disk)


def _mix_by(study: Study, runs: Sequence[Run], results: Path, style: str) -> None:
    from twinbed.cli.mixing import Mix

    mix = Mix(study, results)
    if style == "json":
        facts = {"testbeds": mix.testbed_rows(), "plans": mix.rows(), "refusal": mix.refusal or None}
        print_json({**_as_json(study, runs), "multifidelity": {**facts, "samples": mix.samples(mix.best)}})
    elif style == "csv":
        print_table(mix.rows(), style)
    else:
        _print_head(study, runs)
        mix.print_text(clock)


def _row(run: Run) -> dict[str, object]:
    return {
        "position": run.position,
        "block": run.block,
        "replicate": run.replicate,
        "run": run.id,
        "cell": run.cell,
        **run.levels,
    }


def _as_json(study: Study, runs: Sequence[Run]) -> dict[str, object]:
    from twinbed import design

    expense = design.expense(runs)
    return {
        **study.to_json(),
        "runs": [{**_row(run), "levels": dict(run.levels)} for run in runs],
        "estimate": {"seconds": expense.seconds, "bytes_at_most": expense.bytes},
    }


def _print_head(study: Study, runs: Sequence[Run], answers: Sequence[str] = ()) -> None:
    from twinbed import design
    from twinbed.model.units import format_share

    expense = design.expense(runs)
    until = study.until
    if until is None:
        say(
            f"{study.name}: {amount(len(study.cells), 'cell')} x {amount(study.replicates, 'replicate')} = "
            f"{amount(len(runs), 'run')}, about {clock(expense.seconds)}, at most {_disk(expense.bytes)}"
        )
    else:
        least = design.expense(run for run in runs if run.block < until.least)
        say(
            f"{study.name}: {amount(len(study.cells), 'cell')} x {until.least} to {amount(until.most, 'replicate')} = "
            f"{len(study.cells) * until.least} to {len(runs)} runs, "
            f"about {clock(least.seconds)} to {clock(expense.seconds)}, at most {_disk(expense.bytes)}"
        )
    say(*answers, "")
    if until is not None:
        budget = f" or {clock(until.budget)} have passed" if until.budget is not None else ""
        blocks = ", ".join(map(str, design.interim_blocks(until)))
        say(f"interim     analyses after {blocks} replicates; the study ends when every headline metric has a verdict{budget}")
    say(f"reference   {study.reference} ({study.reference_reason}); the others are compared with it")
    say(f"margin      {format_share(study.margin)}: a smaller difference counts as equivalent")
    say(f"confidence  {format_share(study.confidence)}")
    say(f"order       {study.order.value}, seed {study.seed}")
    say(f"comparison  {_COMPARISONS[study.comparison]}")
    instruments = dict.fromkeys(name for cell in study.cells for name in cell.instruments)
    say(f"instruments {', '.join(instruments) or 'none'}")
    backgrounds = dict.fromkeys(name for cell in study.cells for name in cell.backgrounds)
    if backgrounds:
        say(f"background  {', '.join(backgrounds)}")
    if not study.keep.everything:
        largest = max(design.run_expense(run).bytes for run in runs)
        say(f"keep        {study.keep}: other artifacts are deleted after each run, which takes at most {_disk(largest)}")


def _print_text(study: Study, runs: Sequence[Run], answers: Sequence[str]) -> None:
    from twinbed import design
    from twinbed.cli.undecidable import undecidable
    from twinbed.model.units import format_duration

    limits = [limit.sentence() for limit in undecidable(study)]
    _print_head(study, runs, [*answers, *limits])
    say("")
    cells = []
    for number, cell in enumerate(study.cells[:_CELLS_SHOWN], start=1):
        expense = design.run_expense(cell.run(replicate=0, block=0, position=0))
        cells.append(
            {
                "cell": number,
                **{name: _level(level) for name, level in cell.levels.items()},
                "time of a run": format_duration(round(expense.seconds, 1)),
                "disk at most": _disk(expense.bytes),
            }
        )
    print_table(cells, title="Cells")
    if len(study.cells) > _CELLS_SHOWN:
        say(f"... and {len(study.cells) - _CELLS_SHOWN} more cells (--format json lists all)")
    say("", "Order of runs, by cell number")
    numbers = {tuple(cell.levels.items()): number for number, cell in enumerate(study.cells, start=1)}
    blocks: dict[int, list[int]] = {}
    for run in runs:
        blocks.setdefault(run.block, []).append(numbers[tuple(run.levels.items())])
    for block, order in list(blocks.items())[:_BLOCKS_SHOWN]:
        more = f" ... and {len(order) - _RUNS_SHOWN} more" if len(order) > _RUNS_SHOWN else ""
        say(f"block {block + 1}: {' '.join(str(number) for number in order[:_RUNS_SHOWN])}{more}")
    if len(blocks) > _BLOCKS_SHOWN:
        say(f"... and {amount(len(blocks) - _BLOCKS_SHOWN, 'more block')} (--format csv lists every run)")


def _level(level: Level) -> Level:
    return "null" if level is None else level


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _disk(size_bytes: int) -> str:
    """Return a size with a decimal prefix."""
    for factor, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes} B"
