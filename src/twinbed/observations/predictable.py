"""Calibrations kept with results: how well a testbed's values predict the reference's, cell by cell."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.model.json import WRONG, document, number, optional, parsed, text, tuple_of, value_of
from twinbed.model.run import Level, Status, level, level_text
from twinbed.model.tables import Tables
from twinbed.show.table import Row
from twinbed.tree import NotPlain, Tree

FOLDER = "calibrations"
"""The folder of results with the files that `twinbed calibrate` made, named by their testbeds."""
Cell = frozenset[tuple[str, str]]
"""(factor, level) without the testbed, as texts."""


@dataclass(frozen=True, slots=True)
class Predictable:
    """(testbed, reference, metric, cell) -> half-width of the interval as a share."""

    half_widths: Mapping[tuple[str, str, str, Cell], float]
    factors: Mapping[tuple[str, str], frozenset[str]]
    """(testbed, reference) -> the factors of the calibration; factors with one level are not in its cells."""

    def of(self, testbed: str, reference: str, metric: str, cell: Mapping[str, Level]) -> float | None:
        """Return the half-width; None if nothing is predicted."""
        names = self.factors.get((testbed, reference), frozenset())
        own = {name: level for name, level in cell.items() if name in names}
        return self.half_widths.get((testbed, reference, metric, _cell(own)))


def digest(tables: Tables, testbeds: Sequence[str]) -> str:
    """Return a digest of the complete runs of testbeds: a calibration from other runs no longer belongs to the results."""
    runs = sorted(
        record.id
        for record in tables.records
        if record.status is Status.COMPLETE and record.settings["testbed"]["name"] in testbeds
    )
    return hashlib.sha256(" ".join(runs).encode()).hexdigest()


def predictable(tables: Tables) -> Predictable:
    """Return the calibrations kept with results, without those from other runs and files that are no calibrations."""
    tree = Tree(tables.shown)
    half_widths: dict[tuple[str, str, str, Cell], float] = {}
    factors: dict[tuple[str, str], frozenset[str]] = {}
    for name in tree.entries(FOLDER) if tables.shown.is_dir() else ():
        if not name.endswith(".json"):
            continue
        try:
            data = document(parsed(tree.read(f"{FOLDER}/{name}")))
            pair = (value_of(data, "from", text), value_of(data, "to", text))
            if data["runs"] == digest(tables, pair):
                names = frozenset(value_of(data, "factors", tuple_of(text)))
                half_widths |= dict(_half_widths(pair, names, value_of(data, "predictions", tuple_of(document))))
                factors[pair] = names
        except (NotPlain, OSError, ArithmeticError, *WRONG):
            continue
    return Predictable(half_widths, factors)


def _half_widths(
    pair: tuple[str, str], factors: frozenset[str], predictions: Sequence[Row]
) -> Iterator[tuple[tuple[str, str, str, Cell], float]]:
    for row in predictions:
        low, high = (value_of(row, name, optional(number)) for name in ("low", "high"))
        if low is not None and high is not None:
            cell = _cell({name: level(value) for name, value in row.items() if name in factors})
            yield (*pair, value_of(row, "response", text), cell), math.sqrt(high / low) - 1


def _cell(levels: Mapping[str, Level]) -> Cell:
    return frozenset((name, level_text(level)) for name, level in levels.items() if name != "testbed")
