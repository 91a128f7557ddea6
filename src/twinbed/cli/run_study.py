"""What `twinbed run` does with a study, in order: plan, preflight, run, extract, compare, report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from twinbed import design, registry
from twinbed.cli import needs
from twinbed.cli.interim import Deciding
from twinbed.cli.progress import watcher
from twinbed.cli.refusal import PreflightFailed
from twinbed.cli.standing import results_folder
from twinbed.cli.undecidable import undecidable
from twinbed.contracts import exit_codes as codes
from twinbed.contracts.site import Installed
from twinbed.design.time import expense
from twinbed.hosts.resources import allow_descriptors
from twinbed.image import build, find, probe_path
from twinbed.lab import preflight, resources
from twinbed.lab.study import Ending, carry_out, chosen, due
from twinbed.model.error import TwinbedError
from twinbed.model.image import NO_IMAGE
from twinbed.results.folder import Folder
from twinbed.study.run import Run
from twinbed.study.study import Study


def run_study(
    study: Study,
    output: Path | None,
    only: Sequence[str],
    keep_going: bool,
    retry_failed: bool,
    report: bool,
) -> int:
    """Returns the exit code."""
    console = Console(stderr=True)
    runs = design.runs(study)
    results = results_folder(study, output)
    folder = Folder(results)
    with folder.locked():
        wanted = chosen(runs, only)
        if not wanted:
            raise TwinbedError(
                f"--only {' --only '.join(only)}: no run of {study.name} matches", advice="`twinbed plan` lists them"
            )
        deciding = Deciding(study, runs, folder, lambda text: console.print(text, highlight=False, soft_wrap=True))
        reach = deciding.reach() if study.until else len(runs)
        within = [run for run in wanted if run.block < reach]
        to_do = due(within, {run.id: folder.status(run.id) for run in within}, retry_failed)
        installed = _ready(study, to_do, results) if to_do else None
        # As many as the largest run needs, whichever are still to be made: programs on hosts inherit it.
        allow_descriptors(resources.descriptors(runs, registry.PLUGINS))
        if others := folder.count() - sum(folder.status(run.id) is not None for run in runs):
            console.print(
                f"{others} runs in {results} are of other settings than {study.name} has now: kept, but left out of "
                "comparisons.",
                highlight=False,
                soft_wrap=True,
            )
        for each in undecidable(study) if to_do else ():
            console.print(f"Too few replicates to show {each.sentence()}.", style="yellow", highlight=False, soft_wrap=True)
        with watcher(console, to_do, at_most=study.until is not None) as listener:
            ending = carry_out(
                study,
                runs,
                registry.PLUGINS,
                folder,
                installed,
                listener,
                only=only,
                keep_going=keep_going,
                retry_failed=retry_failed,
                goes_on=deciding.goes_on if study.until else None,
            )
    _tell_failures(ending, console)
    if ending.complete:
        _conclude(results, console, report)
    return codes.SOME_FAILED if ending.failed or ending.left else codes.DONE


def _ready(study: Study, to_do: Sequence[Run], results: Path) -> Installed:
    """Preflight, then the image, built where it is not there yet. Raises PreflightFailed with every problem."""
    used = {run.testbed.kind for run in to_do}
    in_process = {name for name in used if registry.PLUGINS.drivers[name].in_process}
    rates_known = all(run.topology.link.rate is not None for run in to_do)
    checks = [*needs.checks(to_do, builds=True), preflight.disk_space(results, expense(to_do).bytes, rates_known)]
    problems = [check for check in checks if check.required and not check.works]
    if problems:
        raise PreflightFailed(study.name, problems, "`twinbed check` tries everything and changes nothing")
    say = partial(click.echo, err=True)
    return Installed(probe_path(), (find() or build(say=say)) if used - in_process else NO_IMAGE)


def _tell_failures(ending: Ending, console: Console) -> None:
    if ending.failed:
        console.print(
            f"{ending.failed} failed; each kept what it left in its folder. Make them again with --retry-failed.",
            style="red",
            highlight=False,
            soft_wrap=True,
        )


def _conclude(results: Path, console: Console, report: bool) -> None:
    """Tables, the verdict on standard output, the page."""
    from twinbed.cli.extraction import extracted
    from twinbed.render import terminal
    from twinbed.render.output import write
    from twinbed.report.page import page
    from twinbed.report.scaling.analysis import scaling
    from twinbed.report.styles import sections, study_tables
    from twinbed.report.terminal import conclusion

    store = extracted(results)
    compare = registry.analysis("compare")
    result = compare.run(store, compare.params())
    over_n = scaling(store)
    conclusion(result, over_n, terminal.console())
    if report:
        file = results / "report.html"
        write(page(store, result, sections(store), study_tables(store, result), over_n), file)
        console.print(f"Report: {file}", highlight=False, soft_wrap=True)
