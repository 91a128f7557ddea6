"""Settings of a study file, checked by their params model; each error has its line and column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Generic, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from twinbed.contracts.params import PluginParams
from twinbed.model.declaration import Also
from twinbed.model.near import Near, nearest
from twinbed.model.units import QuantityError, format_size
from twinbed.study.document import Entries, Node, Position, Problem, Scalar, listed, node_at, place_of, plain

Path = tuple[str, ...]
M_co = TypeVar("M_co", bound=BaseModel, covariant=True)

_MAPPING_EXPECTED = {"model_type", "model_attributes_type", "dict_type", "mapping_type", "dataclass_type"}
_QUOTED = re.compile(r"'([^']*)'")


@dataclass(frozen=True, slots=True)
class FromLevel:
    """A setting that a factor decides: the factor's name, and the level with its place in the file."""

    factor: str
    level: Scalar


@dataclass(frozen=True, slots=True)
class Section(Generic[M_co]):
    """The settings of one plugin (or of the topology) as the file gives them."""

    path: str
    """Dotted path of the section in the file, such as ``testbeds.e1000``."""
    model: type[M_co]
    node: Entries
    kind: str = ""
    """The chosen plugin's name."""
    kind_key: str | None = None
    """The key that names the plugin and is not a setting: ``driver`` or ``kind``."""
    excused: frozenset[str] = field(default_factory=frozenset)
    """Settings that may be missing without a report: a factor with an error of its own was meant to set them."""

    def names(self) -> list[str]:
        return list(self.model.model_fields)

    def unknown_keys(self) -> Iterator[Problem]:
        known = self.names()
        for key, place in self.node.keys.items():
            if key != self.kind_key and key not in known:
                allowed = ([self.kind_key] if self.kind_key else []) + known
                also = also_of(self.model)
                message = f"is not a setting of {self.kind}" if self.kind else "is not a setting"
                yield Problem.at(place, self._key((key,)), message, listed(allowed), nearest(key, allowed, also))

    def check(self, levels: Mapping[Path, FromLevel], problems: list[Problem], note: str = "") -> M_co | None:
        """Return the checked params, with the levels put in; None where there is an error, which is appended to ``problems``.

        ``note`` is added to a message about a level. Keys that the model does not know are ignored here.
        """
        known = set(self.names())
        data = {key: plain(value) for key, value in self.node.entries.items() if key in known}
        for path, chosen in levels.items():
            inner = data
            for step in path[:-1]:
                below = inner.get(step)
                inner[step] = inner = dict(below) if isinstance(below, dict) else {}
            inner[path[-1]] = chosen.level.value
        try:
            params = self.model.model_validate(data, context={"folder": str(FilePath(self.node.place.file).parent)})
        except ValidationError as error:
            for detail in error.errors():
                if detail["type"] == "missing" and detail["loc"] and detail["loc"][-1] in self.excused:
                    continue
                problems.append(self._problem(detail, levels, note))
            return None
        faults = list(params.faults()) if isinstance(params, PluginParams) else []
        problems += [self._at(fault.where, fault.message, fault.allowed, fault.near, levels, note) for fault in faults]
        return None if faults else params

    def _problem(self, detail: ErrorDetails, levels: Mapping[Path, FromLevel], note: str) -> Problem:
        location = self._location(detail["loc"], levels)
        written = next((c.level for path, c in levels.items() if path == location), None) or node_at(self.node, location)
        value = shown(written.value if isinstance(written, Scalar) else detail["input"])
        message, allowed, near = _message(detail, value, self.model, location)
        at_key = detail["type"] == "extra_forbidden"
        return self._at(location, message, allowed, near, levels, note, at_key=at_key)

    def _at(
        self,
        location: tuple[str | int, ...],
        message: str,
        allowed: str,
        near: Near,
        levels: Mapping[Path, FromLevel],
        note: str,
        *,
        at_key: bool = False,
    ) -> Problem:
        for path, chosen in levels.items():
            if location[: len(path)] == path:
                return Problem.at(chosen.level.place, f"factors.{chosen.factor}", message + note, allowed, near)
        if not location and levels:
            message += " (with " + ", ".join(f"{c.factor}: {shown(c.level.value)}" for c in levels.values()) + ")"
        place = place_of(self.node, location)
        if at_key:
            place = _key_place(self.node, location) or place
        return Problem.at(place, self._key(location), message, allowed, near)

    def _location(self, loc: Sequence[str | int], levels: Mapping[Path, FromLevel]) -> tuple[str | int, ...]:
        """Return pydantic's location without the steps that name a branch of a union or of a validator."""
        model: type[BaseModel] | None = self.model
        kept: list[str | int] = []
        for step in loc:
            if isinstance(step, str) and model is not None and step in model.model_fields:
                model = _model_in(model.model_fields[step].annotation)
            elif isinstance(step, str) and node_at(self.node, (*kept, step)) is None:
                continue
            kept.append(step)
        return tuple(kept)

    def _key(self, location: Sequence[str | int]) -> str:
        key = self.path
        for step in location:
            key += f"[{step}]" if isinstance(step, int) else f".{step}" if key else str(step)
        return key


def shown(value: object) -> str:
    """Return a value as the file would have it, for a message."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def _size(bounds: Mapping[str, object]) -> str:
    """Return a size's bound as a study file would have it, in brackets; empty for other values."""
    for bound in bounds.values():
        if isinstance(bound, int) and bound >= 4096 and bound % 1024 == 0:
            return f" ({format_size(bound)})"
    return ""


def _message(detail: ErrorDetails, value: str, model: type[BaseModel], location: Sequence[str | int]) -> tuple[str, str, Near]:
    """Return message, allowed and nearest names for one of pydantic's errors about ``value``, shown as written."""
    kind, text, context = detail["type"], detail["msg"], detail.get("ctx", {})
    if kind == "missing":
        described = _field_description(model, location)
        return "is required" + (f": {described}" if described else ""), "", ()
    if kind == "extra_forbidden":
        names = _names_at(model, location[:-1])
        return "is not a setting", listed(names), nearest(str(location[-1]), names, _also_at(model, location[:-1]))
    if kind == "value_error":
        cause = context.get("error")
        if isinstance(cause, QuantityError):
            return cause.message, cause.allowed, cause.near
        return str(cause), "", ()
    if kind in {"literal_error", "enum"}:
        expected = str(context["expected"])
        return f"{value} is not known", expected.replace("'", ""), nearest(str(detail["input"]), _QUOTED.findall(expected))
    if kind in _MAPPING_EXPECTED:
        names = _names_at(model, location)
        return f"{value} is not a mapping", f"a mapping with the keys {listed(names)}" if names else "a mapping", ()
    if text.startswith("Input should be "):
        return (
            f"{value} is not allowed",
            text.removeprefix("Input should be ").split(", unable to parse")[0] + _size(context),
            (),
        )
    return f"{value} is not allowed: {text}", "", ()


def _model_in(annotation: object) -> type[BaseModel] | None:
    """Return the pydantic model that an annotation is or contains."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part)) is not None), None)


def _descend(model: type[BaseModel], location: Sequence[str | int]) -> type[BaseModel] | None:
    inner: type[BaseModel] | None = model
    named = False
    for step in location:
        if named:  # the step is one of the names in a mapping of models
            named = False
            continue
        if inner is None or not isinstance(step, str) or step not in inner.model_fields:
            return None
        annotation = inner.model_fields[step].annotation
        inner, named = _model_in(annotation), get_origin(annotation) is dict
    return None if named else inner


def _names_at(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    inner = _descend(model, location)
    return [] if inner is None else [field.alias or name for name, field in inner.model_fields.items()]


def _also_at(model: type[BaseModel], location: Sequence[str | int]) -> Mapping[str, Sequence[str]]:
    inner = _descend(model, location)
    return {} if inner is None else also_of(inner)


def also_of(model: type[BaseModel]) -> Mapping[str, tuple[str, ...]]:
    """Return setting -> other words that people search for."""
    return {name: words_of(field.metadata) for name, field in model.model_fields.items()}


def words_of(marks: Sequence[object]) -> tuple[str, ...]:
    return tuple(word for mark in marks if isinstance(mark, Also) for word in mark.words)


def _field_description(model: type[BaseModel], location: Sequence[str | int]) -> str:
    inner = _descend(model, location[:-1])
    fields = {} if inner is None else inner.model_fields
    return (fields[str(location[-1])].description or "") if str(location[-1]) in fields else ""


def _key_place(node: Node, location: Sequence[str | int]) -> Position | None:
    """Return the position of the key at the end of ``location``."""
    for step in location[:-1]:
        node = node.entries.get(str(step), node) if isinstance(node, Entries) else node
    return node.keys.get(str(location[-1])) if isinstance(node, Entries) else None
