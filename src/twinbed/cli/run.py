"""`twinbed run`: run a study or continue it; then compare and report."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import click

from twinbed.cli.on import insecure, keep_for_runs
from twinbed.cli.studyfile import read_study, ssh_config_option, study_options
from twinbed.contracts import exit_codes as codes
from twinbed.terminal import say


@click.command(name="run")
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Results folder. Default: results/<study>.")
@study_options
@click.option(
    "--only", multiple=True, metavar="RUN|FACTOR=LEVEL", help="Make only these runs: the beginning of an id, or testbed=virtio."
)
@click.option(
    "--keep-going/--stop-at-failure", default=True, help="Continue after a failed run (default), or stop at the first."
)
@click.option("--retry-failed", is_flag=True, help="Repeat failed runs; their files are moved to failed/.")
@click.option(
    "--on",
    metavar="EXECUTOR",
    help="Make the runs on tcp://SCHEDULER of dask, or on the cluster in a file (docs/scale.md).",
    expose_value=False,
    callback=keep_for_runs,
)
@insecure
@click.option("--report/--no-report", default=True, help="Write report.html at the end (default), or not.")
@ssh_config_option
@click.option("-q", "--quiet", is_flag=True, help="Print only failures, the verdict lines and the report's path.")
@click.option("-v", "--verbose", is_flag=True, help="Print a line for each phase, in place of a bar.")
def command(
    study_file: Path,
    output: Path | None,
    profile: str | None,
    overrides: tuple[str, ...],
    only: tuple[str, ...],
    keep_going: bool,
    retry_failed: bool,
    report: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Run STUDY or continue it, compare its testbeds, and write a report.

    \b
    Examples:
      twinbed run studies/quickstart.yaml
      twinbed run studies/quickstart.yaml -s replicates=2 --only testbed=virtio
      twinbed run studies/nic-survey.yaml --profile quick

    You may interrupt it at any time, even with SIGKILL. At most the current run is lost, nothing stays on the machine, and the
    same command continues. A complete run is never repeated.

    Exit code 0: all planned runs are complete; 1: some failed; 3: this machine cannot run the study.
    """

    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose exclude each other: give one of them")
    try:
        study = read_study(study_file, overrides, profile)
        # Only now, so that errors in the file are printed before libraries are loaded that only a run needs.
        from twinbed.cli.run_study import Volume, run_study

        with stopping():
            return run_study(study, output, only, keep_going, retry_failed, report, Volume(quiet, verbose))
    except KeyboardInterrupt:
        again = " ".join(["twinbed", *sys.argv[1:]])
        say("", f"Interrupted: the machine is clean, complete runs are kept. Continue: {again}", err=True)
        return codes.INTERRUPTED


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FIRST = b"\nstopping: the current run is being removed ...\n"
AGAIN = b"\nstill stopping: the clean-up takes a moment (SIGKILL ends at once and leaves nothing behind either)\n"
_STDERR = 2


@contextlib.contextmanager
def stopping() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first signal, and only answer later ones. Ignored signals (nohup) stay ignored."""
    interrupted = False

    def answer(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        again, interrupted = interrupted, True
        # Not by print, which the signal may have interrupted.
        with contextlib.suppress(OSError):
            os.write(_STDERR, AGAIN if again else FIRST)
        if not again:
            raise KeyboardInterrupt

    before = {number: handler for number in SIGNALS if (handler := signal.getsignal(number)) != signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, answer)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
