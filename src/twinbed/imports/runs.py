"""The runs that files make, before any of them is written; parts of files with several runs; and cells without runs."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from twinbed.contracts.format import RunKey
from twinbed.imports.layout.names import in_order, natural
from twinbed.imports.layout.run_key import FileKey
from twinbed.imports.scan import ScannedFile
from twinbed.model.run import Level


class State(StrEnum):
    """The outcome of a file."""

    READ = "read"
    PARTLY = "partly read"
    REFUSED = "refused"
    COPY = "copy"
    """The same bytes as another file of its cell: one measurement, not two."""
    IGNORED = "ignored"
    """Nothing gives it a run."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that a pattern or manifest gives a run, or the part of it that is of one run."""

    file_key: FileKey
    scanned: ScannedFile
    only: tuple[int, ...] | None = None
    """The places of its measurements in the file, where the file names other runs for others; None for all."""

    @property
    def pieces(self) -> Sequence[int]:
        """Return the places of its measurements in ``scanned.pieces``."""
        return range(len(self.scanned.pieces)) if self.only is None else self.only

    @property
    def slot(self) -> tuple[str, str]:
        """Return format and host: two files of a run with the same slot measure the same thing."""
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
    """Reasons to doubt that its files are its own."""
    misnamed: list[str] = field(default_factory=list)
    """Names in its paths that its files contradict."""

    @property
    def reason(self) -> str | None:
        """Return why it failed; None if anything could be read."""
        return None if self.files else "; ".join(dict.fromkeys(candidate.scanned.reason for candidate in self.refused))

    @property
    def started_s(self) -> float:
        """Return the start by a file; else when the first file was last written."""
        times = [time for candidate, piece in self.files if (time := candidate.scanned.pieces[piece].started_s) is not None]
        return min(times) if times else min(candidate.scanned.mtime_ns for candidate in self.candidates()) / 1e9

    def candidates(self) -> Iterator[Candidate]:
        yield from (candidate for candidate, _ in self.files)
        yield from self.refused


@dataclass(slots=True)
class Plan:
    """All runs, in the order of testbeds, cells and replicates."""

    runs: list[Made] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    """The outcome of every file."""
    numbered: list[str] = field(default_factory=list)
    """Measurements that were numbered because they had no number, and the reason."""
    conflicts: list[str] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    """Measurements with the same bytes in several cells, and levels that a file contradicts."""
    otherwise: list[str] = field(default_factory=list)
    """Both readings where a pattern reads a path in two ways, and such paths."""

    stated: list[str] = field(default_factory=list)
    """Factors that files state, with their levels."""

    def counts(self) -> dict[State, int]:
        return {state: sum(outcome.state is state for outcome in self.outcomes) for state in State}

    def testbeds(self) -> tuple[str, ...]:
        """Return the testbeds' names in natural order."""
        return tuple(sorted({run.testbed for run in self.runs}, key=natural))

    def factors(self) -> dict[str, tuple[Level, ...]]:
        """Return the levels of each factor but the testbed, numbers by size; factors in the order in which they were named."""
        by_name: dict[str, dict[str, Level]] = {}
        for run in self.runs:
            for name, level in run.levels.items():
                by_name.setdefault(name, {})[json.dumps(level)] = level
        return {name: tuple(in_order(levels.values())) for name, levels in by_name.items()}


def parts(file: Candidate) -> list[Candidate]:
    """Return the file, or its part of each testbed, levels and replicate, in the order of the file.

    A file that should name its runs and does not, or cannot be read, is of no testbed: nobody knows which runs are missing.
    """
    file_key, scanned = file.file_key, file.scanned
    if not file_key.within:
        return [file]
    known: dict[str, RunKey] = {}
    places: dict[str, list[int]] = {}
    for place, piece in enumerate(scanned.pieces):
        if piece.run_key is not None and piece.run_key.known:
            known.setdefault(piece.run_key.key, piece.run_key)
            places.setdefault(piece.run_key.key, []).append(place)
    if not known:
        reason = scanned.reason or f"is {scanned.format}, which does not read {', '.join(file_key.within)} from a file"
        return [Candidate(replace(file_key, testbed=""), replace(scanned, pieces=(), reason=reason))]
    return [
        Candidate(
            replace(
                file_key,
                testbed=of.testbed or file_key.testbed,
                levels={**file_key.levels, **of.levels},
                replicate=of.replicate if "replicate" in file_key.within else file_key.replicate,
            ),
            scanned,
            tuple(places[key]),
        )
        for key, of in known.items()
    ]


def whole(members: list[Candidate]) -> Candidate:
    """Return the file of these parts, with the keys that all parts share."""
    first = members[0]
    if first.only is None:
        return first
    file_keys = [member.file_key for member in members]
    same = {
        name: level for name, level in first.file_key.levels.items() if all(key.levels.get(name) == level for key in file_keys)
    }
    file_key = replace(
        first.file_key,
        testbed=first.file_key.testbed if len({key.testbed for key in file_keys}) == 1 else "",
        levels=same,
        replicate=first.file_key.replicate if len({key.replicate for key in file_keys}) == 1 else None,
    )
    return Candidate(file_key, first.scanned)


MOST_CROSS = 100_000
"""Combinations that are searched for gaps."""


@dataclass(frozen=True, slots=True)
class CellCount:
    """A cell of one testbed."""

    testbed: str
    levels: Mapping[str, Level]
    runs: int
    failed: int


def cell_counts(runs: Sequence[Made]) -> list[CellCount]:
    """Return every cell that has runs, in order."""
    runs_of: dict[str, list[Made]] = {}
    for run in runs:
        runs_of.setdefault(run.cell, []).append(run)
    return [
        CellCount(members[0].testbed, members[0].levels, len(members), sum(run.reason is not None for run in members))
        for members in runs_of.values()
    ]


def gaps(
    runs: Sequence[Made], testbeds: Sequence[str], factors: Mapping[str, Sequence[Level]]
) -> list[dict[str, Level]] | None:
    """Return cells of the full cross without a run; None where the cross is too large to be meant."""
    if len(testbeds) * math.prod(len(levels) for levels in factors.values()) > MOST_CROSS:
        return None
    have = {(run.testbed, _key(run.levels)) for run in runs}
    return [cell for cell in _cross(testbeds, factors) if (str(cell["testbed"]), _key(cell, "testbed")) not in have]


def apart(runs: Sequence[Made], reference: str) -> list[str]:
    """Return the testbeds that share no cell with the reference and so cannot be compared."""
    cells: dict[str, set[str]] = {}
    for run in runs:
        cells.setdefault(run.testbed, set()).add(_key(run.levels))
    own = cells.get(reference, set())
    return [testbed for testbed, keys in cells.items() if testbed != reference and not keys & own]


def uneven(counts: Sequence[CellCount]) -> tuple[int, list[CellCount]]:
    """Return the commonest number of complete runs, and the cells that have fewer."""
    usual = Counter(count.runs - count.failed for count in counts).most_common(1)[0][0] if counts else 0
    return usual, [count for count in counts if count.runs - count.failed < usual]


def _cross(testbeds: Sequence[str], factors: Mapping[str, Sequence[Level]]) -> Iterator[dict[str, Level]]:
    for testbed, *levels in itertools.product(testbeds, *factors.values()):
        yield {"testbed": testbed, **dict(zip(factors, levels, strict=True))}


def _key(levels: Mapping[str, Level], without: str = "") -> str:
    return json.dumps({name: level for name, level in levels.items() if name != without}, sort_keys=True)
