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


def explanation(comparison: Comparison) -> str:
    """Return why the verdict is what it is, in one sentence."""
    margin = share(comparison.margin)
    if comparison.estimate.n == 0 or comparison.reference_estimate.n == 0:
        return f"no values on {comparison.testbed if comparison.estimate.n == 0 else comparison.reference}"
    if comparison.estimate.n < 2 or comparison.reference_estimate.n < 2:
        return "one replicate shows no spread, so nothing can be concluded"
    if doubted := doubt(comparison):
        return WITHOUT[doubted]
    if comparison.sessions and min(comparison.sessions) < 2:
        return "all runs are of one session, so nothing is known of others"
    if comparison.method == "unlooked":
        return "verdicts wait for the first interim analysis"
    if comparison.verdict is Verdict.INCONCLUSIVE and any(caution.kind is Kind.CENSORED for caution in comparison.cautions):
        return "several runs end at the same largest time, so their true times are unknown"
    if comparison.scale != "ratio":
        return _why_of_effect(comparison)
    if not comparison.method:
        return "negative values have no ratio"
    if comparison.method == "unseen":
        return _unseen(comparison)
    if comparison.verdict is Verdict.EQUIVALENT:
        return f"within {margin}{_tentative(comparison)}"
    if comparison.verdict is Verdict.DIFFERENT:
        shown = f"differs by more than {margin}"
        shown = (
            f"{comparison.reference} is 0 throughout, {comparison.testbed} is not" if comparison.ratio is None else shown
        ) + _tentative(comparison)
        return (
            shown
            if comparison.predictable is None
            else f"{shown}, but predictable: ±{plus_minus(comparison.predictable)} after calibration"
        )
    return _why_open(comparison, margin)


def doubt(comparison: Comparison) -> Kind | None:
    """Return the kind of caution that leaves it without a verdict; None where none does."""
    return next((caution.kind for caution in comparison.cautions if caution.kind in NO_VERDICT), None)


def plus_minus(half_width: float) -> str:
    return share(float(f"{half_width:.2g}"))


def _unseen(comparison: Comparison) -> str:
    """Return ``0 in all 5 runs of both; up to 0.6 a run ... may go unseen``: few runs do not show an absence."""
    seen = f"0 in all {comparison.runs} runs of both"
    if comparison.events:
        rate, rare = f"{most_unseen(comparison.runs):.2g}", _unseen_share(comparison)
        return f"{seen}; up to {rate} a run, or some in {rare} of runs, may go unseen"
    return f"{seen}; up to {_unseen_share(comparison)} of runs may be otherwise"


def _unseen_share(comparison: Comparison) -> str:
    return share(round(unseen_share(comparison.runs) if comparison.runs else 0.0, 2))


def _tentative(comparison: Comparison) -> str:
    return "; tentative, of 2 replicates" if comparison.runs == 2 else ""


def _why_of_effect(comparison: Comparison) -> str:
    """Return the reason on scales that have no ratio."""
    effect = comparison.effect
    if effect is None or effect.margin is None:
        return "a metric of interval scale has no ratio, and this one gives no margin in its unit"
    if comparison.p_equivalent is None:
        return "too many names to compare each set of them with the margin"
    titles = {"cliffs_delta": "Cliff's delta", "total_variation": "the total variation", "difference": "the difference"}
    unit = comparison.unit if effect.name == "difference" and comparison.unit != "1" else ""
    margin = f"{effect.margin:g} {unit}".rstrip()
    verdict_texts = {
        Verdict.EQUIVALENT: f"{titles[effect.name]} is within {margin}",
        Verdict.DIFFERENT: f"{titles[effect.name]} is beyond {margin}",
        Verdict.INCONCLUSIVE: f"{titles[effect.name]} may be within {margin} or beyond",
    }
    return verdict_texts[comparison.verdict]


def effect_text(comparison: Comparison) -> str:
    """Return what is compared with the margin: ``1.032 [0.981, 1.087]``, or on other scales the effect with its name."""
    if comparison.effect is None:
        interval = comparison.ratio_interval
        return ratio_with_interval(comparison.ratio, *((interval.low, interval.high) if interval else (None, None)))
    effect, symbol = comparison.effect, {"cliffs_delta": "delta", "total_variation": "TV", "difference": "diff"}
    scale = unit_scale(comparison.unit, [effect.value]) if effect.name == "difference" else UnitScale(1.0, "")

    def say(value: float) -> str:
        return f"{value / scale.factor:#.3g}".removesuffix(".")

    return f"{symbol[effect.name]} {say(effect.value)} {scale.unit}".rstrip() + _bounds(effect.interval, say)


def deviation(comparison: Comparison, estimate: Estimate) -> str:
    """Return the standard deviation as a share of the mean, ``3.1 %``, or in its unit if 0 is arbitrary; a dash if unknown."""
    if estimate.stdev is None or estimate.mean is None:
        return NONE
    if comparison.scale == Scale.INTERVAL:
        scale = unit_scale(comparison.unit, [comparison.estimate.stdev, comparison.reference_estimate.stdev])
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


def _constant(comparison: Comparison, estimate: Estimate) -> bool:
    return bool(estimate.mean) and (estimate.stdev or 0.0) < CONSTANT * comparison.margin * abs(estimate.mean or 0.0)


def hardly_varies(comparison: Comparison) -> str:
    """Return which side varies so little that a multiple of its spread says nothing; empty where neither does."""
    if comparison.scale == Scale.RATIO and _constant(comparison, comparison.reference_estimate):
        return "the reference hardly varies"
    return (
        f"{comparison.testbed} hardly varies"
        if comparison.scale == Scale.RATIO and _constant(comparison, comparison.estimate)
        else ""
    )


def of_few_runs(spread: Spread) -> str:
    """Return why a spread that Bonett's test calls different counts as inconclusive; empty if nothing needs a reason."""
    if spread.differs or spread.p_value is None or spread.interval is None or spread.p_value > 1 - spread.interval.level:
        return ""
    return "a few runs alone may make this difference"


def _why_open(comparison: Comparison, margin: str) -> str:
    low, high = 1 / (1 + comparison.margin), 1 + comparison.margin
    interval, wide = comparison.ratio_interval, comparison.wide_interval
    if reason := _too_little(comparison, margin):
        return reason
    assert interval is not None and wide is not None
    if wide.high < low or wide.low > high:
        return f"significant on its own, not after correction for {comparison.family} comparisons"
    if interval.high < low or interval.low > high:
        return f"probably outside {margin}, not significant"
    more = ""
    if comparison.replicates_needed:
        more = f"; {comparison.replicates_needed} new {replicates(comparison)} would show it within, with a chance of {CHANCE}"
    if wide.low > 1 or wide.high < 1:
        return f"differs, but maybe by less than {margin}{more}"
    return f"too variable to tell{more}"


def _too_little(comparison: Comparison, margin: str) -> str:
    """Return why values or events cannot decide at all; empty where they can."""
    deviations = [estimate.stdev or 0.0 for estimate in (comparison.estimate, comparison.reference_estimate)]
    if comparison.step and max(deviations) < comparison.step:
        scale = unit_scale(comparison.unit, [comparison.step])
        return (
            f"values come in steps of {comparison.step / scale.factor:g} {scale.unit}".rstrip() + f", too coarse for {margin}"
        )
    if comparison.method == "counts":
        own_events, reference_events = comparison.event_counts or (0, 0)
        return f"too few events: {own_events:,} here and {reference_events:,} on {comparison.reference}"
    if comparison.ratio_interval is None or comparison.wide_interval is None:
        return f"{comparison.reference} may be 0, so the ratio has no bounds"
    return ""


def short_reason(comparison: Comparison) -> str:
    """Return an inconclusive ratio with what would decide it, in a few words: ``-30 %; about 12 replicates decide``."""
    reason = explanation(comparison)
    if (
        comparison.ratio is None
        or not comparison.method
        or doubt(comparison)
        or _too_little(comparison, share(comparison.margin))
    ):
        return reason
    word, (low, high) = changed(comparison.ratio), (1 / (1 + comparison.margin), 1 + comparison.margin)
    wide = comparison.wide_interval
    if wide and (wide.high < low or wide.low > high):
        bounds = changed_range(comparison.ratio, wide.low, wide.high).replace(" times", "x")
        return f"{word} ({bounds}); only the correction keeps it open"
    if comparison.replicates_needed:
        return f"{word}; {comparison.replicates_needed} {replicates(comparison)} would decide"
    if comparison.ratio_interval and (comparison.ratio_interval.high < low or comparison.ratio_interval.low > high):
        return f"{word}, likely; more {replicates(comparison)} would decide"
    return f"{word}, too variable"


def replicates(comparison: Comparison) -> str:
    return "sessions" if comparison.sessions else "replicates"


def pooled_text(pool: Pooled) -> str:
    """Return ``0.63 [0.60, 0.66]``: the ratio over all cells."""
    return ratio_with_interval(pool.ratio, pool.interval.low, pool.interval.high)


def disagreement(pool: Pooled) -> str:
    """Return ``cells differ: 0.420 to 0.970``: the ratio over all cells then describes none; empty if they agree."""
    return "" if pool.agree else f"cells differ: {ratio(pool.least)} to {ratio(pool.most)}"


def column_head(by: str) -> str:
    """Return the head over the names of what is compared; names of settings stay as they are written."""
    return heading(by) if by == TESTBED else by


def nothing_compared(result: Comparisons) -> str:
    """Return why there is nothing to compare."""
    testbeds = {estimated.testbed for estimated in result.estimates}
    if not testbeds:
        return "no run has a value"
    if len(testbeds) == 1:
        return f"only {testbeds.pop()} has values"
    return "the reference and the other testbeds share no metric in any cell"


def factors_measured(result: Comparisons) -> list[str]:
    """Return the factors that have values at two levels or more."""
    levels: dict[str, set[str]] = {}
    for estimated in result.estimates:
        for name, level in estimated.cell.items():
            levels.setdefault(name, set()).add(level_text(level))
    return [name for name, of in levels.items() if len(of) > 1]


def overall(result: Comparisons) -> Verdict | None:
    """Return the verdict over all headline comparisons: different if any is, else inconclusive if any is; None without any."""
    verdicts = {comparison.verdict for comparison in result.comparisons if comparison.headline}
    for verdict in (Verdict.DIFFERENT, Verdict.INCONCLUSIVE, Verdict.EQUIVALENT):
        if verdict in verdicts:
            return verdict
    return None
