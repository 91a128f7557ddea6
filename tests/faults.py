"""Studies that are carried out with a fault injected into the first run's workload."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.contracts.bed import Bed
from twinbed.contracts.site import Installed
from twinbed.hosts import stage
from twinbed.hosts.error import HostError
from twinbed.image import Image
from twinbed.lab import execution
from twinbed.lab.study import Ending, Event, PhaseBegan, RunEnded, carry_out
from twinbed.model.run import Phase
from twinbed.registry import PLUGINS, Plugins, catalogue
from twinbed.results.folder import Folder
from twinbed.study.loading import load
from twinbed.study.run import Run
from twinbed.workloads import http as http_plan

Harm = Callable[[Bed], None]
AFTER_S = 0.4
"""Into the workload."""
HARM_LIMIT_S = 60.0


class Seen:
    """A driver whose testbeds can be got at while they are up."""

    def __init__(self, driver: Any, beds: list[Bed]) -> None:
        self._driver, self._beds = driver, beds
        self.name, self.params, self.summary = driver.name, driver.params, driver.summary
        self.in_process, self.in_lab = driver.in_process, driver.in_lab

    def check(self, params: Any) -> Any:
        return self._driver.check(params)

    @contextmanager
    def up(self, params: Any, topology: Any, site: Any) -> Iterator[Bed]:
        with self._driver.up(params, topology, site) as bed:
            self._beds.append(bed)
            yield bed


@dataclasses.dataclass(frozen=True)
class Carried:
    ending: Ending
    records: list[dict[str, Any]]
    """In the order of the runs."""
    results: Path


def carry(
    text: str,
    results: Path,
    image: Image,
    probe: Path,
    harm: Harm,
    *,
    plugins: Plugins = PLUGINS,
    testbed: str | None = None,
    short: bool = False,
    fine_s: float | None = None,
) -> Carried:
    """Carry a study out; ``harm`` is done once, amid the workload of the first run (of ``testbed``, where it is given).

    ``short``: the limits at which a run that is hurt ends are tens of seconds; what happens at them is the same at a few. They
    are a few for that run alone, from its workload on: all else may take its time. ``fine_s``: how long the workload of the
    other runs lasts; only that of the first must still be there when harm comes.
    """
    beds: list[Bed] = []
    limits = pytest.MonkeyPatch()
    seen = dataclasses.replace(plugins, drivers={name: Seen(driver, beds) for name, driver in plugins.drivers.items()})
    study = load(text, "faults.yaml", catalogue())
    waiting, threads = [harm], []

    def listener(event: Event) -> None:
        if isinstance(event, RunEnded):
            limits.undo()
        if isinstance(event, PhaseBegan) and event.phase is Phase.COLLECT:
            # On a busy machine a harm that a guest carries out may last longer than the workload.
            for thread in threads:
                thread.join(HARM_LIMIT_S)
        if not isinstance(event, PhaseBegan) or not waiting or testbed not in (None, event.run.testbed_name):
            return
        if short and event.phase is Phase.UP:
            limits.setattr(http_plan, "ANSWER_LIMIT_S", 2)
            limits.setattr(http_plan, "GRACE_S", 3.0)
        if event.phase is Phase.WORKLOAD:
            if short:
                limits.setattr(execution, "GRACE_S", 6.0)
                limits.setattr(stage, "_STOP_LIMIT_S", 5.0)
            threads.append(threading.Timer(AFTER_S, _harm, (waiting.pop(), beds[-1])))
            threads[-1].start()

    folder = Folder(results)
    try:
        with folder.locked():
            hurt, *fine = design.runs(study)
            runs = [hurt, *(fine if fine_s is None else [lasting(run, fine_s) for run in fine])]
            ending = carry_out(study, runs, seen, folder, Installed(probe, image), listener)
    finally:
        limits.undo()
    for thread in threads:
        thread.join()
    records = [json.loads(path.read_text()) for path in (results / "runs").glob("*/run.json")]
    return Carried(ending, sorted(records, key=lambda record: record["position"]), results)


def lasting(run: Run, seconds: float) -> Run:
    params = run.workload.params.model_copy(update={"duration": seconds})
    return dataclasses.replace(run, workload=dataclasses.replace(run.workload, params=params))


def _harm(harm: Harm, bed: Bed) -> None:
    with suppress(HostError):  # a host that is brought down does not answer
        harm(bed)


def processes(*words: str) -> list[int]:
    """Processes in whose command line all the words are."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if all(word in command for word in words):
            found.append(int(process.name))
    return found
