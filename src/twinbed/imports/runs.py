"""The runs that files make, before any of them is written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from twinbed.imports.layout.names import in_order, natural
from twinbed.imports.layout.run_key import FileKey
from twinbed.imports.scan import ScannedFile
from twinbed.model.run import Level


class State(StrEnum):
    """What became of a file."""

    READ = "read"
    PARTLY = "partly read"
    REFUSED = "refused"
    COPY = "copy"
    """The same bytes as another file of its cell: one measurement, not two."""
    IGNORED = "ignored"
    """Nothing says what it is."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that the pattern or manifest says something of, or what of it is of one run."""

    file_key: FileKey
    scanned: ScannedFile
    only: tuple[int, ...] | None = None
    """Which of the file's measurements, where it says itself that others are of other runs; None for all."""

    @property
    def pieces(self) -> Sequence[int]:
        """Its measurements: places in ``looked.pieces``."""
        return range(len(self.scanned.pieces)) if self.only is None else self.only

    @property
    def slot(self) -> tuple[str, str]:
        """Two files of a run with the same slot are two measurements of the same thing."""
        return (self.scanned.format or self.file_key.format, self.file_key.host)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A file, for the list of what each became."""

    path: str
    state: State
    reason: str = ""
    candidate: Candidate | None = None
    runs: tuple[str, ...] = ()
    """Ids of the runs that it went into."""


@dataclass(slots=True)
class Made:
    """A run to be. ``replicate`` counts from 0."""

    id: str
    cell: str
    testbed: str
    levels: Mapping[str, Level]
    label: str
    files: list[tuple[Candidate, int]]
    """Each file with the number of its measurement, from 0."""
    refused: list[Candidate]
    replicate: int = 0
    cautions: list[str] = field(default_factory=list)
    """What contradicts that its files are its own."""
    misnamed: list[str] = field(default_factory=list)
    """What its paths say and its files contradict."""

    @property
    def reason(self) -> str | None:
        """Why it failed; None if it has anything that could be read."""
        return None if self.files else "; ".join(dict.fromkeys(each.scanned.reason for each in self.refused))

    @property
    def started_s(self) -> float:
        """As a file says; else when the first was last written."""
        times = [time for one, piece in self.files if (time := one.scanned.pieces[piece].started_s) is not None]
        return min(times) if times else min(each.scanned.mtime_ns for each in self.candidates()) / 1e9

    def candidates(self) -> Iterator[Candidate]:
        yield from (one for one, _ in self.files)
        yield from self.refused


@dataclass(slots=True)
class Plan:
    """All runs, in the order of testbeds, cells and replicates."""

    runs: list[Made] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    """The outcome of every file."""
    numbered: list[str] = field(default_factory=list)
    """What was numbered that had no number of its own, and why."""
    conflicts: list[str] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    """Measurements that are in several cells to the byte, and levels that a file contradicts."""
    otherwise: list[str] = field(default_factory=list)
    """Both readings where the pattern can be read from a path in two ways, and of which paths."""

    stated: list[str] = field(default_factory=list)
    """Factors that files state, with their levels."""

    def counts(self) -> dict[State, int]:
        return {state: sum(each.state is state for each in self.outcomes) for state in State}

    def testbeds(self) -> tuple[str, ...]:
        """The names in natural order."""
        return tuple(sorted({run.testbed for run in self.runs}, key=natural))

    def factors(self) -> dict[str, tuple[Level, ...]]:
        """Levels of each factor but the testbed, numbers by size; factors in the order in which they were named."""
        by_name: dict[str, dict[str, Level]] = {}
        for run in self.runs:
            for name, level in run.levels.items():
                by_name.setdefault(name, {})[json.dumps(level)] = level
        return {name: tuple(in_order(levels.values())) for name, levels in by_name.items()}
