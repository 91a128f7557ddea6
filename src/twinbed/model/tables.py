"""The input of analyses and reports: a study's outline, its planned and finished runs, and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypedDict

from twinbed.model.caution import Caution
from twinbed.model.interim import InterimAnalyses
from twinbed.model.json import Document
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.record import Record
from twinbed.model.run import Level

if TYPE_CHECKING:
    import pyarrow as pa


TESTBED = "testbed"
"""The factor that names the testbed of a run."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One run that the study asks for."""

    id: str
    cell: str
    levels: Mapping[str, Level]
    replicate: int
    block: int
    position: int


class PlannedDocument(TypedDict):
    id: str
    cell: str
    levels: Mapping[str, Level]
    replicate: int
    block: int
    position: int


class MergedSource(TypedDict):
    """Results that were merged. ``testbeds``: name there -> name here."""

    name: str
    runs: int
    testbeds: Mapping[str, str]


class UncertainDocument(TypedDict):
    """Uncertain inputs, and how many draws each group of testbeds, joined by ``+``, runs."""

    inputs: Sequence[str]
    samples: Mapping[str, int]


StudyDocument = TypedDict(
    "StudyDocument",
    {
        "study": str,
        "profile": str | None,
        "testbeds": Mapping[str, Sequence[Document]],
        "reference": str | None,
        "reference_reason": str,
        "exclude_cautions": Sequence[str],
        "exclude_decided_after": int,
        "factors": Mapping[str, Sequence[Level]],
        "drawn": Mapping[str, Mapping[str, Sequence[Level]]],
        "uncertain": UncertainDocument | None,
        "replicates": int | Document,
        "order": str,
        "comparison": str,
        "sessions": str | None,
        "seed": int,
        "margin": float,
        "confidence": float,
        "tables": Sequence[Document],
        "filename": str,
        "overrides": Sequence[str],
        "source": str,
        "import": Document,
        "sources": Sequence[MergedSource],
        "commands": Sequence[str],
        "workload": Document,
        "runs": Sequence[PlannedDocument],
    },
    total=False,
)
"""The keys of study.json that are read, whichever command wrote it: ``run``, ``import`` or ``merge``. Any may be missing."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The part of a resolved study that a reader of its results needs. It is empty for results without a study."""

    name: str
    testbeds: tuple[str, ...]
    """In the order of the study file."""
    reference: str | None
    margin: float = 0.10
    confidence: float = 0.95
    seed: int | None = None
    source: str = ""
    """The study file's text."""
    data: StudyDocument = field(default_factory=StudyDocument)
    """All of ``study.json``."""
    interim: InterimAnalyses | None = None
    """Only for a study that runs until it is decided; None for any other."""
    by: str = TESTBED
    """The factor whose levels are ``testbeds`` and ``reference``; for opened results always the testbed."""


class Tables(Protocol):
    """An opened results folder. ``store.Store`` is one."""

    @property
    def shown(self) -> Path:
        """Return the folder or the archive as the user knows it, for messages."""
        ...

    @property
    def outline(self) -> Outline: ...
    @property
    def planned(self) -> Sequence[Planned]: ...
    @property
    def records(self) -> Sequence[Record]: ...
    @property
    def cautions(self) -> Sequence[Caution]:
        """Return the cautions of the results folder itself."""
        ...

    @property
    def other_settings(self) -> int:
        """Return how many runs of the folder are not among the records, because the present study does not ask for them."""
        ...

    @property
    def link_checks(self) -> Sequence[LinkCheck]:
        """Return the measurements of each cell's links."""
        ...

    def table(self, name: str) -> pa.Table:
        """Return a table by name; one without rows or columns if nothing has written it."""
        ...
