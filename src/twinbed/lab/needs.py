"""Trials of everything that a study needs from this machine: for `check`, for `run` before it begins, and quick ones for
`plan`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.check import Check
from twinbed.contracts.params import DriverParams
from twinbed.contracts.plugins import AnyDriver, Plugins
from twinbed.hosts.resources import available
from twinbed.lab import added, own_programs, preflight, resources
from twinbed.model.error import TwinbedError
from twinbed.study.run import Run

QUICK_S = 5.0
"""The time of `plan`'s trials. For the studies in `studies/` all trials took 1.3 to 2.9 s with a load of 14 on two CPUs, and
0.4 s of CPU time. Only instruments whose programs do not answer come near this limit."""


def checks(runs: Sequence[Run], plugins: Plugins, *, builds: bool) -> list[Check]:
    """Try everything. ``builds``: the caller builds a missing image next."""
    return [check for stage in _stages(runs, plugins, builds).values() for check in stage()]


@dataclass(frozen=True, slots=True)
class Quick:
    """The result of quick trials."""

    refused: tuple[Check, ...]
    untried: tuple[str, ...]
    """The trials left to `check`, with the reason."""


def quick(runs: Sequence[Run], plugins: Plugins) -> Quick:
    """Find what this machine would refuse, except for memory, processes and files. No host elsewhere is asked."""
    here = [run for run in runs if is_here(run, plugins)]
    elsewhere = dict.fromkeys(run.testbed_name for run in runs if not is_here(run, plugins))
    untried = [f"hosts of {name}, which are not on this machine" for name in elsewhere]
    refused: list[Check] = []
    until = time.monotonic() + QUICK_S
    for name, stage in _stages(here, plugins, builds=True).items():
        if name == _RESOURCES:
            continue  # which the plan knows without trying
        if time.monotonic() > until:
            untried.append(f"{name}, for lack of time")
            continue
        refused += [check for check in stage() if check.required and not check.works]
    return Quick(tuple(dict.fromkeys(refused)), tuple(untried))


_RESOURCES = "memory, processes and files"


def _stages(runs: Sequence[Run], plugins: Plugins, builds: bool) -> Mapping[str, Callable[[], Sequence[Check]]]:
    """Return the trials, in the order of the answer; each runs when it is called. Foreign programs come last."""
    drivers = {run.testbed.kind: plugins.drivers[run.testbed.kind] for run in runs}
    instruments = {choice.kind for run in runs for choice in run.instruments.values()}
    accompanying = list(dict.fromkeys((choice.kind, choice.params) for run in runs for choice in run.accompanying()))
    loads = [(drivers[run.testbed.kind], choice.params) for run in runs for choice in run.backgrounds.values()]
    beds = [(run.topology, drivers[run.testbed.kind], run.testbed.params) for run in runs]
    return {
        "the machine": lambda: preflight.machine(
            needs_lab=any(driver.in_lab for driver in drivers.values()),
            captures=not instruments.isdisjoint(("packets", "monitor")),
            system_calls="syscalls" in instruments and "container" in drivers,
            builds=builds,
        ),
        "testbeds": lambda: preflight.study(list(_testbeds(runs, drivers))),
        "the network": lambda: preflight.network(beds),
        "programs of the image": lambda: preflight.programs(accompanying),
        "software that workloads add": lambda: added.checks(runs, plugins),
        "workloads": lambda: preflight.confined(runs, plugins.drivers),
        "background loads": lambda: preflight.backgrounds(loads),
        _RESOURCES: lambda: resources.checks(runs, plugins, available()),
        "programs of hosts": lambda: own_programs.checks(runs, plugins),
        "programs of instruments": lambda: preflight.trials(accompanying),
    }


def _testbeds(runs: Sequence[Run], drivers: Mapping[str, AnyDriver]) -> Iterator[tuple[str, AnyDriver, DriverParams]]:
    """Yield each testbed once: trying one may take as long as logging in to its hosts."""
    given: list[tuple[str, AnyDriver, DriverParams]] = []
    for run in runs:
        testbed = (run.testbed_name, drivers[run.testbed.kind], run.testbed.params)
        if testbed not in given:
            given.append(testbed)
            yield testbed


def is_here(run: Run, plugins: Plugins) -> bool:
    """Return whether all hosts of a run are on this machine."""
    driver = plugins.drivers[run.testbed.kind]
    return driver.in_process or all(kind.host_need() is not None for kind in run.testbed.params.kinds().values())


class PreflightFailed(TwinbedError):
    """This machine cannot carry out the study: the problems, with their fixes."""

    exit_code = codes.PREFLIGHT

    def __init__(self, study: str, problems: Sequence[Check], advice: str) -> None:
        lines = [f"  {check.what}: {check.found}" + (f"\n      {check.mend}" if check.mend else "") for check in problems]
        super().__init__("\n".join([f"{study}: this machine cannot carry out the study:", *lines]), advice=advice)
