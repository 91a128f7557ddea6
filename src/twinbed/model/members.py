"""Members of a JSON object that others wrote: a member of another kind counts as missing."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.model.json import Document, Json


def object_at(content: object, name: str) -> Document:
    """Return a member that is an object, or an empty one."""
    member = content.get(name) if isinstance(content, dict) else None
    return member if isinstance(member, dict) else {}


def list_at(content: object, name: str) -> Sequence[Json]:
    """Return a member that is a list, or an empty one."""
    member = content.get(name) if isinstance(content, dict) else None
    return member if isinstance(member, list) else []


def objects_at(content: object, name: str) -> Sequence[Document]:
    """Return the objects in a member that is a list."""
    return [member for member in list_at(content, name) if isinstance(member, dict)]


def text_at(content: object, name: str) -> str | None:
    """Return a member that is a text, or None."""
    member = content.get(name) if isinstance(content, dict) else None
    return member if isinstance(member, str) else None
