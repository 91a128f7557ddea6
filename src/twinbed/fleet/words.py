"""Messages between the controller of a fleet and its members. A member's answer crosses a network as JSON
(``executor/answers``) and has these types; ``fleet/arrival`` checks its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.model.error import TwinbedError
from twinbed.model.run import Phase, Status
from twinbed.study.run import Run


class LeftOut(TwinbedError):
    """A member cannot make runs of this study; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Needed:
    """The packages of plugins that the study uses, which a machine needs before it can understand any run."""

    plugins: Mapping[str, str]
    """Plugin as ``workloads.echo`` -> its package and version, as pip installs it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The question to a machine before it gets runs."""

    results: str
    """Identity of the runs' results."""
    cells: tuple[Run, ...]
    """A run of each cell that it may get."""
    bytes: int
    """The space that its runs may take until they are fetched."""
    image: bool
    """Hosts are made from the image."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A machine's answer."""

    machine: str
    image: str
    """The digest of its image; empty if none is needed."""
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
    """A complete or failed run, which its member keeps until the controller has it."""

    run: str
    status: Status
    seconds: float
    failed_phase: Phase | None
    reason: str | None
    files: Mapping[str, File]
    """Files by path in the run's folder."""
    link_check: str | None
    """The cell's check of links as JSON text."""


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
