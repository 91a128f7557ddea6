"""The section ``machine``: what all testbeds on this machine do with its CPUs, said once.

It is written into each testbed whose hosts are on this machine, so that runs, factors and results know it as the testbed's own.
Hosts elsewhere are left as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from twinbed.contracts.host_settings import Cpus, Idle, LabHostSettings
from twinbed.contracts.params import ROLES, DriverParams
from twinbed.study.document import Entries, Node, Scalar, is_absent
from twinbed.study.params import Section
from twinbed.study.problem import Position, Problem, listed

MACHINE = "machine"
_OF_TESTBEDS = LabHostSettings.model_fields


class Machine(BaseModel):
    """Settings of testbeds that are about the machine below their hosts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    idle: Idle = Field("normal", description=_OF_TESTBEDS["idle"].description)
    cpus: Cpus = Field("auto", description=_OF_TESTBEDS["cpus"].description)


Testbeds = dict[str, Section[DriverParams]]


def read_machine(
    root: Entries, testbeds: Testbeds, drivers: Mapping[str, type[DriverParams]], problems: list[Problem]
) -> Testbeds:
    """Return the testbeds with what ``machine`` says of all. What is wrong is appended to ``problems``."""
    node = root.entries.get(MACHINE)
    if node is None or is_absent(node):
        return testbeds
    if not isinstance(node, Entries):
        problems.append(
            Problem.at(node.place, MACHINE, "is not a mapping", f"a mapping with the keys {listed(Machine.model_fields)}")
        )
        return testbeds
    section = Section(MACHINE, Machine, node)
    problems.extend(section.unknown_keys())
    if section.check({}, problems) is None:
        return testbeds
    known = Entries(
        {name: value for name, value in node.entries.items() if name in Machine.model_fields}, node.keys, node.place
    )
    put = {name: _put(each, known, drivers, problems) for name, each in testbeds.items()}
    if testbeds and known.entries and not any(put.values()):
        message = "is of hosts on this machine, and no testbed has any"
        problems.append(Problem.at(node.place, MACHINE, message, "a testbed with the driver container or qemu"))
    return {name: put[name] or each for name, each in testbeds.items()}


def _put(
    testbed: Section[DriverParams], known: Entries, drivers: Mapping[str, type[DriverParams]], problems: list[Problem]
) -> Section[DriverParams] | None:
    """The testbed with these settings; None for one whose hosts are elsewhere."""
    if issubclass(testbed.model, LabHostSettings):
        return replace(testbed, node=_with(testbed.node, known, testbed.path, problems))
    inside: dict[str, Node] = {}
    for role in ROLES:
        host = testbed.node.entries.get(role) if role in testbed.model.model_fields else None
        if isinstance(host, Entries) and _is_here(host, drivers):
            inside[role] = _with(host, known, f"{testbed.path}.{role}", problems)
    if not inside:
        return None
    return replace(testbed, node=replace(testbed.node, entries={**testbed.node.entries, **inside}))


def _is_here(host: Entries, drivers: Mapping[str, type[DriverParams]]) -> bool:
    driver = host.entries.get("driver")
    model = drivers.get(str(driver.value)) if isinstance(driver, Scalar) else None
    return model is not None and issubclass(model, LabHostSettings)


def _with(node: Entries, known: Entries, path: str, problems: list[Problem]) -> Entries:
    for name in known.entries.keys() & node.entries.keys():
        place: Position = node.keys[name]
        problems.append(Problem.at(place, f"{path}.{name}", f"is given twice: {MACHINE} has it too", "one of the two"))
    places = {name: known.keys[name] for name in known.entries}
    return Entries({**known.entries, **node.entries}, {**places, **node.keys}, node.place)
