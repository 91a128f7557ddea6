"""``twinbed plan``: what a study will do, before anything is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinbed.cli.output import STYLES, print_json, print_table

if TYPE_CHECKING:
    from twinbed.model.run import Run
    from twinbed.model.study import Study

_BLOCKS_SHOWN = 3
_RUNS_SHOWN = 20
"""Of a block; what is longer is folded. JSON and CSV have everything."""


@click.command("plan")
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@click.option(
    "-s",
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a setting of the study, such as replicates=2, workload.duration=1s or factors.payload=[500B].",
)
@click.option("--format", "style", type=click.Choice(STYLES), default="text", show_default=True, help="How to print it.")
def command(study_file: Path, overrides: tuple[str, ...], style: str) -> None:
    """Show the cells of STUDY, the order of its runs, and the time and disk they will take. Nothing is run.

    The time is an estimate. The disk is an upper bound: captures of links that are full all the time.

    \b
    Examples:
      twinbed plan studies/quickstart.yaml
      twinbed plan studies/quickstart.yaml -s replicates=20      what would 20 replicates cost?
      twinbed plan studies/quickstart.yaml --format csv > order.csv

    Exit code 0: the study is right; 2: it is not, and every problem is listed.
    """
    from twinbed import design
    from twinbed.cli.studyfile import read_study

    study = read_study(study_file, overrides)
    runs = design.runs(study)
    if style == "json":
        print_json(_as_json(study, runs))
    elif style == "csv":
        print_table([_row(run) for run in runs], style)
    else:
        _print_text(study, runs)


def _row(run: Run) -> dict[str, Any]:
    return {
        "position": run.position,
        "block": run.block,
        "replicate": run.replicate,
        "run": run.id,
        "cell": run.cell,
        **run.levels,
    }


def _as_json(study: Study, runs: Sequence[Run]) -> dict[str, Any]:
    from twinbed import design

    expense = design.expense(runs)
    return {
        **study.to_json(),
        "runs": [{**_row(run), "levels": dict(run.levels)} for run in runs],
        "estimate": {"seconds": expense.seconds, "bytes_at_most": expense.bytes},
    }


def _print_text(study: Study, runs: Sequence[Run]) -> None:
    from twinbed import design
    from twinbed.model.units import format_duration, format_share

    expense = design.expense(runs)
    click.echo(
        f"{study.name}: {len(study.cells)} cells x {study.replicates} replicates = {len(runs)} runs, "
        f"about {_clock(expense.seconds)}, at most {_disk(expense.bytes)}"
    )
    click.echo(f"reference   {study.reference} ({study.reference_reason})")
    click.echo(f"margin      {format_share(study.margin)}: what differs by less counts as equivalent")
    click.echo(f"confidence  {format_share(study.confidence)}")
    click.echo(f"order       {study.order.value}, seed {study.seed}")
    instruments = dict.fromkeys(name for cell in study.cells for name in cell.instruments)
    click.echo(f"instruments {', '.join(instruments) or 'none'}\n")
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
    click.echo("\nOrder of runs, by cell")
    numbers = {tuple(cell.levels.items()): number for number, cell in enumerate(study.cells, start=1)}
    blocks: dict[int, list[int]] = {}
    for run in runs:
        blocks.setdefault(run.block, []).append(numbers[tuple(run.levels.items())])
    for block, order in list(blocks.items())[:_BLOCKS_SHOWN]:
        more = f" ... and {len(order) - _RUNS_SHOWN} more" if len(order) > _RUNS_SHOWN else ""
        click.echo(f"block {block + 1}: {' '.join(str(number) for number in order[:_RUNS_SHOWN])}{more}")
    if len(blocks) > _BLOCKS_SHOWN:
        click.echo(f"... and {len(blocks) - _BLOCKS_SHOWN} more blocks (--format csv lists every run)")


def _level(level: Any) -> Any:
    return "null" if level is None else level


def _clock(seconds: float) -> str:
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
