"""The loop over a study's runs: finished runs are skipped, failures are recorded, and the study goes on.

It reports events to a listener: a line in the log, a bar on a terminal.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

import twinbed
from twinbed.contracts.bed import Facts
from twinbed.contracts.installed import requirements
from twinbed.contracts.plugins import Plugins
from twinbed.contracts.site import Installed, Site
from twinbed.hosts.hand_over import take_over
from twinbed.hosts.lab import reclaim
from twinbed.hosts.passport import own_cpus
from twinbed.image import Image
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.linkcheck import depends_on
from twinbed.links.layout import layout
from twinbed.model.json import loads
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.record import Artifact
from twinbed.model.run import Level, Phase, Status
from twinbed.model.tables import PlannedDocument
from twinbed.results.folder import Folder, failed_writes_are_clear
from twinbed.study.run import Run
from twinbed.study.study import Study
from twinbed.tree import Tree


@dataclass(frozen=True, slots=True)
class StudyBegan:
    total: int
    done: int
    at_once: int = 1
    """Machines that make runs at the same time."""


@dataclass(frozen=True, slots=True)
class PhaseBegan:
    run: Run
    phase: Phase


@dataclass(frozen=True, slots=True)
class RunEnded:
    run: Run
    status: Status
    seconds: float
    failed_phase: Phase | None
    reason: str | None
    machine: str = ""
    """The fleet's machine that made it."""


@dataclass(frozen=True, slots=True)
class MachineJoined:
    name: str
    machines: int
    """The number of machines now."""


@dataclass(frozen=True, slots=True)
class MachineLeft:
    name: str
    reason: str
    machines: int
    """The number of machines that remain."""


Event: TypeAlias = StudyBegan | PhaseBegan | RunEnded | MachineJoined | MachineLeft
Listener: TypeAlias = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Ending:
    """How many of the planned runs are complete, have failed (now or earlier), and remain to be made."""

    complete: int
    failed: int
    made: int
    left: int


def carry_out(
    study: Study,
    runs: Sequence[Run],
    plugins: Plugins,
    folder: Folder,
    installed: Installed | None,
    listener: Listener,
    *,
    only: Sequence[str] = (),
    keep_going: bool = True,
    retry_failed: bool = False,
    goes_on: Callable[[int], bool] | None = None,
    on_made: Callable[[str], None] = lambda run: None,
) -> Ending:
    """Make the missing runs, in the study's order, into ``folder``, which the caller has locked.

    ``installed`` may be None where nothing is missing.  ``only``: as for ``chosen``.  ``keep_going``: go on after a failure.
    ``goes_on``: returns, given a block's number, whether the study needs the next block. Runs of blocks that it does not need
    are neither planned nor counted.  ``on_made``: called with each run's id once the run is in the folder.
    """
    folder.write("study.yaml", study.source)
    wanted = chosen(runs, only)
    states = {run.id: folder.status(run.id) for run in wanted}
    listener(StudyBegan(len(wanted), len(wanted) - len(due(wanted, states, retry_failed))))
    made = 0
    reached: list[Run] = []
    stopped = False
    for block, members in groupby(runs, key=lambda run: run.block if goes_on else 0):
        fresh = list(members)
        reached += fresh
        to_do = due([run for run in fresh if run.id in states], states, retry_failed)
        if to_do:
            write_study(folder, study, reached)
        for run in to_do:
            assert installed is not None
            if states[run.id] is not None:
                folder.set_aside(run.id)
                folder.forget_link_check(run.cell)
            ended = make(run, plugins, folder, installed, listener)
            states[run.id] = ended.status
            made += 1
            listener(ended)
            folder.log({"run": run.id, "status": ended.status, "seconds": round(ended.seconds, 3), "reason": ended.reason})
            on_made(run.id)
            stopped = ended.status == Status.FAILED and not keep_going
            if stopped:
                break
        if stopped or (goes_on is not None and not goes_on(block)):
            break
    write_study(folder, study, reached)
    endings = [states[run.id] for run in reached if run.id in states]
    return Ending(endings.count(Status.COMPLETE), endings.count(Status.FAILED), made, endings.count(None))


def write_study(folder: Folder, study: Study, runs: Sequence[Run]) -> None:
    """Write study.json, with the planned runs."""
    planned = [_planned(run) for run in runs]
    for params in {id(run.workload.params): run.workload.params for run in runs}.values():
        folder.keep_own(params.own_files())
    decided_after = _decided_after(folder, study)
    after = {"exclude_decided_after": decided_after} if decided_after else {}
    folder.write("study.json", json.dumps({**study.to_json(), **after, "runs": planned}, indent=1) + "\n")


def _decided_after(folder: Folder, study: Study) -> int:
    """Return the number of runs that existed when the study began to exclude these cautions; 0 if it did from the start."""
    try:
        before = loads(folder.tree.read("study.json"))
        same = tuple(before.get("exclude_cautions", ())) == study.exclude_cautions
        return int(before.get("exclude_decided_after", 0)) if same else folder.count()
    except (OSError, ValueError, AttributeError, TypeError):
        return 0


def due(runs: Sequence[Run], states: Mapping[str, str | None], retry_failed: bool) -> list[Run]:
    """Return the runs that are still to be made, by their states in the results."""
    return [run for run in runs if states[run.id] is None or (retry_failed and states[run.id] == Status.FAILED)]


def make(run: Run, plugins: Plugins, folder: Folder, installed: Installed, listener: Listener, machine: str = "") -> RunEnded:
    """Make one run into ``folder``; ``machine`` is the name of this machine in a fleet."""
    unfinished = folder.begin(run.id)
    added = run.workload.params.added()
    image = None if plugins.drivers[run.testbed.kind].in_process else installed.image_for(added)
    site = Site(run.id, installed.probe, image or installed.image, unfinished / "artifacts", own_cpus(), run.seed, added=added)
    outcome = Outcome()
    started_s, started = time.time(), time.monotonic()
    failed_phase: Phase | None = None
    reason: str | None = None

    def on_phase(phase: Phase) -> None:
        listener(PhaseBegan(run, phase))
        folder.log({"run": run.id, "phase": phase})

    try:
        try:
            with failed_writes_are_clear(folder.path):
                execute(run, plugins, site, outcome, on_phase, _LinkChecks(folder))
        except RunFailed as failure:
            failed_phase, reason = failure.phase, failure.reason
        finally:
            reclaim(installed.probe, site.artifacts)
        with failed_writes_are_clear(folder.path):
            removed = take_over(site.artifacts, layout(run.topology).machines)
        if removed and failed_phase is None:
            failed_phase = Phase.COLLECT
            reason = f"artifacts must be plain files of limited size; others were removed: {', '.join(removed)}"
        if failed_phase is None:
            workload = plugins.workloads[run.workload.kind]
            reason = workload.unreadable(run.workload.params, site.artifacts) or None
            failed_phase = Phase.COLLECT if reason else None
        status = Status.FAILED if failed_phase else Status.COMPLETE
        record = run.record(
            status=status,
            started_s=started_s,
            phases=outcome.phases,
            failed_phase=failed_phase,
            reason=reason,
            cautions=tuple(outcome.cautions),
            artifacts=_artifacts(unfinished),
            twinbed=twinbed.__version__,
            lab=outcome.lab,
            start_skew_s=outcome.start_skew_s,
            clients=outcome.clients,
            drawn=outcome.drawn,
            programs=tuple(outcome.programs),
            events=tuple(outcome.events),
            machine=machine,
            plugins=requirements(run.plugins()),
        )
        folder.finish(unfinished, record, [asdict(item) for item in outcome.applied], _passport(outcome, image))
    except BaseException:
        folder.discard(unfinished)
        raise
    return RunEnded(run, status, time.monotonic() - started, failed_phase, reason, machine)


@dataclass(frozen=True, slots=True)
class _LinkChecks:
    """The link checks in the results folder, without those made with other settings."""

    folder: Folder

    def of(self, run: Run) -> LinkCheck | None:
        check = self.folder.link_check(run.cell)
        return check if check is not None and check.settings == depends_on(run) else None

    def keep(self, check: LinkCheck) -> None:
        self.folder.keep_link_check(check)


def _passport(outcome: Outcome, image: Image | None) -> dict[str, Facts]:
    passport: dict[str, Facts] = {place: dict(facts_of) for place, facts_of in outcome.passport.items()}
    if image is not None:
        layer = {"layer": image.layer} if image.layer else {}
        passport["image"] = {"digest": image.digest, **layer, "guest kernel": image.kernel_version, **image.packages}
    return passport


def _artifacts(folder: Path) -> list[Artifact]:
    files = sorted(Tree(folder).files("artifacts"), key=lambda file: file[0].split("/"))
    return [{"path": f"artifacts/{name}", "bytes": status.st_size} for name, status in files]


def _planned(run: Run) -> PlannedDocument:
    return {
        "id": run.id,
        "cell": run.cell,
        "levels": dict(run.levels),
        "replicate": run.replicate,
        "block": run.block,
        "position": run.position,
    }


def chosen(runs: Sequence[Run], only: Sequence[str]) -> list[Run]:
    """Return the runs that ``only`` names, or all where it is empty.

    An item is the beginning of an id, or factor=level. Levels of one factor are alternatives; all factors must match."""
    prefixes = tuple(item for item in only if "=" not in item)
    levels: dict[str, set[str]] = {}
    for item in only:
        factor, equals, level = item.partition("=")
        if equals:
            levels.setdefault(factor, set()).add(level)

    def matches(run: Run) -> bool:
        if prefixes and run.id.startswith(prefixes):
            return True
        return bool(levels) and all(
            factor in run.levels and _as_written(run.levels[factor]) in allowed for factor, allowed in levels.items()
        )

    return [run for run in runs if not only or matches(run)]


def _as_written(level: Level) -> str:
    """Return a level as a study file writes it."""
    return json.dumps(level) if level is None or isinstance(level, bool) else str(level)
