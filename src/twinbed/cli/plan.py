"""``twinbed plan``: what a study will do, before anything is done."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

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
"""Runs of a block that are shown; a longer block is cut. JSON and CSV have everything."""


_COMPARISONS = {
    Pairing.PAIRED: "paired within blocks: what shifts a whole block cancels",
    Pairing.INDEPENDENT: "of independent runs",
}


@click.command("plan")
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@click.option("--profile", metavar="NAME", help="With the changes that STUDY lists below profiles.NAME.")
@click.option(
    "-s",
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a setting of the study, such as replicates=2, workload.duration=1s or factors.payload=[500B].",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Results folder, as of run. Default: results/<study>.")
@click.option(
    "--pilot",
    metavar="RESULTS",
    type=click.Path(path_type=Path),
    help="Results of a few replicates of STUDY: say how many of them reach a verdict.",
)
@click.option(
    "--multifidelity",
    metavar="PILOT",
    type=click.Path(path_type=Path),
    help="Results of STUDY with few draws on every testbed: say how many draws on which testbed are best.",
)
@click.option("--format", "style", type=click.Choice(STYLES), default="text", show_default=True, help="How to print it.")
def command(
    study_file: Path,
    profile: str | None,
    overrides: tuple[str, ...],
    output: Path | None,
    pilot: Path | None,
    multifidelity: Path | None,
    style: str,
) -> None:
    """Show the cells of STUDY, the order of its runs, and the time and disk they will take. Nothing is run.

    The time is an estimate. The disk is an upper bound: captures of links that are full all the time. Below the plan is said
    what so few replicates cannot show, whatever they measure, and how many can; what `twinbed check` would refuse on this
    machine, as far as that is told in a few seconds and without asking others; and what `run` would go on with.
    With --pilot: how many replicates show each headline metric to be equivalent or different, with 80 and 90 % power, and what
    that takes; docs/planning.md says how that is worked out.
    With --multifidelity: how many draws of uncertain inputs on which testbed give the most precise mean of the reference in the
    time that STUDY takes, against plain Monte Carlo; or why no mix pays (docs/multifidelity.md).

    \b
    Examples:
      twinbed plan studies/quickstart.yaml
      twinbed plan studies/quickstart.yaml -s replicates=20      what would 20 replicates cost?
      twinbed plan studies/quickstart.yaml --format csv > order.csv
      twinbed plan studies/quickstart.yaml --pilot results/quickstart
      twinbed plan uncertain.yaml --multifidelity results/pilot

    Exit code 0: the study is right; 2: it is not, and every problem is listed; 3: it is right, and some of its cells do not fit
    on this machine (memory, processes, file descriptors), which is said below the plan, with how many pairs would.
    """
    from twinbed import design, registry
    from twinbed.cli.standing import progress
    from twinbed.cli.studyfile import read_study
    from twinbed.cli.undecidable import undecidable
    from twinbed.lab.needs import PreflightFailed, quick

    if pilot is not None and multifidelity is not None:
        raise click.UsageError("--pilot or --multifidelity, not both")
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
            cannot = [asdict(each) for each in undecidable(study)]
            refusals = [_refusal(check) for check in (*refused, *here.refused)]
            about = {"refused": refusals, "untried": list(here.untried), "results": made.to_json()}
            print_json({**_as_json(study, runs), **about, "undecidable": cannot})
        else:
            _print_text(study, runs)
            lines = [*_machine_lines(here), made.sentence()]
            if made.due and not refused and not here.refused:
                lines.append(f"Make them: {_run(study_file, profile, overrides, output)}")
            say("", *lines)
    if refused:
        raise PreflightFailed(study.name, refused, "the plan holds for a machine with more")


def _run(study_file: Path, profile: str | None, overrides: Sequence[str], output: Path | None) -> str:
    """The command that does what was planned."""
    options = [*(["--profile", profile] if profile else []), *(part for each in overrides for part in ("-s", each))]
    options += ["-o", str(output)] if output else []
    return shlex.join(["twinbed", "run", str(study_file), *options])


def _refused(study: Study) -> Sequence[Check]:
    """What does not fit on this machine."""
    from twinbed import registry
    from twinbed.hosts.resources import available
    from twinbed.lab import resources

    return resources.checks(_of_cells(study), registry.PLUGINS, available())


def _of_cells(study: Study) -> list[Run]:
    """A run of each cell."""
    return [cell.run(replicate=0, block=0, position=0) for cell in study.cells]


def _machine_lines(here: Quick) -> Iterator[str]:
    """What would be refused on this machine, a line each, with the mend."""
    for check in here.refused:
        found = textwrap.shorten(check.found, _REASON, placeholder=" ...")
        yield f"Not on this machine: {check.what}: {found}" + (f"; mend: {check.mend}" if check.mend else "")
    for what in here.untried:
        yield f"Not tried: {what} (`twinbed check` does)"
    if not here.refused and not here.untried:
        yield "This machine has all that the study needs."


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
        about = {"testbeds": mix.testbed_rows(), "plans": mix.rows(), "refusal": mix.refusal or None}
        print_json({**_as_json(study, runs), "multifidelity": {**about, "samples": mix.samples(mix.best)}})
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


def _print_head(study: Study, runs: Sequence[Run]) -> None:
    from twinbed import design
    from twinbed.model.units import format_share

    expense = design.expense(runs)
    until = study.until
    if until is None:
        say(
            f"{study.name}: {amount(len(study.cells), 'cell')} x {amount(study.replicates, 'replicate')} = "
            f"{amount(len(runs), 'run')}, "
            f"about {clock(expense.seconds)}, at most {_disk(expense.bytes)}"
        )
    else:
        least = design.expense(run for run in runs if run.block < until.least)
        say(
            f"{study.name}: {amount(len(study.cells), 'cell')} x {until.least} to {amount(until.most, 'replicate')} = "
            f"{len(study.cells) * until.least} to {len(runs)} runs, "
            f"about {clock(least.seconds)} to {clock(expense.seconds)}, at most {_disk(expense.bytes)}"
        )
        budget = f", or {clock(until.budget)} are spent" if until.budget is not None else ""
        blocks = ", ".join(map(str, design.interim_blocks(until)))
        say(f"looks       after {blocks} replicates, until every headline verdict is reached{budget}")
    say(f"reference   {study.reference} ({study.reference_reason})")
    say(f"margin      {format_share(study.margin)}: what differs by less counts as equivalent")
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
        say(f"keep        {study.keep}: that is left of the disk above, of which a run takes at most {_disk(largest)}")


def _print_text(study: Study, runs: Sequence[Run]) -> None:
    from twinbed import design
    from twinbed.cli.undecidable import undecidable
    from twinbed.model.units import format_duration

    _print_head(study, runs)
    say("")
    cells = []
    for number, cell in enumerate(study.cells, start=1):
        one = design.run_expense(cell.run(replicate=0, block=0, position=0))
        cells.append(
            {
                "cell": number,
                **{name: _level(level) for name, level in cell.levels.items()},
                "time of a run": format_duration(round(one.seconds, 1)),
                "disk at most": _disk(one.bytes),
            }
        )
    print_table(cells, title="Cells")
    say("", "Order of runs, by cell")
    numbers = {tuple(cell.levels.items()): number for number, cell in enumerate(study.cells, start=1)}
    blocks: dict[int, list[int]] = {}
    for run in runs:
        blocks.setdefault(run.block, []).append(numbers[tuple(run.levels.items())])
    for block, order in list(blocks.items())[:_BLOCKS_SHOWN]:
        more = f" ... and {len(order) - _RUNS_SHOWN} more" if len(order) > _RUNS_SHOWN else ""
        say(f"block {block + 1}: {' '.join(str(number) for number in order[:_RUNS_SHOWN])}{more}")
    if len(blocks) > _BLOCKS_SHOWN:
        say(f"... and {len(blocks) - _BLOCKS_SHOWN} more blocks (--format csv lists every run)")
    for each in undecidable(study):
        say("", f"Too few replicates to show {each.sentence()}.")
    say("", "Are these replicates enough? --pilot RESULTS says, from the results of a few (docs/planning.md).")


def _level(level: Level) -> Level:
    return "null" if level is None else level


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _disk(size_bytes: int) -> str:
    """Rounded up, with a decimal prefix."""
    for factor, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes} B"
