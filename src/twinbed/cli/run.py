"""`twinbed run`: run a study or continue it; then compare and report."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from twinbed.cli import ssh_config
from twinbed.cli.on import insecure, keep_for_runs
from twinbed.contracts import exit_codes as codes
from twinbed.terminal import say


@click.command(name="run")
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Results folder. Default: results/<study>.")
@click.option(
    "--profile", metavar="NAME", help="Apply the changes in profiles.NAME of STUDY; results go to results/<study>-NAME."
)
@click.option(
    "-s",
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of STUDY, such as replicates=2.",
)
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
@ssh_config.option
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
    from twinbed.cli.stopping import stopping
    from twinbed.cli.studyfile import read_study

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
