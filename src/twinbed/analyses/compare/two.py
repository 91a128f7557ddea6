"""Two results over time: the later ones against the earlier, by themselves and relative to a reference that both have, and what
differs between their passports."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from twinbed.analyses.compare import relative
from twinbed.analyses.compare.gathered import CompareParams
from twinbed.analyses.compare.method import analysis
from twinbed.analyses.compare.relative import Change, changes
from twinbed.contracts.analysis import TwoResults
from twinbed.executor import Executor
from twinbed.model.comparison import Comparisons
from twinbed.model.json import Json
from twinbed.observations.levels import compared_with
from twinbed.observations.passports import Differences, Side, between, lines

MOST = 12
"""Differences of passports that are shown with a verdict."""


@dataclass(frozen=True)
class Two:
    """``sides`` are as the user gave them, for what to type next."""

    both: TwoResults
    sides: Sequence[Path]

    def compared(self, executor: Executor, params: CompareParams) -> Comparisons:
        first, other = self.both.names
        introduction = f"{other} is compared with {first}, testbed by testbed and cell by cell."
        return analysis.run_on(executor, self.both.tables, params.model_copy(update={"by": self.both.by}), introduction)

    @cached_property
    def passports(self) -> Differences:
        tables = compared_with(self.both.tables, self.both.by)
        first, other = (Side(tables, name, own) for name, own in zip(tables.outline.testbeds, self.both.names, strict=True))
        return between(first, other)

    def changes(self, result: Comparisons) -> Sequence[Change]:
        """Return how each testbed changed against the reference that both results have."""
        return changes(result, self.both.tables.outline.reference)

    def lines(self, result: Comparisons) -> Iterator[str]:
        """Yield lines for a terminal: changes against a common reference, differences, what is not compared."""
        yield from relative.lines(self.changes(result))
        if self.both.left_out:
            yield "\nNot compared, or not alike"
            yield from (f"  {text}" for text in self.both.left_out)
        yield "\nWhat differs between both, most suspicious first"
        yield from lines(self.passports, MOST)
        rest = len(self.passports.differences) - MOST
        if rest > 0:
            yield f"and {rest} more: twinbed passport {shlex.join(str(side) for side in self.sides)}"

    def document(self, result: Comparisons) -> Mapping[str, Json]:
        """Return the result for JSON."""
        differences = [asdict(difference) for difference in self.passports.differences]
        return {
            "not_compared": list(self.both.left_out),
            "changes": [change.row() for change in self.changes(result)],
            "passports": {**self.passports.summary, "differences": differences},
        }
