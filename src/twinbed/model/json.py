"""What a JSON text holds, for the places that read or write one.

``json.loads`` checks nothing: the functions here say what is read, and raise TypeError where it is something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias, Union

Json: TypeAlias = Union[bool, int, float, str, Sequence["Json"], Mapping[str, "Json"], None]  # noqa: UP007 names itself
Document: TypeAlias = Mapping[str, Json]
"""An object at the top of a JSON text."""


_SURROGATE = re.compile("[\ud800-\udfff]")
_MAY_HAVE_ONE = re.compile(rb"\\u[dD]|\xed[\xa0-\xbf]")


def parsed(content: bytes | str) -> Json:
    """Read JSON that others wrote. Half of a surrogate pair, which no table and no file can hold, becomes U+FFFD. Raises
    ValueError."""
    value: Json = json.loads(content)
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return _whole(value) if _MAY_HAVE_ONE.search(raw) else value


def _whole(value: Json) -> Json:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {_SURROGATE.sub("\ufffd", name): _whole(each) for name, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, Sequence) else value


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
