"""The steps of `twinbed run`, in order: plan, preflight, run, extract, compare, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed import design, registry
from twinbed.cli import on
from twinbed.cli.conclusion import Conclusion, made_of, page_of
from twinbed.cli.envelope import tell
from twinbed.cli.progress import watcher
from twinbed.cli.standing import results_folder
from twinbed.contracts import exit_codes as codes
from twinbed.contracts.site import Installed
from twinbed.design.time import expense
from twinbed.hosts.resources import allow_descriptors
from twinbed.image import build, find, probe_path
from twinbed.lab import added, needs, preflight, resources
from twinbed.lab.needs import PreflightFailed
from twinbed.lab.study import Ending, carry_out, chosen, due
from twinbed.model.amount import amount
from twinbed.model.error import TwinbedError
from twinbed.model.image import NO_IMAGE
from twinbed.render.terminal import Terminal
from twinbed.results.archive.layout import REPORT
from twinbed.results.folder import Folder
from twinbed.study.run import Run
from twinbed.study.study import Study
from twinbed.terminal import say

if TYPE_CHECKING:
    from twinbed.cli.interim import Deciding


@dataclass(frozen=True, slots=True)
class Volume:
    """Selects how much is printed."""

    quiet: bool = False
    """Only the verdict lines, the report's path and failures."""
    verbose: bool = False
    """A line for each phase."""


def run_study(
    study: Study,
    output: Path | None,
    only: Sequence[str],
    keep_going: bool,
    retry_failed: bool,
    report: bool,
    volume: Volume,
) -> int:
    """Run a study or continue it, compare and report; return the exit code."""
    console = Terminal(err=True, quiet=volume.quiet)
    runs = design.runs(study)
    results = results_folder(study, output)
    folder = Folder(results)
    with folder.locked():
        wanted = chosen(runs, only)
        if not wanted:
            raise TwinbedError(
                f"--only {' --only '.join(only)}: no run of {study.name} matches",
                advice="`twinbed plan STUDY --format csv` lists all runs",
            )
        deciding: Deciding | None = None
        reach = len(runs)
        if study.until:
            # Its statistics take longer to import than everything else of a study with nothing to run.
            from twinbed.cli.interim import Deciding

            deciding = Deciding(study, runs, folder, console.say)
            reach = deciding.reach()
        within = [run for run in wanted if run.block < reach]
        to_do = due(within, {run.id: folder.status(run.id) for run in within}, retry_failed)
        spread = on.fleet()
        installed = ready(study, to_do, results) if to_do and not spread else None
        # The largest run decides, made or not: programs on hosts inherit the limit.
        allow_descriptors(resources.descriptors(runs, registry.PLUGINS))
        if others := folder.count() - sum(folder.status(run.id) is not None for run in runs):
            console.say(f"{amount(others, 'run')} in {results} used other settings. They are kept but not compared.")
        if to_do:
            _warn_undecidable(study, console)
        keeping = None
        if not study.keep.everything:
            # It makes tables run by run, which take longer to import than everything else.
            from twinbed.cli.keeping import Keeping, thinner

            keeping = Keeping(folder, thinner(folder, study))
            keeping.of_earlier(runs)
        on_made = keeping.on_made if keeping else _all_is_kept
        with watcher(console, to_do, at_most=study.until is not None, phases=volume.verbose) as listener:
            if spread and to_do:
                from twinbed.cli.spreading import carried_out

                ending = carried_out(
                    spread,
                    study,
                    runs,
                    folder,
                    listener,
                    only=only,
                    keep_going=keep_going,
                    retry_failed=retry_failed,
                    interim=deciding,
                    on_made=on_made,
                )
            else:
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
                    goes_on=deciding.goes_on if deciding else None,
                    on_made=on_made,
                )
    for sentence in keeping.sentences() if keeping else ():
        console.say(sentence)
    _report_failures(ending)
    concluded = _conclude(results, console, report, ending, volume) if ending.complete else None
    tell(
        {
            "results": str(results),
            "runs": {"complete": ending.complete, "failed": ending.failed, "left": ending.left, "made": ending.made},
            "verdict": list(concluded.verdict) if concluded else [],
            "not_kept_bytes": keeping.bytes if keeping else 0,
            "report": str(results / REPORT) if concluded and report else None,
        }
    )
    return codes.SOME_FAILED if ending.failed or ending.left else codes.DONE


def _all_is_kept(run: str) -> None:
    """Do nothing after a run: the study keeps everything."""


def ready(study: Study, to_do: Sequence[Run], results: Path) -> Installed:
    """Check this machine and build the image if it is missing. Raises PreflightFailed with every problem."""
    used = {run.testbed.kind for run in to_do}
    in_process = {name for name in used if registry.PLUGINS.drivers[name].in_process}
    rates_known = all(run.topology.link.rate is not None for run in to_do)
    checks = [
        *needs.checks(to_do, registry.PLUGINS, builds=True),
        preflight.disk_space(results, expense(to_do).bytes, rates_known),
    ]
    problems = [check for check in checks if check.required and not check.works]
    if problems:
        raise PreflightFailed(study.name, problems, "`twinbed check` tests everything and changes nothing")
    tell_of = partial(say, err=True)
    image = (find() or build(say=tell_of)) if used - in_process else NO_IMAGE
    installed = Installed(probe_path(), image, added.built(to_do, registry.PLUGINS, tell_of))
    if problems := added.lacking(to_do, registry.PLUGINS, installed):
        raise PreflightFailed(study.name, problems, "correct the study's workload, then the same command")
    return installed


def _warn_undecidable(study: Study, console: Terminal) -> None:
    from twinbed.cli.undecidable import undecidable

    for limit in undecidable(study):
        console.say(limit.sentence(), "yellow")


def _report_failures(ending: Ending) -> None:
    if ending.failed:
        Terminal(err=True).say(
            f"{amount(ending.failed, 'run')} failed; their files are kept. To repeat them: --retry-failed", "red"
        )


def _conclude(results: Path, console: Terminal, report: bool, ending: Ending, volume: Volume) -> Conclusion:
    """Print the verdict and write the page, or reuse both if nothing changed since."""
    file = results / REPORT
    digest = made_of(results)
    kept = Conclusion.kept(results)
    if kept and kept.made_of == digest and (not report or (kept.page and kept.page == page_of(file))):
        planned = ending.complete + ending.failed + ending.left
        console.say(
            f"Nothing to do: {ending.complete} of {planned} runs are complete, and nothing changed since the last comparison."
        )
        say(*kept.verdict)
    else:
        kept = _compare(results, file if report else None, digest, console, volume)
    if report and volume.quiet:
        say(str(file))
    elif report:
        console.say(f"Report: {file}")
    return kept


def _compare(results: Path, file: Path | None, digest: str, console: Terminal, volume: Volume) -> Conclusion:
    """Extract tables, print the verdict, write the page to ``file``, and return what `_conclude` keeps."""
    from twinbed.cli.extraction import extracted
    from twinbed.render.output import write
    from twinbed.report.fitting import fitting
    from twinbed.report.further import further
    from twinbed.report.page import page
    from twinbed.report.styles import sections, study_tables
    from twinbed.report.terminal import conclusion, in_short

    def phase(name: str) -> None:
        if volume.verbose:
            console.say(name)

    phase("extract")
    store = extracted(results)
    phase("compare")
    compare = registry.analysis("compare")
    result = compare.run_on(on.executor(), store, compare.params())
    over_n = fitting(store)
    in_lines = tuple(in_short(result, over_n))
    if volume.quiet:
        say(*in_lines)
    else:
        conclusion(result, over_n, Terminal())
    if file:
        phase("report")
        text = page(store, result, sections(store), study_tables(store, result), over_n, further(store, file))
        write(text, file, below=results)
    concluded = Conclusion(digest, in_lines, page_of(file) if file else None)
    concluded.keep(results)
    return concluded
