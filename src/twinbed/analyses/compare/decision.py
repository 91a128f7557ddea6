"""One metric of one cell on two testbeds: what is compared on its scale, by which test, and the verdict that follows.

Ratio: the ratio of means.  Interval: the difference of means, with a verdict only at a margin in the metric's own unit.
Ordinal: Cliff's delta against the margin.  Nominal: total variation against the margin.  P-values are not yet corrected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from twinbed.analyses.compare.spreads import spread
from twinbed.metrics.metric import Scale
from twinbed.model.caution import Kind
from twinbed.model.comparison import Effect, Tested
from twinbed.model.result import Interval, Verdict
from twinbed.observations.units import Arranged
from twinbed.statistics.bootstrap import far_from_normal, ratio_interval
from twinbed.statistics.bounds import Bounds
from twinbed.statistics.counts import Tally
from twinbed.statistics.difference import difference_test
from twinbed.statistics.moments import holds_outlier, variance
from twinbed.statistics.nominal import SMALLEST_EXPECTED, nominal_test
from twinbed.statistics.ordinal import ordinal_test
from twinbed.statistics.power import replicates_needed
from twinbed.statistics.quantile import median_ratio_interval
from twinbed.statistics.ratio import RatioTest, ratio_test
from twinbed.statistics.resolution import bias, limit
from twinbed.statistics.sample import Sample

Values = Sequence[float]


@dataclass(frozen=True, slots=True)
class Rules:
    margin: float
    alpha: float
    confidence: float
    information: tuple[float, ...] | None = None
    """At each interim analysis so far, of a study that goes on until it is decided."""
    elsewhere: bool = False
    """True if any run was measured elsewhere, so that both sides may have been printed by different programs."""


@dataclass(frozen=True, slots=True)
class Nature:
    """The kind of values that a metric has."""

    margin: float | None = None
    """Its own, in its unit."""
    steps: tuple[float, float] = (0.0, 0.0)
    """The step that values are rounded to, in the unit, here and on the reference."""
    counts: tuple[Tally, Tally] | None = None
    """The events that they count, or are rates of; here and on the reference."""
    timed: bool = False
    """True if they are times, which a time-out may have cut short."""


@dataclass(frozen=True, slots=True)
class Case:
    """A case to be judged: two samples and the rules. It holds nothing of the tables, since another process may judge it."""

    scale: str
    own: Sample
    """One value a run, as in the reference."""
    reference: Sample
    arranged: Arranged
    """The same as means are compared."""
    nature: Nature
    rules: Rules
    skewed: bool = False
    """True if their shape asks for the bootstrap."""


@dataclass(frozen=True, kw_only=True)
class Judgement(Tested):
    """The second stage of a comparison: what the two samples of a case say, and what is doubtful about it."""

    few_counts: str = ""
    """Doubt about a test that rests on few counts."""
    coarse: str = ""
    """Doubt about an equivalence of rounded values."""
    censored: str = ""
    """Why means say little: values end at a limit."""


DOUBTS = {"few_counts": Kind.FEW_COUNTS, "coarse": Kind.COARSE, "censored": Kind.CENSORED}
"""The caution of what is doubtful about a judgement."""


def judge(case: Case) -> Judgement:
    """Return all that two samples say. Spreads are of runs, and so are what has only an order, and names."""
    own, reference, arranged = case.own, case.reference, case.arranged
    if min(len(own), len(reference), len(arranged.own), len(arranged.reference)) < 2:
        return _of_single_runs(case)
    if case.scale == Scale.RATIO:
        return _at_limit(_ratio(case), case)
    if case.scale == Scale.INTERVAL:
        return _at_limit(_difference(case), case)
    return _ordinal(case) if case.scale == Scale.ORDINAL else _nominal(case)


def _at_limit(judgement: Judgement, case: Case) -> Judgement:
    """Return the judgement without an equivalence of means where values end at a limit: what lies beyond is not known."""
    limited = limit(case.own, case.reference, case.nature.steps) if case.nature.timed else None
    if limited is None:
        return judgement
    ends = f"{limited.here} of {len(case.own)} runs here and {limited.reference} of {len(case.reference)} on the reference"
    undecided = None if judgement.p_equivalent is None else 1.0
    detail = f"{ends} have the largest value, {limited.value:g}"
    return replace(judgement, verdict=Verdict.INCONCLUSIVE, p_equivalent=undecided, replicates_needed=None, censored=detail)


def _of_single_runs(case: Case) -> Judgement:
    """Return the ratio of single runs: the one number worth having of them."""
    if case.scale != Scale.RATIO or not case.own or not case.reference:
        return Judgement()
    own, reference = case.own.average, case.reference.average
    return Judgement(ratio=own / reference) if own >= 0 and reference > 0 else Judgement()


def _ratio(case: Case) -> Judgement:
    arranged, nature, rules = case.arranged, case.nature, case.rules
    own, reference, paired = arranged.own, arranged.reference, arranged.paired
    test = _tested(case)
    spreads = spread(case.own, case.reference, rules.confidence)
    if test is None:
        return Judgement(spread=spreads)
    equivalent = test.p_equivalent <= rules.alpha
    # More runs of the same show no more where it is rounding that hides the difference.
    hidden = bias(own, nature.steps[0]) + bias(reference, nature.steps[1])
    coarse = test.method in ("exact", "unseen", "counts") or hidden > 0.01 * max(own)
    needed = None if equivalent or coarse else replicates_needed(own, reference, rules.margin, rules.alpha, paired=paired)
    samples = Sample.of(own), Sample.of(reference)
    middle = samples[1].median
    return Judgement(
        ratio=test.ratio,
        ratio_interval=_interval(test.interval),
        wide_interval=_interval(test.wide),
        verdict=_verdict(equivalent),
        method=test.method,
        p_equivalent=test.p_equivalent,
        p_different=test.p_different,
        replicates_needed=needed,
        event_counts=(nature.counts[0].total, nature.counts[1].total) if nature.counts and test.method == "counts" else None,
        pair_deviation=_pair_deviation(*samples) if paired and min(sample.least for sample in samples) > 0 else None,
        bootstrap_interval=_interval(ratio_interval(own, reference, 1 - 2 * rules.alpha, paired=paired))
        if case.skewed
        else None,
        median_ratio=samples[0].median / middle if middle else None,
        median_ratio_interval=_interval(median_ratio_interval(own, reference, rules.confidence)),
        spread=spreads,
        coarse=_coarse(case, test) if equivalent else "",
    )


def _tested(case: Case, *, cut: bool = False) -> RatioTest | None:
    arranged, nature, rules = case.arranged, case.nature, case.rules
    return ratio_test(
        *(arranged.own, arranged.reference, rules.margin, rules.alpha),
        steps=nature.steps,
        cut=cut,
        counts=nature.counts,
        paired=arranged.paired,
    )


def _coarse(case: Case, test: RatioTest) -> str:
    """Return why rounding may have made an equivalence; empty where it has not."""
    if not any(case.nature.steps):
        return ""
    if test.method == "exact":
        return "all values of a side are equal: steps coarser than their digits may hide a difference"
    cut = _tested(case, cut=True) if case.rules.elsewhere else None
    if cut is not None and cut.p_equivalent > case.rules.alpha:
        return "not certain: if one side's program cuts digits off and the other's rounds, half a step more may be hidden"
    return ""


def _pair_deviation(own: Sample, reference: Sample) -> float:
    return math.sqrt(variance([x - y for x, y in zip(own.logarithms, reference.logarithms, strict=True)]))


def _difference(case: Case) -> Judgement:
    arranged, nature, rules = case.arranged, case.nature, case.rules
    own, reference, paired = arranged.own, arranged.reference, arranged.paired
    test = difference_test(own, reference, nature.margin, rules.alpha, steps=nature.steps, paired=paired)
    return Judgement(
        effect=Effect("difference", test.difference, _interval(test.interval), nature.margin),
        wide_interval=_interval(test.wide),
        verdict=_verdict(test.p_equivalent is not None and test.p_equivalent <= rules.alpha),
        method="student" if paired else "welch",
        p_equivalent=test.p_equivalent,
        p_different=test.p_different,
        spread=spread(case.own, case.reference, rules.confidence, relative=False),
    )


def _ordinal(case: Case) -> Judgement:
    rules = case.rules
    test = ordinal_test(case.own, case.reference, rules.margin, rules.alpha)
    return Judgement(
        effect=Effect("cliffs_delta", test.delta, _interval(test.interval), rules.margin, test.p_mann_whitney),
        wide_interval=_interval(test.wide),
        verdict=_verdict(test.p_equivalent <= rules.alpha),
        method="newcombe",
        p_equivalent=test.p_equivalent,
        p_different=test.p_different,
    )


def _nominal(case: Case) -> Judgement:
    rules = case.rules
    test = nominal_test(case.own, case.reference, rules.margin)
    few = test.smallest_expected < SMALLEST_EXPECTED
    return Judgement(
        effect=Effect("total_variation", test.total_variation, None, rules.margin, test.p_same),
        verdict=_verdict(test.p_equivalent is not None and test.p_equivalent <= rules.alpha),
        method=test.method,
        p_equivalent=test.p_equivalent,
        p_different=test.p_different,
        few_counts=f"{test.smallest_expected:.2g} expected of the rarest" if few else "",
    )


def _verdict(equivalent: bool) -> Verdict:
    return Verdict.EQUIVALENT if equivalent else Verdict.INCONCLUSIVE


def _interval(bounds: Bounds | None) -> Interval | None:
    return None if bounds is None else Interval(*bounds)


def doubtful_shape(values: Values, scale: str, margin: float) -> str:
    """Return what makes Student's t doubtful for a sample: an outlier, or a shape far from normal; empty where it is none."""
    if len(values) < 2 or scale not in (Scale.RATIO, Scale.INTERVAL):
        return ""
    sample = Sample.of(values)
    # What is far inside the margin moves no verdict.
    if not sample.average or math.sqrt(sample.variance) <= margin / 10 * abs(sample.average):
        return ""
    if holds_outlier(sample):
        return "one value lies far from the others (Grubbs's test)"
    logarithms = scale == Scale.RATIO and sample.least > 0
    if far_from_normal(sample.logarithms if logarithms else sample):
        return f"{'logarithms' if logarithms else 'values'} are far from normal (Shapiro and Wilk's test)"
    return ""
