"""The last stage of a comparison: judgements that are corrected for their family, and cautions that are heeded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TypeAlias

from twinbed.analyses.compare.decision import DOUBTS, Judgement
from twinbed.analyses.compare.spreads import decided
from twinbed.model.caution import NO_VERDICT, Caution
from twinbed.model.comparison import AllRuns, Comparison, Measured, Tested
from twinbed.model.result import Verdict
from twinbed.observations.predictable import Predictable
from twinbed.statistics.multiplicity import holm

Place: TypeAlias = tuple[str, str, str]
"""(metric and where it is measured, testbed, cell as text)"""
_MEASURED, _TESTED = ([part.name for part in fields(stage)] for stage in (Measured, Tested))


def place(of: Measured) -> Place:
    """Return what names a comparison in its study."""
    return of.place, of.testbed, str(of.cell)


def verdicts(
    measured: Sequence[Measured],
    judgements: Iterable[Judgement],
    alpha: float,
    known: Predictable,
    of_all_runs: Mapping[Place, AllRuns],
) -> list[Comparison]:
    """Return the comparisons. Headlines are one family and everything else another, so that looking at more costs the headlines
    nothing; spreads are families of their own. ``of_all_runs`` is what comparisons of all runs say, where some are left out."""
    judged = list(judgements)
    made: dict[int, Comparison] = {}
    for headline in (True, False):
        family = [index for index, candidate in enumerate(measured) if candidate.headline is headline]
        barred = [any(caution.kind in NO_VERDICT for caution in measured[index].cautions) for index in family]
        alone = [None if bar else judged[index].p_different for index, bar in zip(family, barred, strict=True)]
        tested = max(1, sum(p_value is not None for p_value in alone))
        spreads = decided([judged[index].spread for index in family], alpha)
        for index, bar, p_alone, p_value, spread in zip(family, barred, alone, holm(alone), spreads, strict=True):
            both, judgement = measured[index], judged[index]
            verdict = Verdict.DIFFERENT if p_value is not None and p_value <= alpha else judgement.verdict
            made[index] = comparison(
                both,
                judgement,
                cautions=(*both.cautions, *_doubts(both, judgement)),
                verdict=Verdict.INCONCLUSIVE if bar else verdict,
                p_equivalent=None if bar else judgement.p_equivalent,
                p_different=p_value,
                p_different_alone=p_alone,
                family=1 if p_value is None else tested,
                replicates_needed=None if bar else judgement.replicates_needed,
                spread=spread,
                predictable=known.of(both.testbed, both.reference, both.place, both.cell)
                if verdict is Verdict.DIFFERENT
                else None,
                all_runs=of_all_runs.get(place(both)),
            )
    return [made[index] for index in range(len(measured))]


def comparison(measured: Measured, judgement: Judgement, **final: object) -> Comparison:
    """Return the comparison of both stages; ``final`` is what the last stage adds to them, or changes."""
    stages = {name: getattr(measured, name) for name in _MEASURED} | {name: getattr(judgement, name) for name in _TESTED}
    return Comparison(**{**stages, **final})


def _doubts(measured: Measured, judgement: Judgement) -> Iterable[Caution]:
    for name, kind in DOUBTS.items():
        if detail := getattr(judgement, name):
            yield Caution(kind, detail, measured.metric)
