"""What a JSON text holds, for the places that read or write one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, Union

Json: TypeAlias = Union[bool, int, float, str, Sequence["Json"], Mapping[str, "Json"], None]  # noqa: UP007 names itself
Document: TypeAlias = Mapping[str, Json]
"""An object at the top of a JSON text."""
