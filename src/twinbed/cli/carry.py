"""What `twinbed run` does, in order: read, plan, preflight, run, extract, compare, report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from twinbed import design, registry
from twinbed.cli import exit as codes
from twinbed.cli.progress import watcher
from twinbed.image import build, find, probe_path
from twinbed.lab import preflight
from twinbed.lab.folder import Folder
from twinbed.lab.study import Ending, carry_out
from twinbed.model.error import TwinbedError
from twinbed.model.plugin import Check
from twinbed.model.run import Run
from twinbed.model.study import Study, load


class PreflightFailed(TwinbedError):
    """This machine cannot carry the study out."""

    exit_code = codes.PREFLIGHT


def carry(
    study_file: Path,
    output: Path | None,
    overrides: Sequence[str],
    only: Sequence[str],
    keep_going: bool,
    retry_failed: bool,
    report: bool,
) -> int:
    """Returns the exit code."""
    console = Console(stderr=True)
    study = read_study(study_file, overrides)
    runs = design.runs(study)
    results = output or Path("results") / study.study
    folder = Folder(results)
    with folder.locked():
        missing = [run for run in runs if folder.status(run.id) is None]
        if missing or retry_failed:
            _preflight(study, missing, results)
        image = (find() or build()) if missing or retry_failed else None
        with watcher(console, runs) as listener:
            ending = carry_out(
                study,
                runs,
                registry.PLUGINS,
                folder,
                image,
                probe_path() if image else None,
                listener,
                only=only,
                keep_going=keep_going,
                retry_failed=retry_failed,
            )
    _conclude(results, ending, console, report)
    return codes.SOME_FAILED if ending.failed or ending.left else codes.DONE
