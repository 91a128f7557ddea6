"""`twinbed run`: carry a study out, or go on with it; then compare and report."""

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
@click.option("--profile", metavar="NAME", help="With the changes that STUDY lists below profiles.NAME; results/<study>-NAME.")
@click.option(
    "-s",
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a setting of the study, such as replicates=2.",
)
@click.option(
    "--only", multiple=True, metavar="RUN|FACTOR=LEVEL", help="Only these runs: the beginning of an id, or testbed=virtio."
)
@click.option("--keep-going/--stop-at-failure", default=True, help="Go on after a failed run (default), or stop at the first.")
@click.option("--retry-failed", is_flag=True, help="Make failed runs again; what they left is kept in failed/.")
@click.option(
    "--on",
    metavar="EXECUTOR",
    help="Machines that make the runs: tcp://SCHEDULER of dask, or a file with a cluster. docs/scale.md",
    expose_value=False,
    callback=keep_for_runs,
)
@insecure
@click.option("--report/--no-report", default=True, help="Write report.html at the end (default).")
@ssh_config.option
@click.option("-q", "--quiet", is_flag=True, help="Print the verdict lines and the report's path alone, and what failed.")
@click.option("-v", "--verbose", is_flag=True, help="Print a line a phase, in place of a bar.")
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
    """Carry out STUDY, or go on with it: what is complete is never made again.

    \b
    Examples:
      twinbed run studies/quickstart.yaml
      twinbed run studies/quickstart.yaml -s replicates=2 --only testbed=virtio
      twinbed run studies/nic-survey.yaml --profile quick

    Interrupt it at any time, even with SIGKILL: at most the run in flight is lost, nothing stays behind on the machine, and
    the same command goes on.  Exit code 0: all planned runs complete; 1: some failed; 3: this machine cannot do it.
    """
    from twinbed.cli.stopping import stopping
    from twinbed.cli.studyfile import read_study

    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose exclude each other")
    try:
        study = read_study(study_file, overrides, profile)
        # Only now, so that what is wrong in the file is said before libraries are loaded that only a run needs.
        from twinbed.cli.run_study import Telling, run_study

        with stopping():
            return run_study(study, output, only, keep_going, retry_failed, report, Telling(quiet, verbose))
    except KeyboardInterrupt:
        again = " ".join(["twinbed", *sys.argv[1:]])
        say("", f"Interrupted: everything is cleaned up, complete runs are kept. Go on with: {again}", err=True)
        return codes.INTERRUPTED
