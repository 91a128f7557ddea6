"""Compare each level of a factor with the first one, on the same testbed, all else equal, with a verdict.

Both cells' runs are compared as independent samples, by the tests that testbeds are compared by (``decision``): what shifts all
runs of a block costs such tests power, not size.  Means on a ratio scale alone, and no counts of events. P-values are not
corrected.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from twinbed.analyses.compare.decision import Case, Nature, Rules, doubtful_shape
from twinbed.analyses.compare.estimates import measured
from twinbed.analyses.compare.judging import judged
from twinbed.analyses.compare.verdicts import comparison
from twinbed.executor import Executor
from twinbed.metrics.metric import Scale
from twinbed.model.caution import Caution, Kind
from twinbed.model.comparison import Comparison, Comparisons, Estimated, Measured
from twinbed.model.run import Level, level_text
from twinbed.observations.levels import named
from twinbed.observations.units import Arranged
from twinbed.statistics.sample import Sample

Place = tuple[str, str, str, str, str]
"""(metric, host, direction, testbed, the rest of the cell)"""


def contrasts(
    executor: Executor, result: Comparisons, factor: str, levels: Sequence[Level], margin: float, confidence: float
) -> Iterator[tuple[str, Comparison]]:
    """Yield (testbed, a level's comparison with the first of ``levels``), for each metric and cell that have both levels.
    The cell of a comparison lacks the factor; testbed and reference are named by their levels: ``offload off``."""
    rules = Rules(margin, round(1 - confidence, 12), confidence)
    cautions = {(_name(of_cell.cell), of_cell.testbed): of_cell.cautions for of_cell in result.cell_cautions}
    places: dict[Place, list[Estimated]] = {}
    for estimated in result.estimates:
        if factor in estimated.cell and estimated.scale == Scale.RATIO and not estimated.events:
            rest = {name: level for name, level in estimated.cell.items() if name != factor}
            places.setdefault(
                (estimated.metric, estimated.host, estimated.direction, estimated.testbed, _name(rest)), []
            ).append(estimated)
    asked: list[tuple[str, Measured, Case]] = []
    for of_place in places.values():
        by_level = {_name({factor: estimated.cell[factor]}): estimated for estimated in of_place}
        first, *others = (by_level.get(_name({factor: level})) for level in levels)
        for other in others:
            if first is not None and other is not None:
                own = [caution for side in (other, first) for caution in cautions.get((_name(side.cell), side.testbed), ())]
                asked.append((other.testbed, *_contrast(other, first, factor, rules, own)))
    judgements = judged([case for _, _, case in asked], executor)
    for (testbed, both, _), judgement in zip(asked, judgements, strict=True):
        yield testbed, comparison(both, judgement, p_different_alone=judgement.p_different)


def _contrast(of: Estimated, base: Estimated, factor: str, rules: Rules, cautions: Sequence[Caution]) -> tuple[Measured, Case]:
    samples = of.estimate, base.estimate
    shapes = [doubtful_shape(estimate.values, of.scale, rules.margin) for estimate in samples]
    skewed = (Caution(Kind.SKEWED, shape, of.testbed) for shape in shapes if shape)
    own_level, base_level = (named(factor, level_text(side.cell[factor])) for side in (of, base))
    rest = {name: level for name, level in of.cell.items() if name != factor}
    both = measured(of, base, (own_level, base_level), rest, rules.margin, (*cautions, *skewed), headline=of.headline)
    own, reference = (Sample.of(estimate.values) for estimate in samples)
    return both, Case(
        of.scale, own, reference, Arranged(own, reference), Nature(steps=(of.step, base.step)), rules, skewed=any(shapes)
    )


def _name(cell: Mapping[str, Level]) -> str:
    return json.dumps(cell, sort_keys=True)
