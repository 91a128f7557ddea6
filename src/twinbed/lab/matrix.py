"""Everything that a study can ask for, tried on this machine, with the reason and the mend where it does not work.

Nothing is concluded from versions: hosts are brought up, settings made and read back, instruments started and ended, and
workloads run for a second, in labs that are gone afterwards.
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

from twinbed.contracts.bed import Bed
from twinbed.contracts.check import Check
from twinbed.contracts.params import PluginParams
from twinbed.contracts.place import MACHINE, Places
from twinbed.contracts.plugins import AnyBackground, AnyDriver, AnyInstrument, AnyWorkload, Plugins
from twinbed.contracts.site import Installed, Site
from twinbed.contracts.workload import WorkloadPlan
from twinbed.hosts import packages, scratch
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import open_lab
from twinbed.hosts.stage import Stage, all_at_once, placed, still_there, to_its_end
from twinbed.image import find, probe_path
from twinbed.lab import preflight, settings
from twinbed.lab.execution import asked_by
from twinbed.links.abilities import abilities
from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.topology import Topology

GROUPS = ("machine", "driver", "NIC", "switch", "trunk", "parameter", "instrument", "workload", "background")
"""In the order in which they are shown."""
_ELSEWHERE = {"bridge and veth", "HTB", "TBF"}
"""Checks of preflight's that are left out, as `links.abilities` tries the same."""
_LATER = {"packet capture", "system calls"}
"""Checks of preflight's that are left to the instruments that need them."""
_ASK = "twinbed check STUDY, with a study that gives them"
_WITHOUT_A_BOOT = "container"
"""The driver whose hosts instruments and workloads are tried on."""
_FOR_TESTS = {"fake", "planted"}
"""Plugins that need nothing of a machine."""


def matrix(plugins: Plugins, *, boot: bool) -> list[Check]:
    """Sorted by GROUPS. ``boot``: also things that take a guest's boot each."""
    drivers = [driver for name, driver in plugins.drivers.items() if name not in _FOR_TESTS]
    machine = [check for check in preflight.machine() if check.what not in _LATER]
    machine += preflight.left_elsewhere(drivers)
    every = [replace(check, group="machine") for check in machine if check.what not in _ELSEWHERE]
    ready = all(check.works for check in machine if check.required)
    installed = _installed() if ready else None
    if installed is None:
        every += [_not_tried(each.name, "driver", "the machine lacks what is said above", "") for each in drivers]
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
    """By its name: ``switch: bridge, trunk: gre``, ``switch: bridge, vlan``, ``netem``."""
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
    """Settings of hosts, each made on a NIC in a lab of their own."""
    with scratch.folder() as folder:
        try:
            with open_lab(installed.probe, folder) as lab:
                return settings.trials(lab.machine)
        except TwinbedError as error:
            return [Check("settings of hosts", False, _one_line(error), required=False, group="parameter")]


def _driver(driver: AnyDriver, installed: Installed, boot: bool) -> Iterator[Check]:
    """The driver's own checks and, where all of them pass, its abilities."""
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
    """One line for a driver whose hosts boot: the NICs that they have booted with."""
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
    """Tried on a client and a server that take no boot: their driver, the instruments, the workloads, the background loads."""
    driver = next((each for each in drivers if each.name == _WITHOUT_A_BOOT), None)
    if driver is None or any(not check.works for check in driver.check(driver.params())):
        return []
    with scratch.folder() as folder:
        cpus = tuple(sorted(os.sched_getaffinity(0)))
        # Of instruments too, some of which need it.
        site = Site("check", installed.probe, installed.image, folder, cpus, real_root=("client", "server"))
        try:
            with driver.up(driver.params(), Topology(), site) as bed:
                wrong = [item for item in bed.applied if not item.agrees]
                differences = "; ".join(
                    f"{item.subject}: {item.setting} is {item.found!r}, not {item.asked!r}" for item in wrong
                )
                status = differences or "a client and a server came up, with a link, and were read back"
                checks = [Check(driver.name, not wrong, status, "see what differs", required=False, group="driver")]
                checks += [_instrument(instrument, bed, site) for instrument in plugins.instruments.values()]
                for workload in workloads:
                    checks += _workload(workload, bed, site)
                for background in plugins.backgrounds.values():
                    checks += _background(background, bed, site)
                return checks
        except HostError as error:
            return [Check(driver.name, False, _one_line(error), _mend(driver), required=False, group="driver")]


def _default(params: type[PluginParams]) -> bool:
    """Whether the plugin with these params can be had without settings."""
    try:
        params()
    except ValidationError:
        return False
    return True


def _mend(driver: AnyDriver) -> str:
    return f"the text says what of {driver.name} did not come up"


def _instrument(instrument: AnyInstrument, bed: Bed, site: Site) -> Check:
    """An instrument is started wherever it is put, waited for until it is ready, and ended as at the end of a run."""
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
        return Check(name, False, _one_line(error), _instrument_mend(), required=False, group="instrument")
    if not commands:
        return _not_tried(name, "instrument", "it has nothing to do on these hosts", _ASK)
    places = ", ".join(dict.fromkeys(command.host for command in commands))
    programs = ", ".join(dict.fromkeys(Path(command.argv[0]).name for command in commands))
    return Check(
        name,
        True,
        f"{programs} ran on {places}{_method(set(site.artifacts.glob('*/*')) - before)}",
        required=False,
        group="instrument",
    )


def _instrument_mend() -> str:
    return "run as root" if os.geteuid() else "measure without it, or on guests, which have kernels of their own"


def _method(artifacts: Iterable[Path]) -> str:
    """The means by which the probe counted, where it says so."""
    methods: dict[str, None] = {}
    for file in sorted(artifacts):
        head = file.read_bytes()[:4096].decode(errors="replace")
        methods |= dict.fromkeys(line.partition(" ")[2] for line in head.splitlines() if line.startswith("method "))
    return f", by {' and '.join(methods)}" if methods else ""


def _workload(workload: AnyWorkload, bed: Bed, site: Site) -> Iterator[Check]:
    """Each of a workload's tools is run for as short as it can be."""
    for variant, given in _variants(workload.params):
        try:
            params = workload.params.model_validate(given)
        except ValidationError:
            yield _not_tried(f"{workload.name}{variant}", "workload", "it needs settings that only a study gives", _ASK)
            continue
        try:
            _run(workload.plan(params, _pairs(bed)), bed, site)
        except HostError as error:
            mend = "twinbed image build makes the image with today's packages"
            yield Check(f"{workload.name}{variant}", False, _one_line(error), mend, required=False, group="workload")
        else:
            status = "ran for a second between a client and a server"
            yield Check(f"{workload.name}{variant}", True, status, required=False, group="workload")


def _background(background: AnyBackground, bed: Bed, site: Site) -> Iterator[Check]:
    """A background load is begun and ended; its own output says that it did what it was told."""
    places = Places([MACHINE], _pairs(bed))
    for trial, params in background.trials.items():
        what = f"{background.name}, {trial}"
        stage = Stage(bed, site)
        plan = background.plan(params, places)
        try:
            _put(plan.files, bed)
            with _ended(stage):
                started = stage.start(plan.commands)
                still_there(started)
                stage.stop(started)
            background.extract(params, site.artifacts)
        except (HostError, ValueError) as error:
            own = packages.of_programs(*params.machine_programs())
            mend = packages.mend(own) if own else "twinbed image build makes the image with today's packages"
            yield Check(what, False, _one_line(error), mend, required=False, group="background")
        else:
            status = f"ran for a moment on {', '.join(dict.fromkeys(command.host for command in plan.commands))}"
            yield Check(what, True, status, required=False, group="background")


def _put(files: Sequence[tuple[str, str, bytes]], bed: Bed) -> None:
    for host, path, content in files:
        bed.hosts[host].write(placed(path, bed.hosts[host]), content)


def _pairs(bed: Bed) -> list[tuple[str, str, str]]:
    return [("client", "server", bed.addresses["server"])]


def _variants(params: type[BaseModel]) -> Iterator[tuple[str, Document]]:
    """The shortest settings, with each of the tools or protocols that there are to choose from."""
    short = {"duration": "1s"} if "duration" in params.model_fields else {}
    choice = next((name for name in ("tool", "protocol") if name in params.model_fields), None)
    if choice is None:
        yield "", short
    else:
        for value in get_args(params.model_fields[choice].annotation):
            yield f", {choice}: {value}", {**short, choice: value}


def _run(plan: WorkloadPlan, bed: Bed, site: Site) -> None:
    stage = Stage(bed, site)
    _put(plan.files, bed)
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
    """Programs that a failed trial has started are ended, so that the next trial does not meet them."""
    try:
        yield
    except HostError:
        stage.end()
        raise


def _not_tried(what: str, group: str, why: str, mend: str) -> Check:
    return Check(what, False, why, mend, required=False, group=group, tried=False)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def broken(checks: Sequence[Check]) -> list[Check]:
    """The checks that are required and failed."""
    return [check for check in checks if check.required and not check.works]
