"""What the controller of a fleet and its members say to each other. What a member answers crosses a network as JSON
(``executor/answers``): it is of these types, and ``fleet/arrival`` checks what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.model.error import TwinbedError
from twinbed.model.run import Phase, Status
from twinbed.study.run import Run


class LeftOut(TwinbedError):
    """A member cannot make runs of this study. The message says why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a machine is asked before it is given runs."""

    results: str
    """Identity of the results that runs are made for."""
    cells: tuple[Run, ...]
    """A run of each cell that it may be given."""
    bytes: int
    """That its runs may take until they are fetched."""
    image: bool
    """Whether hosts are made from the image."""


@dataclass(frozen=True, slots=True)
class Offered:
    """What it answers."""

    machine: str
    image: str
    """The digest of its own; empty where none is needed."""
    facts: Mapping[str, str | int | None]


@dataclass(frozen=True, slots=True)
class Ordered:
    results: str
    run: Run


@dataclass(frozen=True, slots=True)
class File:
    """``digest``: BLAKE2b of the content."""

    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Made:
    """A run that is complete or failed, and kept by its member until it is told that it was fetched."""

    run: str
    status: Status
    seconds: float
    failed_phase: Phase | None
    reason: str | None
    files: Mapping[str, File]
    """By their paths in the run's folder."""
    link_check: str | None
    """The JSON text of the cell's."""


@dataclass(frozen=True, slots=True)
class Piece:
    path: str
    start: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """Pieces of a run's files."""

    results: str
    run: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Fetched:
    """A run that the controller has."""

    results: str
    run: str
