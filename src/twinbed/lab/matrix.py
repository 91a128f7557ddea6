"""The matrix of everything that a study can ask for, tried on this machine, with a reason and a fix for what does not work.

Nothing is concluded from versions. Hosts are brought up, settings made and read back, instruments started and ended, and
workloads run for a second, in labs that are removed afterwards.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ValidationError

from twinbed.contracts.bed import Bed, differences
from twinbed.contracts.check import Check
from twinbed.contracts.params import PluginParams
from twinbed.contracts.place import MACHINE, Places
from twinbed.contracts.plugins import AnyBackground, AnyDriver, AnyInstrument, AnyWorkload, Plugins
from twinbed.contracts.site import Installed, Site
from twinbed.contracts.workload import WorkloadPlan
from twinbed.hosts import packages, scratch
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import open_lab
from twinbed.hosts.stage import Stage, all_at_once, still_there, to_its_end
from twinbed.image import find, probe_path
from twinbed.lab import preflight, settings
from twinbed.lab.execution import asked_by, put_files
from twinbed.links.abilities import abilities
from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.topology import Topology

GROUPS = ("machine", "driver", "NIC", "switch", "trunk", "parameter", "instrument", "workload", "background")
"""Groups of checks, in the order in which they are shown."""
_ELSEWHERE = {"bridge and veth", "HTB", "TBF"}
"""Checks of preflight that `links.abilities` repeats."""
_LATER = {"packet capture", "system calls"}
"""Checks of preflight that the instruments themselves repeat."""
_ASK = "twinbed check STUDY, with a study that gives them"
_NEW_IMAGE = "twinbed image build makes the image with today's packages"
_WITHOUT_A_BOOT = "container"
"""The driver whose hosts instruments and workloads are tried on."""
_FOR_TESTS = {"fake", "planted"}
"""Plugins that need nothing from a machine."""


def matrix(plugins: Plugins, *, boot: bool) -> list[Check]:
    """Return all checks, sorted by GROUPS. ``boot``: also checks that boot a guest each."""
    drivers = [driver for name, driver in plugins.drivers.items() if name not in _FOR_TESTS]
    machine = [check for check in preflight.machine() if check.what not in _LATER]
    machine += preflight.left_elsewhere(drivers)
    every = [replace(check, group="machine") for check in machine if check.what not in _ELSEWHERE]
    ready = all(check.works for check in machine if check.required)
    installed = _installed() if ready else None
    if installed is None:
        every += [_not_tried(driver.name, "driver", "the machine lacks something listed above", "") for driver in drivers]
    else:
        workloads = [workload for name, workload in plugins.workloads.items() if name not in _FOR_TESTS]
        jobs: list[Callable[[], Iterable[Check]]] = [
            partial(_network, installed),
            partial(_settings, installed),
            partial(_on_hosts, drivers, plugins, workloads, installed),
            *(partial(_driver, driver, installed, boot) for driver in drivers),
        ]
        # Each in labs of its own; most of the time is spent waiting.
        with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
            for checks in pool.map(lambda job: list(job()), jobs):
                every += checks
    return sorted(every, key=lambda check: GROUPS.index(check.group))


def _network(installed: Installed) -> list[Check]:
    return [_of_the_network(check) for check in abilities(installed.probe)]


def _of_the_network(check: Check) -> Check:
    """Put a check into its group by its name: ``switch: bridge, trunk: gre``, ``switch: bridge, vlan``, ``netem``."""
    switch, _, trunk = check.what.removeprefix("switch: ").partition(", trunk: ")
    if trunk:
        return replace(check, what=f"{trunk} on {switch}", group="trunk")
    if check.what.startswith("switch: "):
        return replace(check, what=switch, group="switch")
    return replace(check, group="parameter")


def _installed() -> Installed | None:
    try:
        image = find()
        return None if image is None else Installed(probe_path(), image)
    except TwinbedError:
        return None


def _settings(installed: Installed) -> list[Check]:
    """Try settings of hosts, each on a NIC in a trial lab."""
    with scratch.folder() as folder:
        try:
            with open_lab(installed.probe, folder) as lab:
                return settings.trials(lab.machine)
        except TwinbedError as error:
            return [_failed("settings of hosts", error, "parameter")]


def _driver(driver: AnyDriver, installed: Installed, boot: bool) -> Iterator[Check]:
    """Yield the driver's own checks and, where all of them pass, its abilities."""
    if not _default(driver.params):
        yield _not_tried(driver.name, "driver", "it needs settings that only a study gives", _ASK)
        return
    refused = next((check for check in driver.check(driver.params()) if not check.works), None)
    if refused is not None:
        yield Check(driver.name, False, f"{refused.what}: {refused.found}", refused.mend, required=False, group="driver")
        return
    able = driver.abilities(installed, boot=boot)
    if not able:
        return
    if driver.name != _WITHOUT_A_BOOT:
        yield _by_nics(driver.name, able)
    yield from able


def _by_nics(name: str, able: Sequence[Check]) -> Check:
    """Return one line for a driver whose hosts boot: the NICs with which they booted."""
    worked = [check.what for check in able if check.works and check.group == "NIC"]
    untried = next((check for check in able if check.group == "NIC" and not check.tried), None)
    if worked:
        return Check(name, True, f"guests booted with {', '.join(worked)}", required=False, group="driver")
    if untried is not None:
        return replace(untried, what=name, group="driver")
    return Check(name, False, "no guest boots, whatever its NIC", "see the NICs", required=False, group="driver")


def _on_hosts(
    drivers: Sequence[AnyDriver], plugins: Plugins, workloads: Sequence[AnyWorkload], installed: Installed
) -> list[Check]:
    """Try a driver without boot, and on its client and server the instruments, workloads and background loads."""
    driver = next((driver_known for driver_known in drivers if driver_known.name == _WITHOUT_A_BOOT), None)
    if driver is None or any(not check.works for check in driver.check(driver.params())):
        return []
    with scratch.folder() as folder:
        cpus = tuple(sorted(os.sched_getaffinity(0)))
        # Some instruments need real root too.
        site = Site("check", installed.probe, installed.image, folder, cpus, real_root=("client", "server"))
        try:
            with driver.up(driver.params(), Topology(), site) as bed:
                wrong = differences(bed.applied)
                status = wrong or "a client, a server and their link came up and were read back"
                checks = [Check(driver.name, not wrong, status, "see the difference", required=False, group="driver")]
                checks += [_instrument(instrument, bed, site) for instrument in plugins.instruments.values()]
                for workload in workloads:
                    checks += _workload(workload, bed, site)
                for background in plugins.backgrounds.values():
                    checks += _background(background, bed, site)
                return checks
        except HostError as error:
            return [_failed(driver.name, error, "driver", f"the text says which part of {driver.name} did not come up")]


def _default(params: type[PluginParams]) -> bool:
    """Return whether a plugin with these params works without settings."""
    try:
        params()
    except ValidationError:
        return False
    return True


def _instrument(instrument: AnyInstrument, bed: Bed, site: Site) -> Check:
    """Start an instrument wherever it is put, wait until it is ready, and end it as at the end of a run."""
    name = instrument.name
    if not _default(instrument.params):
        return _not_tried(name, "instrument", "it needs settings that only a study gives", _ASK)
    params = instrument.params()
    stage = Stage(bed, site)
    before = set(site.artifacts.glob("*/*"))
    try:
        commands = [command for target in asked_by(bed, _pairs(bed)) for command in instrument.plan(params, target)]
        with _ended(stage):
            started = stage.start(commands)
            still_there(started)
            stage.stop(started)
    except HostError as error:
        mend = "run as root" if os.geteuid() else "measure without it, or on guests, which have their own kernels"
        return _failed(name, error, "instrument", mend)
    if not commands:
        return _not_tried(name, "instrument", "it has nothing to do on these hosts", _ASK)
    places = ", ".join(dict.fromkeys(command.host for command in commands))
    programs = ", ".join(dict.fromkeys(Path(command.argv[0]).name for command in commands))
    return _worked(name, f"{programs} ran on {places}{_method(set(site.artifacts.glob('*/*')) - before)}", "instrument")


def _method(artifacts: Iterable[Path]) -> str:
    """Return the means by which the probe counted, where its output names them."""
    methods: dict[str, None] = {}
    for file in sorted(artifacts):
        head = file.read_bytes()[:4096].decode(errors="replace")
        methods |= dict.fromkeys(line.partition(" ")[2] for line in head.splitlines() if line.startswith("method "))
    return f", by {' and '.join(methods)}" if methods else ""


def _workload(workload: AnyWorkload, bed: Bed, site: Site) -> Iterator[Check]:
    """Run each of a workload's tools for the shortest time that it allows."""
    for variant, given in _variants(workload.params):
        try:
            params = workload.params.model_validate(given)
        except ValidationError:
            yield _not_tried(f"{workload.name}{variant}", "workload", "it needs settings that only a study gives", _ASK)
            continue
        try:
            _run(workload.plan(params, _pairs(bed)), bed, site)
        except HostError as error:
            yield _failed(f"{workload.name}{variant}", error, "workload", _NEW_IMAGE)
        else:
            yield _worked(f"{workload.name}{variant}", "ran for a second between a client and a server", "workload")


def _background(background: AnyBackground, bed: Bed, site: Site) -> Iterator[Check]:
    """Start and end a background load; its output must show the load that was asked for."""
    places = Places([MACHINE], _pairs(bed))
    for trial, params in background.trials.items():
        what = f"{background.name}, {trial}"
        stage = Stage(bed, site)
        plan = background.plan(params, places)
        try:
            put_files(plan.files, bed)
            with _ended(stage):
                started = stage.start(plan.commands)
                still_there(started)
                stage.stop(started)
            background.extract(params, site.artifacts)
        except (HostError, ValueError) as error:
            own = packages.of_programs(*params.machine_programs())
            yield _failed(what, error, "background", packages.mend(own) if own else _NEW_IMAGE)
        else:
            hosts = ", ".join(dict.fromkeys(command.host for command in plan.commands))
            yield _worked(what, f"ran for a moment on {hosts}", "background")


def _pairs(bed: Bed) -> list[tuple[str, str, str]]:
    return [("client", "server", bed.addresses["server"])]


def _variants(params: type[BaseModel]) -> Iterator[tuple[str, Document]]:
    """Yield the shortest settings with each of the tools or protocols to choose from."""
    short = {"duration": "1s"} if "duration" in params.model_fields else {}
    choice = next((name for name in ("tool", "protocol") if name in params.model_fields), None)
    if choice is None:
        yield "", short
    else:
        for value in get_args(params.model_fields[choice].annotation):
            yield f", {choice}: {value}", {**short, choice: value}


def _run(plan: WorkloadPlan, bed: Bed, site: Site) -> None:
    stage = Stage(bed, site)
    put_files(plan.files, bed)
    for command in plan.prepare:
        to_its_end(command, bed, site)
    with _ended(stage):
        servers = stage.start(plan.servers)
        for command in plan.warm_up:
            to_its_end(command, bed, site)
        all_at_once(plan.clients, bed, site, servers)
        stage.stop(servers)


@contextlib.contextmanager
def _ended(stage: Stage) -> Iterator[None]:
    """End the programs of a failed trial, so that the next trial does not meet them."""
    try:
        yield
    except HostError:
        stage.end()
        raise


def _not_tried(what: str, group: str, why: str, mend: str) -> Check:
    return Check(what, False, why, mend, required=False, group=group, tried=False)


def _failed(what: str, error: Exception, group: str, mend: str = "") -> Check:
    return Check(what, False, " ".join(str(error).split()), mend, required=False, group=group)


def _worked(what: str, status: str, group: str) -> Check:
    return Check(what, True, status, required=False, group=group)


def broken(checks: Sequence[Check]) -> list[Check]:
    """Return the checks that are required and failed."""
    return [check for check in checks if check.required and not check.works]
