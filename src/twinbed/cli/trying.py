"""`twinbed try`: one short run of a study's workload on containers, with the text that each metric was read from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.cli.run import stopping
from twinbed.cli.studyfile import read_study, study_options
from twinbed.contracts import exit_codes as codes
from twinbed.terminal import say

if TYPE_CHECKING:
    from twinbed.contracts.workload import Evidence
    from twinbed.model.event import Happened
    from twinbed.results.folder import Folder
    from twinbed.study.run import Run
    from twinbed.study.study import Study
    from twinbed.tree import Tree

CONTAINER = "container"
LINES = 8
"""Lines of a program's output that are shown of a failed run."""
TAIL_BYTES = 2000


@click.command("try")
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Keep the run in this results folder. Default: keep nothing."
)
@study_options
def command(study_file: Path, output: Path | None, profile: str | None, overrides: tuple[str, ...]) -> int:
    """Run the workload of STUDY once on a pair of containers, and show where each metric was read.

    \b
    Examples:
      twinbed try my.yaml
      twinbed try my.yaml -s workload.settings.requests=100

    The run takes the first level of each factor. It has no instruments, background load or link settings, so that it ends in
    seconds. Nothing is kept unless --output names a folder.

    Exit code 0: every metric was read; 1: the run failed; 3: this machine cannot run containers.
    """
    study = read_study(study_file, overrides, profile)
    try:
        with stopping(), _folder(output) as folder:
            return _try(study, study_file, folder)
    except KeyboardInterrupt:
        say("Interrupted: the machine is clean.", err=True)
        return codes.INTERRUPTED


@contextlib.contextmanager
def _folder(output: Path | None) -> Iterator[Folder]:
    from twinbed.hosts import scratch
    from twinbed.results.folder import Folder

    with contextlib.ExitStack() as stack:
        folder = Folder(output or stack.enter_context(scratch.folder()) / "results")
        stack.enter_context(folder.locked())
        yield folder


def _try(study: Study, study_file: Path, folder: Folder) -> int:
    from twinbed import registry
    from twinbed.cli.envelope import tell
    from twinbed.cli.run_study import ready
    from twinbed.lab.study import make, write_study
    from twinbed.model.amount import amount
    from twinbed.model.run import Phase, Status

    run = trial(study)
    installed = ready(study, [run], folder.path)
    folder.write("study.yaml", study.source)
    write_study(folder, study, [run])
    ended = make(run, registry.PLUGINS, folder, installed, lambda event: None)
    artifacts = folder.runs / run.id / "artifacts"
    evidence = _evidence(run, artifacts, failed=ended.status is not Status.COMPLETE)
    tell(
        {
            "status": ended.status,
            "seconds": ended.seconds,
            "reason": ended.reason,
            "metrics": [
                {"metric": row.metric, "value": row.value, "unit": row.unit, "file": row.file, "read_from": row.text}
                for row in evidence
            ],
        }
    )
    if ended.failed_phase in (None, Phase.COLLECT):
        say(*_metrics(evidence))
        record = folder.record(run.id)
        say(*_events(record.events if record is not None else ()))
    if ended.status is Status.COMPLETE:
        read = "every metric was read" if evidence else "the workload declares where none of its metrics is read"
        say("", f"The run took {ended.seconds:.1f} s; {read}.", f"Next: twinbed plan {study_file}")
        return codes.DONE
    unread = sum(row.value is None for row in evidence) if ended.failed_phase is Phase.COLLECT else 0
    reason = f"{amount(unread, 'metric')} could not be read." if unread else f"{ended.failed_phase}: {ended.reason}"
    say("", *f"The run failed: {reason}".split("\n"), "", *_output(folder.tree, run))
    say("", f"Correct {study_file}, then: twinbed try {study_file}")
    return codes.SOME_FAILED


def trial(study: Study) -> Run:
    """Return the run that tries a study: its first cell with a container, else its first cell, on containers."""
    from twinbed import registry
    from twinbed.model.topology import Topology
    from twinbed.study.run import Choice

    cell = next((cell for cell in study.cells if cell.testbed.kind == CONTAINER), None)
    if cell is None:
        first = study.cells[0]
        container = Choice(CONTAINER, registry.PLUGINS.drivers[CONTAINER].params())
        cell = replace(first, testbed_name=CONTAINER, testbed=container, levels={**first.levels, "testbed": CONTAINER})
    run = cell.run(replicate=0, block=0, position=0, seed=study.seed)
    return replace(run, topology=run.workload.params.hosts_on(Topology()), instruments={}, backgrounds={})


def _evidence(run: Run, artifacts: Path, *, failed: bool) -> Sequence[Evidence]:
    """Return where metrics were read; of a failed run what there is, without metrics whose file is missing."""
    from twinbed import registry
    from twinbed.contracts.extracted import UNREADABLE
    from twinbed.contracts.workload import Evidence

    workload = registry.PLUGINS.workloads[run.workload.kind]
    try:
        evidence = workload.evidence(run.workload.params, artifacts)
        if not evidence and not failed:
            values = workload.parse(run.workload.params, artifacts).values
            evidence = [Evidence(value.host, value.metric, value.value, value.unit, "", "") for value in values]
    except UNREADABLE:
        if not failed:
            raise
        return ()
    return evidence


def _metrics(evidence: Sequence[Evidence]) -> Iterator[str]:
    rows = [
        (row.metric, "not read" if row.value is None else f"{row.value:.6g} {row.unit}", row.file, row.text) for row in evidence
    ]
    widths = [max((len(row[at]) for row in rows), default=0) for at in (0, 1)]
    for metric, value, file, text in rows:
        yield f"{metric:<{widths[0]}}  {value:<{widths[1]}}  {f'{file}: ' if file else ''}{text}".rstrip()


def _events(events: Sequence[Happened]) -> Iterator[str]:
    for event in events:
        times = f"begun at {event.begun_s:.3f} s, in force at {event.in_force_s:.3f} s"
        yield f"{event.action} {event.host}: {times} ({event.found})"


def _output(tree: Tree, run: Run) -> Iterator[str]:
    """Yield the last lines of each program's output."""
    below = f"runs/{run.id}/artifacts"
    for name, status in tree.files(below):
        if not status.st_size or not name.endswith((".txt", ".out", ".err")):
            continue
        with tree.open(f"{below}/{name}") as file:
            file.seek(max(0, status.st_size - TAIL_BYTES))
            lines = file.read(TAIL_BYTES).decode(errors="replace").strip().splitlines()
        yield f"{name}:"
        yield from (f"    {line}" for line in lines[-LINES:])
