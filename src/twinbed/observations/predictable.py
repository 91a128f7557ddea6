"""Calibrations that were kept with results: how near a testbed's figures predict the reference's, cell by cell."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.model.run import Level, Status, level_text
from twinbed.model.tables import Tables

FOLDER = "calibrations"
"""Of a results folder: files that `twinbed calibrate` made, named by their testbeds."""
Cell = frozenset[tuple[str, str]]
"""(factor, level) without the testbed, as texts."""


@dataclass(frozen=True, slots=True)
class Predictable:
    """(testbed, reference, metric, cell) -> half-width of the interval as a share."""

    half_widths: Mapping[tuple[str, str, str, Cell], float]

    def of(self, testbed: str, reference: str, metric: str, cell: Mapping[str, Level]) -> float | None:
        """None where nothing is predicted."""
        return self.half_widths.get((testbed, reference, metric, _cell(cell)))


def digest(tables: Tables, testbeds: Sequence[str]) -> str:
    """Of the complete runs of testbeds: a calibration of others than these is not that of the results any more."""
    runs = sorted(
        record.id
        for record in tables.records
        if record.status is Status.COMPLETE and record.settings["testbed"]["name"] in testbeds
    )
    return hashlib.sha256(" ".join(runs).encode()).hexdigest()


def predictable(tables: Tables) -> Predictable:
    """What the calibrations beside results say; those of other runs than these are left out, and so is what is no such file."""
    folder = tables.shown / FOLDER
    found: dict[tuple[str, str, str, Cell], float] = {}
    for file in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        found |= dict(_file(tables, file))
    return Predictable(found)


def _file(tables: Tables, file: Path) -> Iterator[tuple[tuple[str, str, str, Cell], float]]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        cheap, dear = data["from"], data["to"]
        if data["runs"] != digest(tables, (cheap, dear)):
            return
        factors = data["factors"]
        for row in data["predictions"]:
            if row["low"] is not None and row["high"] is not None:
                cell = _cell({name: row[name] for name in factors if name in row})
                yield (cheap, dear, row["response"], cell), (row["high"] / row["low"]) ** 0.5 - 1
    except (OSError, ValueError, KeyError, TypeError):
        return


def _cell(levels: Mapping[str, Level]) -> Cell:
    return frozenset((name, level_text(level)) for name, level in levels.items() if name != "testbed")
