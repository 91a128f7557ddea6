"""What a file was made by, as its path or a manifest tells: testbed, levels of factors, replicate, host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from twinbed.imports.workload import OwnMetric
from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.run import Level


class ImportRefused(TwinbedError):
    """What was asked cannot be imported so."""


class NotAssigned(Exception):
    """Nothing says what a file is. The text says why."""


@dataclass(frozen=True, slots=True)
class FileKey:
    """The run that one file belongs to."""

    testbed: str
    levels: Mapping[str, Level]
    """The levels of all factors but the testbed."""
    replicate: str | None = None
    """As written; None where nothing says it."""
    host: str = ""
    format: str = ""
    """Its name, where it is given; else it is recognised by content."""
    options: Document = field(default_factory=dict)
    metrics: tuple[OwnMetric, ...] = ()
    facts: Mapping[str, Level] = field(default_factory=dict)
    """What is known of it that is no factor, since it never varies."""
    optional: bool = False
    """Whether it is nothing to worry about if it is of no kind that is known."""
    otherwise: tuple[tuple[str, str, str], ...] = ()
    """The fields that differ where its path can be read in another way: what each is here, and what it would be."""
    snapshot: str = ""
    """Which of several files that are read as one: ``before``, ``after`` or a whole number; empty where it is read alone."""
    within: tuple[str, ...] = ()
    """What the file itself says of each of its measurements, and nothing here: testbed, replicate, names of factors."""


SNAPSHOTS: Mapping[str, str] = {
    **dict.fromkeys(("before", "pre", "start", "begin"), "before"),
    **dict.fromkeys(("after", "post", "stop", "end"), "after"),
}
"""Words for them, in small letters."""


def snapshot_of(text: str) -> str:
    """``before``, ``after`` or a whole number. Raises NotAssigned."""
    if text.isdecimal():
        return str(int(text))
    if text and text.lower() not in SNAPSHOTS:
        raise NotAssigned(f"is of the snapshot {text[:40]!r}, which is not before (pre, start), after (post, end) or a number")
    return SNAPSHOTS.get(text.lower(), "")


class Assigner(Protocol):
    """Something that says of each path what it is."""

    def assign(self, path: str) -> FileKey:
        """``path`` is below the folder that is imported, with slashes. Raises NotAssigned."""
        ...


@dataclass(frozen=True)
class FirstOf:
    """Several, of which the first that knows a file counts."""

    members: Sequence[Assigner]

    def assign(self, path: str) -> FileKey:
        reasons = []
        for each in self.members:
            try:
                return each.assign(path)
            except NotAssigned as error:
                reasons.append(str(error))
        raise NotAssigned("; ".join(dict.fromkeys(reasons)))
