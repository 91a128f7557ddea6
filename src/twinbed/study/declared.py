"""Settings as declared: type, bounds, default, example and sentence; and the subjects of a study file that have them.

They come from the pydantic models that check the study file. So ``twinbed describe``, the manual's tables and the schema for
editors say what is checked.

"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from twinbed.contracts.params import PluginParams
from twinbed.model.declaration import NumbersToo, TextAlone
from twinbed.model.interim import UntilDecided
from twinbed.model.topology import Link, Topology
from twinbed.model.units import Quantity
from twinbed.study.catalogue import Catalogue
from twinbed.study.document import parse, plain
from twinbed.study.factor import settings
from twinbed.study.pivot import Pivot
from twinbed.study.sections import Machine
from twinbed.study.study import KEYS, Head


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a number, in base units; None where there is none."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None

    def hold(self, value: float) -> bool:
        return not (
            (self.least is not None and value < self.least)
            or (self.most is not None and value > self.most)
            or (self.above is not None and value <= self.above)
            or (self.below is not None and value >= self.below)
        )


@dataclass(frozen=True, slots=True)
class Kind:
    """One type of values that a setting takes."""

    name: str
    """For readers, such as ``a whole number``."""
    json: str = "string"
    """JSON Schema's name of it; empty for any value."""
    choices: tuple[str, ...] = ()
    quantity: Quantity | None = None
    bounds: Bounds = Bounds()
    pattern: str | None = None
    model: type[BaseModel] | None = None
    """The model of a mapping with its own keys."""
    text_alone: str | None = None
    """The key of such a mapping that a plain text sets."""
    of: tuple[Kind, ...] = ()
    """The kinds of a list's items, or of a mapping's values."""

    def sentence(self) -> str:
        """Say what is allowed, such as ``a whole number from 1 to 80``."""
        if self.choices:
            return ", ".join(filter(None, self.choices))
        if self.of:
            return f"{self.name}, each {' or '.join(dict.fromkeys(kind.sentence() for kind in self.of))}"
        if self.text_alone is not None:
            return f"{self.name}, or only its {self.text_alone}"
        return self.name + self._limits()

    def _limits(self) -> str:
        at = self.bounds
        low = at.least if at.least is not None else at.above
        high = at.most if at.most is not None else at.below
        parts = []
        if low is not None:
            parts.append(f"{'from' if at.least is not None else 'above'} {self.written(low)}")
        if high is not None:
            word = "to" if at.most is not None and parts else "at most" if at.most is not None else "below"
            parts.append(f"{'and ' if word == 'below' and parts else ''}{word} {self.written(high)}")
        return "".join(f" {part}" for part in parts)

    def written(self, value: object) -> str:
        """Return a value as a study file has it."""
        if isinstance(value, Enum):
            return str(value.value)
        if isinstance(value, bool):
            return "on" if value else "off"
        if value == 0:
            return "0"
        if isinstance(value, int | float):
            return f"{value:.15g}" if self.quantity is None else self.quantity.write(value)
        return str(value)


@dataclass(frozen=True, slots=True)
class Declared:
    """A setting."""

    name: str
    about: str
    kinds: tuple[Kind, ...]
    null: bool
    """True if null is a value."""
    required: bool
    default: str
    """As a study file would have it; empty where there is none, or where it is not a scalar."""
    examples: tuple[object, ...] = field(default=(), hash=False)
    """Valid values as a study file has them; empty for a mapping with its own keys."""

    @property
    def models(self) -> tuple[Kind, ...]:
        """Return the mappings with their own keys that it takes, or that it lists."""
        return tuple(taken for kind in self.kinds for taken in (kind, *kind.of) if taken.model is not None)

    def allowed(self) -> str:
        texts = [*dict.fromkeys(kind.sentence() for kind in self.kinds), *(["null"] if self.null else [])]
        return ", or ".join(texts)


@cache
def declared(model: type[BaseModel]) -> tuple[Declared, ...]:
    """Return the settings of a model, its own before those of what it inherits."""
    order = [name for base in model.__mro__ for name in vars(base).get("__annotations__", {}) if name in model.model_fields]
    names = dict.fromkeys([*order, *model.model_fields])
    return tuple(_declared(model.model_fields[name].alias or name, model.model_fields[name]) for name in names)


def _declared(name: str, of: FieldInfo) -> Declared:
    kinds, null = _kinds(of.annotation, [*of.metadata])
    default = None if of.is_required() else of.get_default(call_default_factory=True, validated_data={})
    plain = not isinstance(default, BaseModel | Mapping | Sequence) or isinstance(default, str)
    written = next(iter(kinds)).written(default) if plain and default is not None else ""
    text = "null" if null and default is None and not of.is_required() else written
    examples = tuple(of.examples or ()) or tuple(_examples(kinds, default, written))
    return Declared(name, of.description or "", kinds, null, of.is_required(), text, examples)


def _kinds(annotation: object, marks: Sequence[object]) -> tuple[tuple[Kind, ...], bool]:
    """Return the types that an annotation stands for, and whether null is one."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = [
            inner_mark for mark in arguments[1:] for inner_mark in (mark.metadata if isinstance(mark, FieldInfo) else (mark,))
        ]
        return _kinds(arguments[0], [*marks, *inner])
    if origin in (Union, types.UnionType):
        choices = [_kinds(choice, marks) for choice in arguments if choice is not type(None)]
        null = len(choices) < len(arguments) or any(nullable for _, nullable in choices)
        return tuple(dict.fromkeys(kind for kinds, _ in choices for kind in kinds)), null
    kind = _kind(annotation, origin, arguments, marks)
    return (kind, Kind("a number", "number")) if any(isinstance(mark, NumbersToo) for mark in marks) else (kind,), False


def _kind(annotation: object, origin: object, arguments: tuple[object, ...], marks: Sequence[object]) -> Kind:
    if origin is Literal:
        return Kind("one of these", choices=tuple(str(argument) for argument in arguments))
    if origin in (dict, Mapping):
        return Kind("a mapping", "object", of=_kinds(arguments[1], ())[0])
    if origin in (tuple, list, Sequence):
        return Kind("a list", "array", of=_kinds(arguments[0], ())[0])
    if annotation is Any or not isinstance(annotation, type):
        return Kind("any value", "")
    if issubclass(annotation, BaseModel):
        alone = next((mark.setting for mark in marks if isinstance(mark, TextAlone)), None)
        return Kind("a mapping", "object", model=annotation, text_alone=alone)
    if issubclass(annotation, Enum):
        return Kind("one of these", choices=tuple(str(member.value) for member in annotation))
    if annotation is bool:
        return Kind("on or off", "boolean", choices=("on", "off"))
    if annotation in (int, float):
        quantity = next((mark for mark in marks if isinstance(mark, Quantity)), None)
        whole = annotation is int
        name = f"a {quantity.name}" if quantity is not None else "a whole number" if whole else "a number"
        return Kind(name, "integer" if whole else "number", quantity=quantity, bounds=_bounds(marks))
    pattern = next((text for mark in marks if isinstance(text := getattr(mark, "pattern", None), str)), None)
    return Kind("a path" if issubclass(annotation, Path) else "a text", pattern=pattern)


def _bounds(marks: Sequence[object]) -> Bounds:
    limits: dict[str, float] = {}
    for mark in marks:
        for name, type_, end in (("least", Ge, "ge"), ("most", Le, "le"), ("above", Gt, "gt"), ("below", Lt, "lt")):
            if isinstance(mark, type_):
                limits[name] = getattr(mark, end)
    return Bounds(**limits)


def _examples(kinds: Sequence[Kind], default: object, written: str) -> Iterator[object]:
    """Yield examples from the type: choices other than the default, the default, or a quantity within the bounds."""
    for kind in kinds:
        if kind.choices:
            yield from (choice for choice in kind.choices if choice != written)
        elif isinstance(default, int | float):
            more = [value for value in (default, 2 * default or 1) if kind.bounds.hold(value)]
            yield from (value if kind.quantity is None else kind.written(value) for value in more)
        elif written:
            yield written
        elif kind.quantity is not None:
            yield from (text for text in kind.quantity.examples if kind.bounds.hold(kind.quantity.read(text)))
        elif kind.json in ("integer", "number") and kind.bounds.least is not None:
            yield kind.bounds.least


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
"""The models of keys that have their own settings."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A key of a study file, or a plugin."""

    sort: str
    """A key of ``TITLES``."""
    name: str
    about: str
    example: str
    """As a study file has it."""
    path: str
    """The prefix of its settings' names as factors, such as ``testbed`` of a driver; empty where no setting can be a factor."""
    settings: tuple[Declared, ...] = ()
    model: type[BaseModel] | None = None

    def path_of(self, setting: Declared) -> str:
        return f"{self.path}.{setting.name}"


def subjects(catalogue: Catalogue) -> tuple[Subject, ...]:
    """Return all subjects, in the order of the manual."""
    return (*_keys(), *_plugins(catalogue))


def factor_paths(catalogue: Catalogue) -> frozenset[str]:
    """Return the dotted paths of all settings that can be factors, with one background load."""
    paths: set[str] = set()
    for workload in catalogue.workloads.values():
        for background in catalogue.backgrounds.values():
            paths |= settings(workload, {"background": background}, catalogue.drivers.values(), catalogue.instruments).keys()
    return frozenset(paths)


def _keys() -> Iterator[Subject]:
    for name, key in KEYS.items():
        model = _OF_KEYS.get(name)
        path = name if model is Topology else ""
        own = tuple(setting for setting in declared(Head) if setting.name == name)
        yield Subject(KEY, name, key.about, key.example, path, own + (declared(model) if model else ()), model)
        if model is Topology:
            description = Topology.model_fields["link"].description or ""
            example = "topology: {link: {rate: 100mbit, delay: 5ms}}"
            yield Subject(KEY, "topology.link", description, example, "topology.link", declared(Link), Link)


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
            first = next(setting for setting in settings if setting.required or setting.kinds[0].name != "a text")
            given = needed(model) or {first.name: first.examples[0]}
            example = _EXAMPLES[sort].format(name=name, settings=_inline(given))
            own = f"{path}.{name}" if sort == INSTRUMENT else path
            yield Subject(sort, name, catalogue.summaries.get(name, ""), example, own, settings, model)


def needed(model: type[PluginParams]) -> Mapping[str, object]:
    """Return examples of the settings without which a plugin does nothing."""
    return model.typical or {setting.name: setting.examples[0] for setting in declared(model) if setting.required}


_EXAMPLES: Mapping[str, str] = {
    DRIVER: "testbeds: {{mine: {{driver: {name}, {settings}}}}}",
    WORKLOAD: "workload: {{kind: {name}, {settings}}}",
    BACKGROUND: "background: {{kind: {name}, {settings}}}",
    INSTRUMENT: "instruments: {{{name}: {{{settings}}}}}",
}


def _inline(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name}: {written(value)}" for name, value in settings.items())


def written(value: object) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + _inline({str(name): inner for name, inner in value.items()}) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str):
        node = None if set(value) & set(",[]{}") else parse(value, "", [])
        return value if node is not None and plain(node) == value else json.dumps(value)
    return json.dumps(value)
