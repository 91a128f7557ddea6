"""Comparisons in words: why a verdict is what it is, and what to do about it."""

from __future__ import annotations

from twinbed.metrics.metric import Scale
from twinbed.model.caution import NO_VERDICT, Kind
from twinbed.model.comparison import Comparison, Comparisons, Estimate, Pooled, Spread
from twinbed.model.result import Verdict
from twinbed.model.run import level_text
from twinbed.model.tables import TESTBED
from twinbed.show.quantities import NONE, UnitScale, change, ratio, ratio_with_interval, share, unit_scale
from twinbed.show.words import _bounds, cell_title, heading, metric_title, times
from twinbed.statistics.counts import most_unseen, unseen_share
from twinbed.statistics.power import POWER

CHANCE = share(POWER)
"""That as many replicates as a sentence names reach what it says."""
RULE = "Crussell et al. 2019"
"""The source of the rule of thumb: means differ by no more than the margin; the stronger one, that 95 % intervals overlap."""


WITHOUT = {
    Kind.MISNAMED: "files contradict what their paths say of this cell",
    Kind.APART: "no session has runs of both, so that testbed and time are one",
}
"""Why there is no verdict, whatever the numbers are."""
SYMBOLS = {Verdict.EQUIVALENT: "=", Verdict.DIFFERENT: "≠", Verdict.INCONCLUSIVE: "?"}


def explanation(each: Comparison) -> str:
    """Why the verdict is what it is, in one sentence."""
    margin = share(each.margin)
    if each.estimate.n == 0 or each.reference_estimate.n == 0:
        return f"no values on {each.testbed if each.estimate.n == 0 else each.reference}"
    if each.estimate.n < 2 or each.reference_estimate.n < 2:
        return "one replicate has no spread, so nothing can be concluded"
    if doubted := doubt(each):
        return WITHOUT[doubted]
    if each.sessions and min(each.sessions) < 2:
        return "all runs are of one session, which says nothing of others"
    if each.method == "unlooked":
        return "verdicts wait for the first look"
    if each.verdict is Verdict.INCONCLUSIVE and any(caution.kind is Kind.CENSORED for caution in each.cautions):
        return "several runs end at the same largest time: how much longer they would have taken is not known"
    if each.scale != "ratio":
        return _why_of_effect(each)
    if not each.method:
        return "negative values have no ratio"
    if each.method == "unseen":
        return _unseen(each)
    if each.verdict is Verdict.EQUIVALENT:
        return f"shown to be within {margin}{_tentative(each)}"
    if each.verdict is Verdict.DIFFERENT:
        shown = f"shown to differ by more than {margin}"
        shown = (f"{each.reference} is 0 throughout, this is not" if each.ratio is None else shown) + _tentative(each)
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
        return f"{seen}, which leaves up to {most_unseen(each.runs):.2g} a run, or any in {_unseen_share(each)} of runs"
    return f"{seen}, which leaves up to {_unseen_share(each)} of runs otherwise"


def _unseen_share(each: Comparison) -> str:
    return share(round(unseen_share(each.runs) if each.runs else 0.0, 2))


def _tentative(each: Comparison) -> str:
    return "; tentative, of 2 replicates" if each.runs == 2 else ""


def _why_of_effect(each: Comparison) -> str:
    """On scales that have no ratio."""
    effect = each.effect
    if effect is None or effect.margin is None:
        return "a metric of interval scale has no ratio, and this one gives no margin in its unit"
    if each.p_equivalent is None:
        return "too many names to hold each set of them against the margin"
    about = {"cliffs_delta": "Cliff's delta", "total_variation": "the total variation", "difference": "the difference"}
    unit = each.unit if effect.name == "difference" and each.unit != "1" else ""
    margin = f"{effect.margin:g} {unit}".rstrip()
    verdict_texts = {
        Verdict.EQUIVALENT: f"{about[effect.name]} is shown to be within {margin}",
        Verdict.DIFFERENT: f"{about[effect.name]} is shown to be beyond {margin}",
        Verdict.INCONCLUSIVE: f"{about[effect.name]} is shown to be neither within {margin} nor beyond",
    }
    return verdict_texts[each.verdict]


def held(each: Comparison) -> str:
    """What is held against the margin: ``1.032 [0.981, 1.087]``, or on other scales the effect with its name."""
    if each.effect is None:
        interval = each.ratio_interval
        return ratio_with_interval(each.ratio, *((interval.low, interval.high) if interval else (None, None)))
    effect, symbol = each.effect, {"cliffs_delta": "delta", "total_variation": "TV", "difference": "diff"}
    scale = unit_scale(each.unit, [effect.value]) if effect.name == "difference" else UnitScale(1.0, "")

    def say(value: float) -> str:
        return f"{value / scale.factor:#.3g}".removesuffix(".")

    return f"{symbol[effect.name]} {say(effect.value)} {scale.unit}".rstrip() + _bounds(effect.interval, say)


def deviation(each: Comparison, estimate: Estimate) -> str:
    """The standard deviation as a share of the mean, ``3.1 %``, or where 0 is arbitrary, in the unit; a dash where unknown."""
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
    """``varies 3.2 times as much [1.4, 7.0]``, or why that cannot be said."""
    if spread.ratio is None or spread.ratio == 0:
        return spread.reason
    return f"varies {times(spread.ratio)} times as much{_bounds(spread.interval, times)}"


CONSTANT = 0.02
"""Share of the margin below which a relative standard deviation is practically none: how many times as much another varies is
then a statement about next to nothing."""


def _constant(each: Comparison, estimate: Estimate) -> bool:
    return bool(estimate.mean) and (estimate.stdev or 0.0) < CONSTANT * each.margin * abs(estimate.mean or 0.0)


def hardly_varies(each: Comparison) -> str:
    """Which side of a comparison of spreads varies so little that a multiple of it says nothing; empty where neither does."""
    if each.scale == Scale.RATIO and _constant(each, each.reference_estimate):
        return "the reference hardly varies"
    return "this hardly varies" if each.scale == Scale.RATIO and _constant(each, each.estimate) else ""


def of_few_runs(spread: Spread) -> str:
    """Why a spread that Bonett's test calls different is not shown to be; empty where nothing is to be explained."""
    if spread.differs or spread.p_value is None or spread.interval is None or spread.p_value > 1 - spread.interval.level:
        return ""
    return "a few runs may make this difference, not shown"


def varies_finding(each: Comparison) -> str:
    """``requests per second at payload 500B: varies 3.2 times as much [1.4, 7.0] as container``."""
    where = f" at {cell_title(each.cell)}" if each.cell else ""
    spread = varies(each.spread) if each.spread else ""
    own, reference = deviation(each, each.estimate), deviation(each, each.reference_estimate)
    heading = f"{metric_title(each.metric, each.host, each.direction)}{where}"
    if _constant(each, each.reference_estimate):
        return f"{heading}: varies by {own} (sd), {each.reference} practically not at all ({reference})"
    if _constant(each, each.estimate):
        return f"{heading}: varies practically not at all ({own} sd), {each.reference} by {reference}"
    return f"{heading}: {spread} as {each.reference}"


def _why_open(each: Comparison, margin: str) -> str:
    low, high = 1 / (1 + each.margin), 1 + each.margin
    interval, wide = each.ratio_interval, each.wide_interval
    deviations = [estimate.stdev or 0.0 for estimate in (each.estimate, each.reference_estimate)]
    if each.step and max(deviations) < each.step:
        scale = unit_scale(each.unit, [each.step])
        return f"values come in steps of {each.step / scale.factor:g} {scale.unit}".rstrip() + f", too coarse to tell {margin}"
    if each.method == "counts":
        here, there = each.event_counts or (0, 0)
        return f"too few events to say: {here:,} here and {there:,} on {each.reference}"
    if interval is None or wide is None:
        return f"{each.reference} may be 0, so the ratio has no bounds"
    if wide.high < low or wide.low > high:
        return f"outside {margin} taken alone, but not after correction for {each.family} comparisons"
    if interval.high < low or interval.low > high:
        return f"probably outside {margin}, not shown"
    more = ""
    if each.replicates_needed:
        more = f"; {each.replicates_needed} new {replicates(each)} would show it to be within, with a chance of {CHANCE}"
    if wide.low > 1 or wide.high < 1:
        return f"differs, but maybe by less than {margin}{more}"
    return f"too spread to say{more}"


def replicates(each: Comparison) -> str:
    return "sessions" if each.sessions else "replicates"


def finding(each: Comparison) -> str:
    """``requests per second at payload 500B: 58 % less than container (ratio 0.420)``."""
    title = metric_title(each.metric, each.host, each.direction)
    where = f" at {cell_title(each.cell)}" if each.cell else ""
    if each.effect is not None:
        return f"{title}{where}: {held(each)}"
    if each.ratio is None:
        return f"{title}{where}: {explanation(each)}"
    by = change(each.ratio, each.reference)
    return f"{title}{where}: {by}" if " times " in by else f"{title}{where}: {by} (ratio {ratio(each.ratio)})"


def pooled_text(each: Pooled) -> str:
    """``0.63 [0.60, 0.66]``: the ratio over all cells."""
    return ratio_with_interval(each.ratio, each.interval.low, each.interval.high)


def disagreement(each: Pooled) -> str:
    """``cells differ: 0.420 to 0.970``, so that the ratio over all says little of any; empty where that is not shown."""
    return "" if each.agree else f"cells differ: {ratio(each.least)} to {ratio(each.most)}"


def emulated(result: Comparisons) -> str:
    """A sentence for before the verdict, where testbeds ran on an emulated CPU; else empty."""
    names = list(dict.fromkeys(each.subject for each in result.cautions if each.kind is Kind.SOFTWARE_CPU))
    if not names:
        return ""
    who = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{who} ran on an emulated CPU (TCG), not on hardware virtualisation: what follows of {who} is about the emulator."


def column_head(by: str) -> str:
    """Over the names of what is compared; names of settings stay as they are written."""
    return heading(by) if by == TESTBED else by


def nothing_compared(result: Comparisons) -> str:
    """Why there is nothing to compare."""
    testbeds = {each.testbed for each in result.estimates}
    if not testbeds:
        return "no run has a value"
    if len(testbeds) == 1:
        return f"all values are of {testbeds.pop()}"
    return "there is no metric that the reference and another testbed both have in a cell"


def factors_measured(result: Comparisons) -> list[str]:
    """The factors that have values at two levels or more."""
    levels: dict[str, set[str]] = {}
    for each in result.estimates:
        for name, level in each.cell.items():
            levels.setdefault(name, set()).add(level_text(level))
    return [name for name, of in levels.items() if len(of) > 1]


def overall(result: Comparisons) -> Verdict | None:
    """Different if any headline comparison is, else inconclusive if any is; None where there is none."""
    verdicts = {each.verdict for each in result.comparisons if each.headline}
    for verdict in (Verdict.DIFFERENT, Verdict.INCONCLUSIVE, Verdict.EQUIVALENT):
        if verdict in verdicts:
            return verdict
    return None
