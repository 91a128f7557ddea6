"""A finding of an audit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something printed that does not follow. ``follows`` is what does, ``arithmetic`` how, ``changes`` what it matters for."""

    rule: str
    source: str
    table: str
    cell: str
    printed: str
    follows: str
    arithmetic: str
    changes: str
