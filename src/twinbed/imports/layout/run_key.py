"""The run of a file, by its path or a manifest: testbed, levels of factors, replicate, host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from twinbed.metrics.own import OwnMetric
from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.run import Level


class ImportRefused(TwinbedError):
    """The import cannot be done as asked."""


class NotAssigned(Exception):
    """A file has no run. The text is the reason."""


@dataclass(frozen=True, slots=True)
class FileKey:
    """The run that one file belongs to."""

    testbed: str
    levels: Mapping[str, Level]
    """The levels of all factors but the testbed."""
    replicate: str | None = None
    """As written; None where nothing gives it."""
    host: str = ""
    format: str = ""
    """Its name, where it is given; else the content decides."""
    options: Document = field(default_factory=dict)
    metrics: tuple[OwnMetric, ...] = ()
    facts: Mapping[str, Level] = field(default_factory=dict)
    """Known facts that are no factors, since they never vary."""
    optional: bool = False
    """True if the file may be of an unknown kind without harm."""
    otherwise: tuple[tuple[str, str, str], ...] = ()
    """(field, text, other text) where the path can be read in another way."""
    snapshot: str = ""
    """The place among files that are read as one: ``before``, ``after`` or a whole number; empty where it is read alone."""
    within: tuple[str, ...] = ()
    """Keys that only the file gives, for each measurement: testbed, replicate, names of factors."""


SNAPSHOTS: Mapping[str, str] = {
    **dict.fromkeys(("before", "pre", "start", "begin"), "before"),
    **dict.fromkeys(("after", "post", "stop", "end"), "after"),
}
"""Words for them, in small letters."""


def snapshot_of(text: str) -> str:
    """Return ``before``, ``after`` or a whole number. Raises NotAssigned."""
    if text.isdecimal():
        return str(int(text))
    if text and text.lower() not in SNAPSHOTS:
        raise NotAssigned(f"has the snapshot {text[:40]!r}; allowed: before (pre, start), after (post, end) or a number")
    return SNAPSHOTS.get(text.lower(), "")


class Assigner(Protocol):
    """A rule that gives each path its run."""

    def assign(self, path: str) -> FileKey:
        """Return the run of a path below the imported folder, with slashes. Raises NotAssigned."""
        ...


@dataclass(frozen=True)
class FirstOf:
    """Several rules; the first that knows a file counts."""

    members: Sequence[Assigner]

    def assign(self, path: str) -> FileKey:
        reasons = []
        for member in self.members:
            try:
                return member.assign(path)
            except NotAssigned as error:
                reasons.append(str(error))
        raise NotAssigned("; ".join(dict.fromkeys(reasons)))
