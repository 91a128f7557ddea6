"""Members of a JSON object that others wrote: a member of another kind counts as one that is not there."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.model.json import Document, Json


def object_at(content: object, name: str) -> Document:
    """A member that is an object, or an empty one."""
    member = content.get(name) if isinstance(content, dict) else None
    return member if isinstance(member, dict) else {}


def list_at(content: object, name: str) -> Sequence[Json]:
    """A member that is a list, or an empty one."""
    member = content.get(name) if isinstance(content, dict) else None
    return member if isinstance(member, list) else []


def objects_at(content: object, name: str) -> Sequence[Document]:
    """The objects of a member that is a list."""
    return [each for each in list_at(content, name) if isinstance(each, dict)]


def text_at(content: object, name: str) -> str | None:
    """A member that is a text, or None."""
    member = content.get(name) if isinstance(content, dict) else None
    return member if isinstance(member, str) else None
