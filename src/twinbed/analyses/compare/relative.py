"""Compare two results by a common reference: how the ratio of each testbed to that reference changed from one to the other.

The difference of two differences (of logarithms): what changed for the testbed and its reference alike, such as the kernel of
their machine, drops out. A change of one of them alone stays in. Headlines of positive values on a ratio scale, at least
two of each; equivalence by two one-sided tests, difference with Holm's correction over all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.metrics.metric import Scale
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.model.json import Json
from twinbed.model.result import Interval, Verdict
from twinbed.model.run import Level, level_text
from twinbed.observations.levels import ON
from twinbed.show.quantities import ratio_with_interval, share
from twinbed.show.words import cell_title, metric_title
from twinbed.statistics.change import LogRatio
from twinbed.statistics.multiplicity import holm

_SYMBOLS = {Verdict.EQUIVALENT: "=", Verdict.DIFFERENT: "≠", Verdict.INCONCLUSIVE: "?"}


@dataclass(frozen=True, slots=True)
class Change:
    """One headline of one cell: the ratio testbed / reference in the later results over that in the earlier ones."""

    metric: str
    host: str
    direction: str
    cell: Mapping[str, Level]
    testbed: str
    reference: str
    ratio: float
    interval: Interval
    """At 1 - 2 alpha."""
    margin: float
    p_equivalent: float
    p_different: float
    """After Holm's correction over ``family``."""
    family: int
    verdict: Verdict

    def row(self) -> dict[str, Json]:
        return {
            "metric": self.metric,
            "host": self.host or None,
            "direction": self.direction or None,
            "cell": {name: level_text(level) for name, level in self.cell.items()},
            "testbed": self.testbed,
            "reference": self.reference,
            "ratio": self.ratio,
            "ratio_low": self.interval.low,
            "ratio_high": self.interval.high,
            "margin": self.margin,
            "p_equivalent": self.p_equivalent,
            "p_different_holm": self.p_different,
            "family": self.family,
            "verdict": str(self.verdict),
        }


def changes(result: Comparisons, reference: str | None) -> tuple[Change, ...]:
    """Return the changes between two results; empty without a common reference and another testbed."""
    by_place: dict[tuple[str, str], dict[str, Comparison]] = {}
    for comparison in result.comparisons:
        if comparison.headline and comparison.scale == Scale.RATIO and ON in comparison.cell:
            rest = {name: level for name, level in comparison.cell.items() if name != ON}
            by_place.setdefault((comparison.place, repr(sorted(rest.items(), key=str))), {})[str(comparison.cell[ON])] = (
                comparison
            )
    pairs = [
        (own, change)
        for of in by_place.values()
        if reference in of
        for testbed, own in of.items()
        if testbed != reference and (change := _change(own, of[reference])) is not None
    ]
    adjusted = holm([change.p_different(own.margin) for own, change in pairs])
    return tuple(
        _as_change(own, str(reference), change, p, len(pairs), result.alpha)
        for (own, change), p in zip(pairs, adjusted, strict=True)
    )


def _change(own: Comparison, base: Comparison) -> LogRatio | None:
    samples = [(comparison.estimate.values, comparison.reference_estimate.values) for comparison in (own, base)]
    if any(len(values) < 2 or min(values) <= 0 for pair in samples for values in pair):
        return None
    return LogRatio.of(samples[0]).less(LogRatio.of(samples[1]))


def _as_change(own: Comparison, reference: str, change: LogRatio, p_different: float, family: int, alpha: float) -> Change:
    bounds, p_equivalent = change.interval(1 - 2 * alpha), change.p_equivalent(own.margin)
    verdict = Verdict.EQUIVALENT if p_equivalent <= alpha else Verdict.INCONCLUSIVE
    return Change(
        metric=own.metric,
        host=own.host,
        direction=own.direction,
        cell={name: level for name, level in own.cell.items() if name != ON},
        testbed=str(own.cell[ON]),
        reference=reference,
        ratio=math.exp(change.value),
        interval=Interval(*bounds),
        margin=own.margin,
        p_equivalent=p_equivalent,
        p_different=p_different,
        family=family,
        verdict=Verdict.DIFFERENT if p_different <= alpha else verdict,
    )


def lines(moved: Sequence[Change]) -> Iterator[str]:
    """Yield lines for a terminal; nothing without changes."""
    if not moved:
        return
    yield f"\nChange relative to {moved[0].reference}, which both results have: what changed both testbeds alike cancels"
    for change in moved:
        where = f" at {cell_title(change.cell)}" if change.cell else ""
        value = ratio_with_interval(change.ratio, change.interval.low, change.interval.high)
        title = metric_title(change.metric, change.host, change.direction)
        says = {
            Verdict.EQUIVALENT: f"shown to be within {share(change.margin)}",
            Verdict.DIFFERENT: f"shown to differ by more than {share(change.margin)}",
            Verdict.INCONCLUSIVE: "cannot tell",
        }[change.verdict]
        yield f"  {_SYMBOLS[change.verdict]} {change.testbed}, {title}{where}: {value}, {says}"
