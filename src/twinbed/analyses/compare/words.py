"""Say one comparison in words: why its verdict is what it is, and what would decide it."""

from __future__ import annotations

from twinbed.metrics.metric import Scale
from twinbed.model.caution import NO_VERDICT, Kind
from twinbed.model.comparison import Comparison, Comparisons, Estimate, Pooled, Spread
from twinbed.model.result import Verdict
from twinbed.model.run import level_text
from twinbed.model.tables import TESTBED
from twinbed.show.quantities import (
    NONE,
    UnitScale,
    changed,
    changed_range,
    ratio,
    ratio_with_interval,
    share,
    unit_scale,
)
from twinbed.show.words import _bounds, heading, times
from twinbed.statistics.counts import most_unseen, unseen_share
from twinbed.statistics.power import POWER

CHANCE = share(POWER)
"""The chance that as many replicates as a sentence names reach what it says."""
RULE = "Crussell et al. 2019"
"""The source of the rule of thumb: means differ by no more than the margin; the stronger one, that 95 % intervals overlap."""


WITHOUT = {
    Kind.MISNAMED: "files contradict what their paths say",
    Kind.APART: "no session has runs of both testbeds, so testbed and time cannot be separated",
}
"""Reasons for no verdict, whatever the numbers are."""


def explanation(each: Comparison) -> str:
    """Return why the verdict is what it is, in one sentence."""
    margin = share(each.margin)
    if each.estimate.n == 0 or each.reference_estimate.n == 0:
        return f"no values on {each.testbed if each.estimate.n == 0 else each.reference}"
    if each.estimate.n < 2 or each.reference_estimate.n < 2:
        return "one replicate shows no spread, so nothing can be concluded"
    if doubted := doubt(each):
        return WITHOUT[doubted]
    if each.sessions and min(each.sessions) < 2:
        return "all runs are of one session, so nothing is known of others"
    if each.method == "unlooked":
        return "verdicts wait for the first interim analysis"
    if each.verdict is Verdict.INCONCLUSIVE and any(caution.kind is Kind.CENSORED for caution in each.cautions):
        return "several runs end at the same largest time, so their true times are unknown"
    if each.scale != "ratio":
        return _why_of_effect(each)
    if not each.method:
        return "negative values have no ratio"
    if each.method == "unseen":
        return _unseen(each)
    if each.verdict is Verdict.EQUIVALENT:
        return f"within {margin}{_tentative(each)}"
    if each.verdict is Verdict.DIFFERENT:
        shown = f"differs by more than {margin}"
        shown = (f"{each.reference} is 0 throughout, {each.testbed} is not" if each.ratio is None else shown) + _tentative(each)
        return (
            shown
            if each.predictable is None
            else f"{shown}, but predictable: ±{plus_minus(each.predictable)} after calibration"
        )
    return _why_open(each, margin)


def doubt(each: Comparison) -> Kind | None:
    """Return the kind of caution that leaves it without a verdict; None where none does."""
    return next((caution.kind for caution in each.cautions if caution.kind in NO_VERDICT), None)


def plus_minus(half_width: float) -> str:
    return share(float(f"{half_width:.2g}"))


def _unseen(each: Comparison) -> str:
    """``0 in all 5 runs of both: at most 0.6 a run``: absence is not shown by few runs."""
    seen = f"0 in all {each.runs} runs of both"
    if each.events:
        return f"{seen}; up to {most_unseen(each.runs):.2g} a run, or some in {_unseen_share(each)} of runs, may go unseen"
    return f"{seen}; up to {_unseen_share(each)} of runs may be otherwise"


def _unseen_share(each: Comparison) -> str:
    return share(round(unseen_share(each.runs) if each.runs else 0.0, 2))


def _tentative(each: Comparison) -> str:
    return "; tentative, of 2 replicates" if each.runs == 2 else ""


def _why_of_effect(each: Comparison) -> str:
    """Return the reason on scales that have no ratio."""
    effect = each.effect
    if effect is None or effect.margin is None:
        return "a metric of interval scale has no ratio, and this one gives no margin in its unit"
    if each.p_equivalent is None:
        return "too many names to compare each set of them with the margin"
    about = {"cliffs_delta": "Cliff's delta", "total_variation": "the total variation", "difference": "the difference"}
    unit = each.unit if effect.name == "difference" and each.unit != "1" else ""
    margin = f"{effect.margin:g} {unit}".rstrip()
    verdict_texts = {
        Verdict.EQUIVALENT: f"{about[effect.name]} is within {margin}",
        Verdict.DIFFERENT: f"{about[effect.name]} is beyond {margin}",
        Verdict.INCONCLUSIVE: f"{about[effect.name]} may be within {margin} or beyond",
    }
    return verdict_texts[each.verdict]


def held(each: Comparison) -> str:
    """Return what is compared with the margin: ``1.032 [0.981, 1.087]``, or on other scales the effect with its name."""
    if each.effect is None:
        interval = each.ratio_interval
        return ratio_with_interval(each.ratio, *((interval.low, interval.high) if interval else (None, None)))
    effect, symbol = each.effect, {"cliffs_delta": "delta", "total_variation": "TV", "difference": "diff"}
    scale = unit_scale(each.unit, [effect.value]) if effect.name == "difference" else UnitScale(1.0, "")

    def say(value: float) -> str:
        return f"{value / scale.factor:#.3g}".removesuffix(".")

    return f"{symbol[effect.name]} {say(effect.value)} {scale.unit}".rstrip() + _bounds(effect.interval, say)


def deviation(each: Comparison, estimate: Estimate) -> str:
    """Return the standard deviation as a share of the mean, ``3.1 %``, or in its unit if 0 is arbitrary; a dash if unknown."""
    if estimate.stdev is None or estimate.mean is None:
        return NONE
    if each.scale == Scale.INTERVAL:
        scale = unit_scale(each.unit, [each.estimate.stdev, each.reference_estimate.stdev])
        return f"{estimate.stdev / scale.factor:.2g} {scale.unit}".rstrip()
    if not estimate.mean:
        return NONE
    percent = 100 * estimate.stdev / abs(estimate.mean)
    if percent < 1e-9:
        return "0 %"
    return f"{percent:#.2g}".removesuffix(".") + " %" if percent < 99.5 else f"{percent:,.0f} %"


def varies(spread: Spread) -> str:
    """Return ``varies 3.2 times as much [1.4, 7.0]``, or why this is unknown."""
    if spread.ratio is None or spread.ratio == 0:
        return spread.reason
    return f"varies {times(spread.ratio)} times as much{_bounds(spread.interval, times)}"


CONSTANT = 0.02
"""Share of the margin below which a relative standard deviation is practically 0, so that a multiple of it says nothing."""


def _constant(each: Comparison, estimate: Estimate) -> bool:
    return bool(estimate.mean) and (estimate.stdev or 0.0) < CONSTANT * each.margin * abs(estimate.mean or 0.0)


def hardly_varies(each: Comparison) -> str:
    """Return which side varies so little that a multiple of its spread says nothing; empty where neither does."""
    if each.scale == Scale.RATIO and _constant(each, each.reference_estimate):
        return "the reference hardly varies"
    return f"{each.testbed} hardly varies" if each.scale == Scale.RATIO and _constant(each, each.estimate) else ""


def of_few_runs(spread: Spread) -> str:
    """Return why a spread that Bonett's test calls different counts as inconclusive; empty if nothing needs a reason."""
    if spread.differs or spread.p_value is None or spread.interval is None or spread.p_value > 1 - spread.interval.level:
        return ""
    return "a few runs alone may make this difference"


def _why_open(each: Comparison, margin: str) -> str:
    low, high = 1 / (1 + each.margin), 1 + each.margin
    interval, wide = each.ratio_interval, each.wide_interval
    if reason := _too_little(each, margin):
        return reason
    assert interval is not None and wide is not None
    if wide.high < low or wide.low > high:
        return f"significant on its own, not after correction for {each.family} comparisons"
    if interval.high < low or interval.low > high:
        return f"probably outside {margin}, not significant"
    more = ""
    if each.replicates_needed:
        more = f"; {each.replicates_needed} new {replicates(each)} would show it within, with a chance of {CHANCE}"
    if wide.low > 1 or wide.high < 1:
        return f"differs, but maybe by less than {margin}{more}"
    return f"too variable to tell{more}"


def _too_little(each: Comparison, margin: str) -> str:
    """Return why values or events cannot decide at all; empty where they can."""
    deviations = [estimate.stdev or 0.0 for estimate in (each.estimate, each.reference_estimate)]
    if each.step and max(deviations) < each.step:
        scale = unit_scale(each.unit, [each.step])
        return f"values come in steps of {each.step / scale.factor:g} {scale.unit}".rstrip() + f", too coarse for {margin}"
    if each.method == "counts":
        here, there = each.event_counts or (0, 0)
        return f"too few events: {here:,} here and {there:,} on {each.reference}"
    if each.ratio_interval is None or each.wide_interval is None:
        return f"{each.reference} may be 0, so the ratio has no bounds"
    return ""


def short_reason(each: Comparison) -> str:
    """Return an inconclusive ratio with what would decide it, in a few words: ``-30 %; about 12 replicates decide``."""
    reason = explanation(each)
    if each.ratio is None or not each.method or doubt(each) or _too_little(each, share(each.margin)):
        return reason
    word, (low, high) = changed(each.ratio), (1 / (1 + each.margin), 1 + each.margin)
    wide = each.wide_interval
    if wide and (wide.high < low or wide.low > high):
        bounds = changed_range(each.ratio, wide.low, wide.high).replace(" times", "x")
        return f"{word} ({bounds}); only the correction keeps it open"
    if each.replicates_needed:
        return f"{word}; {each.replicates_needed} {replicates(each)} would decide"
    if each.ratio_interval and (each.ratio_interval.high < low or each.ratio_interval.low > high):
        return f"{word}, likely; more {replicates(each)} would decide"
    return f"{word}, too variable"


def replicates(each: Comparison) -> str:
    return "sessions" if each.sessions else "replicates"


def pooled_text(each: Pooled) -> str:
    """``0.63 [0.60, 0.66]``: the ratio over all cells."""
    return ratio_with_interval(each.ratio, each.interval.low, each.interval.high)


def disagreement(each: Pooled) -> str:
    """``cells differ: 0.420 to 0.970``, so that the ratio over all says little of any; empty where that is not shown."""
    return "" if each.agree else f"cells differ: {ratio(each.least)} to {ratio(each.most)}"


def column_head(by: str) -> str:
    """Return the head over the names of what is compared; names of settings stay as they are written."""
    return heading(by) if by == TESTBED else by


def nothing_compared(result: Comparisons) -> str:
    """Return why there is nothing to compare."""
    testbeds = {each.testbed for each in result.estimates}
    if not testbeds:
        return "no run has a value"
    if len(testbeds) == 1:
        return f"only {testbeds.pop()} has values"
    return "the reference and the other testbeds share no metric in any cell"


def factors_measured(result: Comparisons) -> list[str]:
    """Return the factors that have values at two levels or more."""
    levels: dict[str, set[str]] = {}
    for each in result.estimates:
        for name, level in each.cell.items():
            levels.setdefault(name, set()).add(level_text(level))
    return [name for name, of in levels.items() if len(of) > 1]


def overall(result: Comparisons) -> Verdict | None:
    """Return the verdict over all headline comparisons: different if any is, else inconclusive if any is; None without any."""
    verdicts = {each.verdict for each in result.comparisons if each.headline}
    for verdict in (Verdict.DIFFERENT, Verdict.INCONCLUSIVE, Verdict.EQUIVALENT):
        if verdict in verdicts:
            return verdict
    return None
