"""The sections of a study file that choose plugins, each held against its params model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel

from twinbed.contracts.params import BackgroundParams, DriverParams, InstrumentParams, WorkloadParams
from twinbed.model.near import Near, nearest
from twinbed.model.topology import Topology
from twinbed.study.catalogue import Catalogue
from twinbed.study.document import Entries, Items, Node, Scalar, is_absent
from twinbed.study.machine import read_machine
from twinbed.study.params import Section, shown
from twinbed.study.problem import Position, Problem, listed

M = TypeVar("M", bound=BaseModel)
TESTBED_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", re.ASCII)
ONLY = "only"
"""The key of a testbed that is not measured everywhere."""
ONLY_EXAMPLE = "such as {payload: {random: 20}} or {payload: [500B, 1MiB]}"
_TESTBED_NAME_ALLOWED = "letters, digits, '_' and '-', beginning with a letter or digit, at most 32"


def _maps_kinds(node: Entries, known: Mapping[str, type[M]]) -> bool:
    """Whether it is meant as a mapping of kinds to their settings, not as the settings of one that ``kind`` names."""
    if "kind" in node.entries:
        return False
    return any(name in known or isinstance(value, Entries) for name, value in node.entries.items())


class SectionReader:
    """Reads sections of the study ``root``; what is wrong is appended to ``problems``, and a wrong section left out."""

    def __init__(self, root: Entries, catalogue: Catalogue, problems: list[Problem]) -> None:
        self.root = root
        self.catalogue = catalogue
        self.problems = problems
        self.only: dict[str, Node] = {}
        """Testbed -> what it says of where it is measured."""

    def problem(self, place: Position, key: str, message: str, allowed: str = "", near: Near = ()) -> None:
        self.problems.append(Problem.at(place, key, message, allowed, near))

    def testbeds(self) -> dict[str, Section[DriverParams]]:
        node = self.root.entries.get("testbeds")
        if node is None:
            self.problem(self.root.place, "testbeds", "is required: the testbeds, each a name with a driver")
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
        """The settings of a testbed's driver."""
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
        """By their paths: of one that names its kind ``background``, of a mapping of kinds ``background.KIND``."""
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
        """A section that names a plugin and gives its settings."""
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
