"""Values of JSON texts: the only reader of such texts, and checks of their values.

A text may be a stranger's. Function ``parsed`` reads it; the other functions check a value of it. Each raises ValueError or
TypeError, whose text names the key: ``value_of`` adds it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from typing import Never, ParamSpec, TypeAlias, TypeVar, Union

from pydantic_core import from_json

Json: TypeAlias = Union[bool, int, float, str, Sequence["Json"], Mapping[str, "Json"], None]  # noqa: UP007 names itself
Document: TypeAlias = Mapping[str, Json]
"""An object at the top of a JSON text."""


T = TypeVar("T")
P = ParamSpec("P")
_MOST = 2**63
"""Whole numbers in tables are smaller."""
WRONG = (ValueError, LookupError, TypeError, AttributeError)
"""Errors of reading a document of another shape."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAY_HAVE_ONE = re.compile(rb"\\u[dD]|\xed[\xa0-\xbf]")


def _deep_is_wrong(read: Callable[P, T]) -> Callable[P, T]:
    def loads(*args: P.args, **settings: P.kwargs) -> T:
        try:
            return read(*args, **settings)
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None

    return loads


loads = _deep_is_wrong(json.loads)
"""``json.loads``, but with ValueError for texts that are nested too deeply. Nothing else calls ``json.loads``."""


def parsed(content: bytes | str) -> Json:
    """Return the value of a JSON text of results. Half of a surrogate pair, which no table and no file holds, becomes U+FFFD.
    Raises ValueError for what is no JSON: NaN, bytes that are not UTF-8, and values more than 200 deep are none."""
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    if _MAY_HAVE_ONE.search(raw):
        return foreign(raw.decode("utf-8", "surrogatepass"), _no_constant)
    value: Json = from_json(raw, allow_inf_nan=False, cache_strings="keys")
    return value


def foreign(content: bytes | str, constant: Callable[[str], Json] = float) -> Json:
    """Return the value of a JSON text of another program's, which may hold NaN and infinities. Half of a surrogate pair becomes
    U+FFFD. Raises ValueError."""
    return _without_surrogates(loads(content, parse_constant=constant))


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a JSON number")


def _without_surrogates(value: Json) -> Json:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {_SURROGATE.sub("\ufffd", name): _without_surrogates(member) for name, member in value.items()}
    return [_without_surrogates(element) for element in value] if isinstance(value, Sequence) else value


def value_of(data: Document, name: str, read: Callable[[Json], T]) -> T:
    """Return what ``read`` makes of a value. Raises ValueError that names the key if it is missing or of another kind."""
    if name not in data:
        raise ValueError(f"{name} is missing")
    try:
        return read(data[name])
    except WRONG as error:
        raise ValueError(f"{name}: {why(error)}") from error


def why(error: Exception) -> str:
    """Describe an error in one line; a missing key as missing."""
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    return str(error).partition("\n")[0]


def optional(read: Callable[[Json], T]) -> Callable[[Json], T | None]:
    """Return a reader of what ``read`` reads, or of null."""
    return lambda value: None if value is None else read(value)


def tuple_of(read: Callable[[Json], T]) -> Callable[[Json], tuple[T, ...]]:
    """Return a reader of arrays of what ``read`` reads."""

    def read_all(value: Json) -> tuple[T, ...]:
        return tuple([read(item) for item in items(value)])

    return read_all


def named(read: Callable[[Json], T]) -> Callable[[Json], dict[str, T]]:
    """Return a reader of objects whose every value ``read`` reads."""

    def read_all(value: Json) -> dict[str, T]:
        return {name: value_of(document(value), name, read) for name in document(value)}

    return read_all


def document(value: Json) -> Document:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r:.60} is not an object")
    return value


def items(value: Json) -> Sequence[Json]:
    """Return a JSON array."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{value!r:.60} is not a list")
    return value


def documents(value: Json) -> list[Document]:
    """Return a JSON array of objects."""
    return [document(item) for item in items(value)]


def text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.60} is not text")
    return value


def truth(value: Json) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r:.60} is neither true nor false")
    return value


def number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r:.60} is not a number")
    if not (-_MOST <= value < _MOST if isinstance(value, int) else math.isfinite(value)):
        raise ValueError("the number is too large")
    return value


def integer(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r:.60} is not a whole number")
    if not -_MOST <= value < _MOST:
        raise ValueError("the number is too large")
    return value


_READERS: Mapping[str, Callable[[Json], object]] = {"str": text, "int": integer, "float": number, "bool": truth}


def dataclass_of(kind: type[T], data: Document, **readers: Callable[[Json], object]) -> T:
    """Return a dataclass from an object whose members are its fields. Raises ValueError that names the key.

    Fields are read by their types, or by ``readers`` with their names; a missing member takes its field's default.
    """
    given = {
        name: value_of(data, name, readers.get(name) or _reader(annotation))
        for name, annotation, has_default in _fields(kind)  # type: ignore[arg-type]  # classes are hashable
        if name in data or not has_default
    }
    return kind(**given)


@cache
def _fields(kind: type[object]) -> Sequence[tuple[str, str, bool]]:
    return [
        (entry.name, str(entry.type), entry.default is not MISSING or entry.default_factory is not MISSING)
        for entry in fields(kind)  # type: ignore[arg-type]
    ]


@cache
def _reader(annotation: str) -> Callable[[Json], object]:
    kind, _, rest = annotation.partition(" | ")
    return optional(_READERS[kind]) if rest else _READERS[kind]
