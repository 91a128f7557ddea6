"""The sections of a study file that choose plugins or have settings, each checked by its params model.

``machine`` gives settings of CPUs once for all testbeds on this machine. The reader puts them into each of these testbeds.
Runs, factors and results then have them as settings of the testbed. Hosts elsewhere stay as they are.  ``keep`` may be a
mapping of plugins to words, ``replicates`` a mapping that lets the study run until its verdicts are reached.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from twinbed.contracts.host_settings import Cpus, Idle, LabHostSettings
from twinbed.contracts.params import ROLES, BackgroundParams, DriverParams, InstrumentParams, WorkloadParams
from twinbed.model.interim import UntilDecided
from twinbed.model.keep import DEFAULT, Keep, Word
from twinbed.model.near import Near, nearest
from twinbed.model.topology import Topology
from twinbed.study.catalogue import Catalogue
from twinbed.study.document import Entries, Items, Node, Position, Problem, Scalar, is_absent, listed
from twinbed.study.params import Section, shown
from twinbed.study.study import Order

MACHINE = "machine"
_OF_TESTBEDS = LabHostSettings.model_fields


class Machine(BaseModel):
    """Settings of testbeds that concern the machine under their hosts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    idle: Idle = Field("normal", description=_OF_TESTBEDS["idle"].description)
    cpus: Cpus = Field("auto", description=_OF_TESTBEDS["cpus"].description)


Testbeds = dict[str, Section[DriverParams]]


def read_machine(
    root: Entries, testbeds: Testbeds, drivers: Mapping[str, type[DriverParams]], problems: list[Problem]
) -> Testbeds:
    """Return the testbeds with the settings of ``machine``. Errors are appended to ``problems``."""
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
    put = {name: _put(testbed, known, drivers, problems) for name, testbed in testbeds.items()}
    if testbeds and known.entries and not any(put.values()):
        message = "applies to hosts on this machine, and no testbed has any"
        problems.append(Problem.at(node.place, MACHINE, message, "a testbed with the driver container or qemu"))
    return {name: put[name] or testbed for name, testbed in testbeds.items()}


def _put(
    testbed: Section[DriverParams], known: Entries, drivers: Mapping[str, type[DriverParams]], problems: list[Problem]
) -> Section[DriverParams] | None:
    """Return the testbed with these settings; None where its hosts are elsewhere."""
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
        problems.append(Problem.at(place, f"{path}.{name}", f"is given twice: {MACHINE} has it too", "only one of the two"))
    places = {name: known.keys[name] for name in known.entries}
    return Entries({**known.entries, **node.entries}, {**places, **node.keys}, node.place)


M = TypeVar("M", bound=BaseModel)
TESTBED_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", re.ASCII)
ONLY = "only"
"""The key of a testbed that is measured at some levels only."""
ONLY_EXAMPLE = "such as {payload: {random: 20}} or {payload: [500B, 1MiB]}"
_TESTBED_NAME_ALLOWED = "letters, digits, '_' and '-', beginning with a letter or digit, at most 32"


def _maps_kinds(node: Entries, known: Mapping[str, type[M]]) -> bool:
    """Return whether a node is a mapping of kinds to settings, not the settings of one plugin that ``kind`` names."""
    if "kind" in node.entries:
        return False
    return any(name in known or isinstance(value, Entries) for name, value in node.entries.items())


class SectionReader:
    """A reader of the study's sections. Errors are appended to ``problems``, and a section with an error is left out."""

    def __init__(self, root: Entries, catalogue: Catalogue, problems: list[Problem]) -> None:
        self.root = root
        self.catalogue = catalogue
        self.problems = problems
        self.only: dict[str, Node] = {}
        """Testbed -> its key ``only``."""

    def problem(self, place: Position, key: str, message: str, allowed: str = "", near: Near = ()) -> None:
        self.problems.append(Problem.at(place, key, message, allowed, near))

    def testbeds(self) -> dict[str, Section[DriverParams]]:
        node = self.root.entries.get("testbeds")
        if node is None:
            self.problem(self.root.place, "testbeds", "is required: the testbeds to compare, each a name with a driver")
            return {}
        if not isinstance(node, Entries) or not node.entries:
            self.problem(node.place, "testbeds", "names no testbed", "a mapping such as {container: {driver: container}}")
            return {}
        sections = {}
        for name, value in node.entries.items():
            if not TESTBED_NAME.fullmatch(name):
                self.problem(node.keys[name], f"testbeds.{name}", "is not a name for a testbed", _TESTBED_NAME_ALLOWED)
            section = self._choice(f"testbeds.{name}", self._without_only(name, value), "driver", self.catalogue.drivers)
            if section is not None:
                sections[name] = section
        return read_machine(self.root, sections, self.catalogue.drivers, self.problems)

    def _without_only(self, name: str, node: Node) -> Node:
        """Return the settings of a testbed's driver."""
        if not isinstance(node, Entries) or ONLY not in node.entries:
            return node
        self.only[name] = node.entries[ONLY]
        entries, keys = dict(node.entries), dict(node.keys)
        del entries[ONLY], keys[ONLY]
        return Entries(entries, keys, node.place)

    def workload(self) -> Section[WorkloadParams] | None:
        node = self.root.entries.get("workload")
        if node is None:
            self.problem(self.root.place, "workload", "is required: what clients ask of servers")
            return None
        return self._choice("workload", node, "kind", self.catalogue.workloads)

    def backgrounds(self) -> dict[str, Section[BackgroundParams]]:
        """Return background loads by path: ``background`` for one that names its kind, ``background.KIND`` in a mapping."""
        node = self.root.entries.get("background")
        if node is None or is_absent(node):
            return {}
        known = self.catalogue.backgrounds
        if not isinstance(node, Entries) or not _maps_kinds(node, known):
            section = self._choice("background", node, "kind", known)
            return {} if section is None else {section.path: section}
        sections = {}
        for name, value in node.entries.items():
            path = f"background.{name}"
            if name not in known:
                self.problem(
                    node.keys[name], path, "is not a background load", listed(known), nearest(name, known, self.catalogue.also)
                )
            elif not is_absent(value) and not isinstance(value, Entries):
                self.problem(value.place, path, "is not a mapping", "a mapping of its settings, or nothing")
            else:
                own = value if isinstance(value, Entries) else Entries({}, {}, node.keys[name])
                sections[path] = Section(path, known[name], own, name)
                self.problems.extend(sections[path].unknown_keys())
        return sections

    def topology(self) -> Section[Topology]:
        node = self.root.entries.get("topology")
        empty = Entries({}, {}, self.root.place if node is None else node.place)
        if node is not None and not is_absent(node) and not isinstance(node, Entries):
            self.problem(node.place, "topology", "is not a mapping", f"a mapping with the keys {listed(Topology.model_fields)}")
        section = Section("topology", Topology, node if isinstance(node, Entries) else empty)
        self.problems.extend(section.unknown_keys())
        return section

    def instruments(self) -> dict[str, Section[InstrumentParams]]:
        node = self.root.entries.get("instruments")
        if node is None or is_absent(node):
            return {}
        if isinstance(node, Entries):
            given = [(name, node.keys[name], value) for name, value in node.entries.items()]
        elif isinstance(node, Items):
            given = [(str(item.value) if isinstance(item, Scalar) else "", item.place, item) for item in node.items]
        else:
            self.problem(
                node.place,
                "instruments",
                f"{shown(node.value)} is not a list",
                "a list of instruments, or a mapping of each to its settings",
            )
            return {}
        sections: dict[str, Section[InstrumentParams]] = {}
        for name, place, value in given:
            if name in sections:
                self.problem(place, "instruments", f"{name!r} is given twice")
            elif name not in self.catalogue.instruments:
                known = self.catalogue.instruments
                self.problem(
                    place,
                    "instruments",
                    f"{name!r} is not an instrument",
                    listed(known),
                    nearest(name, known, self.catalogue.also),
                )
            else:
                empty = isinstance(node, Items) or is_absent(value)
                if not empty and not isinstance(value, Entries):
                    self.problem(
                        value.place, f"instruments.{name}", "is not a mapping", "a mapping of its settings, or nothing"
                    )
                sections[name] = self.instrument(name, value if isinstance(value, Entries) else Entries({}, {}, place))
        return sections

    def instrument(self, name: str, node: Entries) -> Section[InstrumentParams]:
        section = Section(f"instruments.{name}", self.catalogue.instruments[name], node, name)
        self.problems.extend(section.unknown_keys())
        return section

    def _choice(self, path: str, node: Node, kind_key: str, known: Mapping[str, type[M]]) -> Section[M] | None:
        """Return a section that names a plugin and gives its settings."""
        if not isinstance(node, Entries):
            self.problem(node.place, path, "is not a mapping", f"a mapping such as {{{kind_key}: {next(iter(known), 'NAME')}}}")
            return None
        kind = node.entries.get(kind_key)
        key = f"{path}.{kind_key}"
        if kind is None:
            self.problem(node.place, key, "is required", listed(known))
            return None
        name = kind.value if isinstance(kind, Scalar) else None
        if not isinstance(name, str) or name not in known:
            value: object = kind.value if isinstance(kind, Scalar) else {}
            self.problem(
                kind.place, key, f"{shown(value)} is not known", listed(known), nearest(str(name), known, self.catalogue.also)
            )
            return None
        section = Section(path, known[name], node, name, kind_key)
        self.problems.extend(section.unknown_keys())
        return section


KEEP = "keep"


def read_keep(root: Entries, names: Sequence[str], problems: list[Problem]) -> Keep | None:
    """Return how much of the plugins' artifacts the study keeps; None where ``keep`` is not a mapping. Errors are appended to
    ``problems``."""
    node = root.entries.get(KEEP)
    if not isinstance(node, Entries):
        return None
    of: dict[str, Word] = {}
    known = [*names, DEFAULT]
    for name, value in node.entries.items():
        key = f"{KEEP}.{name}"
        if name not in known:
            message = "is not an instrument, workload or background load of this study"
            problems.append(Problem.at(node.keys[name], key, message, listed(known), nearest(name, known)))
        else:
            of[name] = _word(value, key, problems)
    default = of.pop(DEFAULT, Word.EVERYTHING)
    return Keep(default, {name: word for name, word in of.items() if word is not default})


def _word(node: Node, key: str, problems: list[Problem]) -> Word:
    given = node.value if isinstance(node, Scalar) else None
    if isinstance(given, str) and given in list(Word):
        return Word(given)
    message = f"{shown(given)} is not known" if isinstance(node, Scalar) else "is not a single value"
    problems.append(Problem.at(node.place, key, message, listed(Word), nearest(str(given), map(str, Word))))
    return Word.EVERYTHING


def read_until(root: Entries, order: Order | None, problems: list[Problem]) -> UntilDecided | None:
    """Return until when the study runs; None where ``replicates`` is not a mapping or has errors, appended to ``problems``.

    ``order`` is None where it has an error.
    """
    node = root.entries.get("replicates")
    if not isinstance(node, Entries):
        return None
    section = Section("replicates", UntilDecided, node)
    problems.extend(section.unknown_keys())
    until = section.check({}, problems)
    if not isinstance(until, UntilDecided):
        return None
    if until.most <= until.least:
        place, message = node.entries["most"].place, f"{until.most} is not more than least"
        problems.append(Problem.at(place, "replicates.most", message, f"more than {until.least}"))
    if order not in (None, Order.RANDOMIZED_BLOCKS):
        message = f"{order} has no blocks, and replicates with least and most stop after a block"
        problems.append(Problem.at(root.entries["order"].place, "order", message, Order.RANDOMIZED_BLOCKS.value))
    return until
