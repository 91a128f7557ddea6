"""What a JSON text holds, for the places that read or write one.

``json.loads`` checks nothing: the functions here say what is read, and raise TypeError where it is something else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, Union

Json: TypeAlias = Union[bool, int, float, str, Sequence["Json"], Mapping[str, "Json"], None]  # noqa: UP007 names itself
Document: TypeAlias = Mapping[str, Json]
"""An object at the top of a JSON text."""


def document(value: Json) -> Document:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r:.60} is no object")
    return value


def items(value: Json) -> Sequence[Json]:
    """A JSON array."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{value!r:.60} is no list")
    return value


def documents(value: Json) -> list[Document]:
    """A JSON array of objects."""
    return [document(item) for item in items(value)]


def text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.60} is no text")
    return value


def number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r:.60} is no number")
    return value


def integer(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r:.60} is no whole number")
    return value
