"""What of a study file there is to describe: its keys, and plugins with their settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from twinbed.contracts.params import PluginParams
from twinbed.model.interim import UntilDecided
from twinbed.model.topology import Link, Topology
from twinbed.study.catalogue import Catalogue
from twinbed.study.declared import Declared, declared
from twinbed.study.document import parse, plain
from twinbed.study.factor import settings
from twinbed.study.keys import KEYS
from twinbed.study.machine import Machine
from twinbed.study.pivot import Pivot
from twinbed.study.study import Head

KEY, DRIVER, WORKLOAD, BACKGROUND, INSTRUMENT = "key", "driver", "workload", "background", "instrument"
TITLES: Mapping[str, str] = {
    KEY: "Keys of a study file",
    DRIVER: "Drivers of testbeds",
    WORKLOAD: "Workloads",
    BACKGROUND: "Background loads",
    INSTRUMENT: "Instruments",
}
"""The sorts of subjects, in the order of the manual."""
_OF_KEYS: Mapping[str, type[BaseModel]] = {
    "machine": Machine,
    "topology": Topology,
    "topology.link": Link,
    "replicates": UntilDecided,
    "tables": Pivot,
}
"""The models of keys that have settings of their own."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A key of a study file, or a plugin."""

    sort: str
    """Of ``TITLES``."""
    name: str
    about: str
    example: str
    """As it stands in a study file."""
    path: str
    """What a setting of it is called as a factor, but for its own name, such as ``testbed`` of a driver; empty for none."""
    settings: tuple[Declared, ...] = ()
    model: type[BaseModel] | None = None

    def path_of(self, setting: Declared) -> str:
        return f"{self.path}.{setting.name}"


def subjects(catalogue: Catalogue) -> tuple[Subject, ...]:
    """All there are, in the order of the manual."""
    return (*_keys(), *_plugins(catalogue))


def factor_paths(catalogue: Catalogue) -> frozenset[str]:
    """The dotted paths of all settings that can be factors, of one background load."""
    paths: set[str] = set()
    for workload in catalogue.workloads.values():
        for background in catalogue.backgrounds.values():
            paths |= settings(workload, {"background": background}, catalogue.drivers.values(), catalogue.instruments).keys()
    return frozenset(paths)


def _keys() -> Iterator[Subject]:
    for name, key in KEYS.items():
        model = _OF_KEYS.get(name)
        path = name if model is Topology else ""
        own = tuple(each for each in declared(Head) if each.name == name)
        yield Subject(KEY, name, key.about, key.example, path, own + (declared(model) if model else ()), model)
        if model is Topology:
            about = Topology.model_fields["link"].description or ""
            example = "topology: {link: {rate: 100mbit, delay: 5ms}}"
            yield Subject(KEY, "topology.link", about, example, "topology.link", declared(Link), Link)


def _plugins(catalogue: Catalogue) -> Iterator[Subject]:
    models: tuple[tuple[str, str, Mapping[str, type[PluginParams]]], ...] = (
        (DRIVER, "testbed", catalogue.drivers),
        (WORKLOAD, "workload", catalogue.workloads),
        (BACKGROUND, "background", catalogue.backgrounds),
        (INSTRUMENT, "instruments", catalogue.instruments),
    )
    for sort, path, known in models:
        for name, model in known.items():
            settings = declared(model)
            first = next(each for each in settings if each.required or each.kinds[0].name != "a text")
            given = needed(model) or {first.name: first.examples[0]}
            example = _EXAMPLES[sort].format(name=name, settings=_inline(given))
            own = f"{path}.{name}" if sort == INSTRUMENT else path
            yield Subject(sort, name, catalogue.summaries.get(name, ""), example, own, settings, model)


def needed(model: type[PluginParams]) -> Mapping[str, object]:
    """Examples of the settings without which a plugin does nothing."""
    return model.typical or {each.name: each.examples[0] for each in declared(model) if each.required}


_EXAMPLES: Mapping[str, str] = {
    DRIVER: "testbeds: {{mine: {{driver: {name}, {settings}}}}}",
    WORKLOAD: "workload: {{kind: {name}, {settings}}}",
    BACKGROUND: "background: {{kind: {name}, {settings}}}",
    INSTRUMENT: "instruments: {{{name}: {{{settings}}}}}",
}


def _inline(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name}: {written(value)}" for name, value in settings.items())


def written(value: object) -> str:
    """A value in YAML, on one line."""
    if isinstance(value, Mapping):
        return "{" + _inline({str(name): each for name, each in value.items()}) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str):
        node = None if set(value) & set(",[]{}") else parse(value, "", [])
        return value if node is not None and plain(node) == value else json.dumps(value)
    return json.dumps(value)
