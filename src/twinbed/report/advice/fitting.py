"""Rules about how many fit, from the analysis ``scaling`` at a level of their own."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.analyses.scaling.result import LevelScaling, Statement
from twinbed.model.caution import Kind
from twinbed.model.comparison import Comparisons
from twinbed.model.run import Level, level_text
from twinbed.model.tables import Tables
from twinbed.report.advice.result import Rule, Topic
from twinbed.report.advice.words import ABOUT
from twinbed.report.fitting import scaling
from twinbed.show.words import cell_title, heading


@dataclass(frozen=True, slots=True)
class Objective:
    """One objective at one combination of levels, with its statement."""

    group: LevelScaling
    statement: Statement
    over: str

    @property
    def settled(self) -> bool:
        """Tell whether the data show more than the trivial: one pair keeps a share of one pair."""
        kept = self.statement.keeps or 0
        return self.statement.decided and (kept > (1 if self.statement.of_one else 0) or self.statement.fails is not None)

    @property
    def counted(self) -> list[int]:
        """Runs at each number of pairs that the statement rests on."""
        last = max(self.statement.keeps or 0, self.statement.fails or 0)
        return [point.runs for point in self.group.points if point.n <= last]

    @property
    def least_runs(self) -> int:
        return min(self.counted, default=0)


def objectives(tables: Tables, confidence: float | None) -> Sequence[Objective]:
    """Return the objectives at ``confidence``; none with interim analyses, or where the number of pairs does not vary."""
    fits = None if tables.outline.interim is not None else scaling(tables, confidence)
    if fits is None:
        return ()
    return [Objective(group, statement, fits.over) for group in fits.groups for statement in group.statements]


def rules_of(tables: Tables, result: Comparisons, candidates: Iterable[Objective]) -> Iterator[Rule]:
    """Yield a rule for each objective that the data decide."""
    for objective in candidates:
        if not objective.settled:
            continue
        levels = objective.group.levels
        cautions = _cautions(result, levels, objective.over)
        notes = "".join(f" ({ABOUT[kind]})" for kind in cautions if kind in ABOUT)
        where = f"{cell_title(levels)}: " if levels else ""
        yield Rule(
            topic=Topic.FITS,
            sentence=heading(f"{where}{objective.statement.objective}: {objective.statement.text}{notes}."),
            source=str(tables.shown),
            testbed=level_text(levels["testbed"]) if "testbed" in levels else "",
            against="",
            metric=objective.statement.objective,
            layer="",
            cells=len(objective.counted),
            runs=(min(objective.counted), max(objective.counted)),
            within=None,
            beyond=None,
            p_value=None,
            cautions=cautions,
            command=f"twinbed report {shlex.quote(str(tables.shown))}",
        )


def _cautions(result: Comparisons, levels: Mapping[str, Level], over: str) -> tuple[Kind, ...]:
    own = {name: level for name, level in levels.items() if name not in ("testbed", over)}
    testbed = levels.get("testbed")
    kinds = (
        caution.kind
        for cell in result.cell_cautions
        if testbed in (None, cell.testbed) and all(cell.cell.get(name) == level for name, level in own.items())
        for caution in cell.cautions
    )
    return tuple(dict.fromkeys(kinds))
