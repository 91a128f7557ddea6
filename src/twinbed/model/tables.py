"""The input of analyses and reports: a study's outline, its planned and finished runs, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypedDict, cast

from twinbed.model.caution import Caution
from twinbed.model.interim import InterimAnalyses
from twinbed.model.json import Document, Json, document, integer, named, number, text, tuple_of, value_of
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.record import Record
from twinbed.model.run import Level, level

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


_levels = tuple_of(level)


def study_document(value: Json) -> StudyDocument:
    """Return the study. Raises ValueError or TypeError, which name the key."""
    data = document(value)
    for name, read in _READ.items():
        if data.get(name) is not None:
            value_of(data, name, read)
    # An empty value is what a missing one is.
    return cast(StudyDocument, {name: given for name, given in data.items() if given is not None or name in _NULL})


def _testbeds(value: Json) -> object:
    """Check the testbeds: names, with settings if these are known."""
    return named(_any)(value) if isinstance(value, Mapping) else tuple_of(text)(value)


def _any(value: Json) -> Json:
    return value


def _replicates(value: Json) -> object:
    if not isinstance(value, Mapping):
        return integer(value)
    return value_of(value, "least", integer), value_of(value, "most", integer)


def _share(value: Json) -> float:
    share = number(value)
    if not 0 < share < 1:
        raise ValueError(f"{share} is not between 0 and 1")
    return share


def _margin(value: Json) -> float:
    margin = number(value)
    if margin <= 0:
        raise ValueError(f"{margin} is not above 0")
    return margin


def _uncertain(value: Json) -> Document:
    data = document(value)
    value_of(data, "inputs", tuple_of(text))
    value_of(data, "samples", named(integer))
    return data


def _source(value: Json) -> Document:
    data = document(value)
    value_of(data, "name", text)
    value_of(data, "runs", integer)
    value_of(data, "testbeds", named(text))
    return data


def _run(value: Json) -> Document:
    data = document(value)
    value_of(data, "id", text)
    value_of(data, "cell", text)
    value_of(data, "levels", named(level))
    for name in ("replicate", "block", "position"):
        value_of(data, name, integer)
    return data


def _runs(value: Json) -> object:
    runs = tuple_of(_run)(value)
    if len({run["id"] for run in runs}) < len(runs):
        raise ValueError("two runs have one id")
    return runs


_NULL = frozenset({"profile", "uncertain", "sessions"})
_READ: Mapping[str, Callable[[Json], object]] = {
    **dict.fromkeys(("study", "profile", "reference", "reference_reason", "order", "comparison", "sessions"), text),
    **dict.fromkeys(("filename", "source"), text),
    **dict.fromkeys(("exclude_cautions", "overrides", "commands"), tuple_of(text)),
    **dict.fromkeys(("seed", "exclude_decided_after"), integer),
    "testbeds": _testbeds,
    "factors": named(_levels),
    "drawn": named(named(_levels)),
    "uncertain": _uncertain,
    "replicates": _replicates,
    "margin": _margin,
    "confidence": _share,
    "tables": tuple_of(document),
    "import": document,
    "sources": tuple_of(_source),
    "workload": document,
    "runs": _runs,
}
