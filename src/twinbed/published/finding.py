"""A finding of an audit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something printed that does not follow. ``follows`` is what does, ``arithmetic`` how, ``changes`` what it matters for.

    Findings of one ``fact`` have one cause, which shows in several places: a number that is printed in several tables, one
    wrong factor in a column, runs of one table that one cap ended.
    """

    rule: str
    source: str
    table: str
    cell: str
    printed: str
    follows: str
    arithmetic: str
    changes: str
    cause: str
    """What findings of one fact have in common."""
    fact: int = 0
    """Its number, from 1."""
