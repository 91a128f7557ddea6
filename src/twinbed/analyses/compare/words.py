"""Comparisons in words: why a verdict is what it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from twinbed.analyses.compare.result import Comparison, Comparisons, Estimate, Pooled, Spread
from twinbed.metrics.metric import Scale
from twinbed.model.caution import Kind
from twinbed.model.result import Verdict
from twinbed.model.run import level_text
from twinbed.model.tables import TESTBED
from twinbed.render.quantities import NONE, UnitScale, change, ratio, ratio_with_interval, share, unit_scale
from twinbed.render.words import _bounds, cell_title, heading, metric_name, metric_title, times
from twinbed.statistics.counts import most_unseen

RULE = "Crussell et al. 2019"
"""The source of the rule of thumb: means differ by no more than the margin; the stronger one, that 95 % intervals overlap."""


SYMBOLS = {Verdict.EQUIVALENT: "=", Verdict.DIFFERENT: "≠", Verdict.INCONCLUSIVE: "?"}


def explanation(each: Comparison) -> str:
    """Why the verdict is what it is, in one sentence."""
    margin = share(each.margin)
    if each.estimate.n == 0 or each.reference_estimate.n == 0:
        return f"no values on {each.testbed if each.estimate.n == 0 else each.reference}"
    if each.estimate.n < 2 or each.reference_estimate.n < 2:
        return "one replicate has no spread, so nothing can be concluded"
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
            shown if each.predictable is None else f"{shown}, but predictable: ±{_within(each.predictable)} after calibration"
        )
    return _why_open(each, margin)


def _within(half_width: float) -> str:
    return share(float(f"{half_width:.2g}"))


def _unseen(each: Comparison) -> str:
    """``0 in all 5 runs of both: at most 0.6 a run``: absence is not shown by few runs."""
    seen = f"0 in all {each.runs} runs of both"
    if each.events:
        return f"{seen}, which leaves up to {most_unseen(each.runs):.2g} a run, or any in {_unseen_share(each)} of runs"
    return f"{seen}, which leaves up to {_unseen_share(each)} of runs otherwise"


def _unseen_share(each: Comparison) -> str:
    return share(round(each.unseen_share or 0.0, 2))


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
    more = f"; about {each.replicates_needed} replicates would show it to be within" if each.replicates_needed else ""
    if wide.low > 1 or wide.high < 1:
        return f"differs, but maybe by less than {margin}{more}"
    return f"too spread to say{more}"


def _is_beyond(each: Comparison) -> bool:
    """Whether the ratio itself lies outside the margin: then no number of runs shows it to be within."""
    return each.ratio is not None and not 1 / (1 + each.margin) <= each.ratio <= 1 + each.margin


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


@dataclass(frozen=True, slots=True)
class Summary:
    """One testbed's headline verdicts."""

    testbed: str
    reference: str
    margin: float
    equivalent: tuple[Comparison, ...]
    different: tuple[Comparison, ...]
    inconclusive: tuple[Comparison, ...]
    spread: tuple[Comparison, ...]
    """Those whose spread is shown to differ."""

    @property
    def total(self) -> int:
        return len(self.equivalent) + len(self.different) + len(self.inconclusive)

    @property
    def verdict(self) -> Verdict:
        if self.different:
            return Verdict.DIFFERENT
        return Verdict.INCONCLUSIVE if self.inconclusive or not self.total else Verdict.EQUIVALENT

    @property
    def sentence(self) -> str:
        """``virtio differs from container in 5 of 6 headline comparisons; equivalent within 10 % in 1.``"""
        if not self.total:
            return f"{self.testbed} has no headline metric in a cell that {self.reference} has too."
        within = f"within {share(self.margin)}"
        if self.verdict is Verdict.EQUIVALENT:
            return f"{self.testbed} is equivalent to {self.reference} {within} in {_all_of(self.total)}."
        counted = [
            (f"differs from {self.reference}", self.different),
            (f"is equivalent {within}", self.equivalent),
            ("is undecided", self.inconclusive),
        ]
        parts = [f"{what} in {len(comparisons)}" for what, comparisons in counted if comparisons]
        plural = "s" if self.total > 1 else ""
        rest = f"; it {' and '.join(parts[1:])}" if len(parts) > 1 else ""
        return f"{self.testbed} {parts[0]} of {self.total} headline comparison{plural}{rest}."

    @property
    def spread_sentence(self) -> str:
        """``virtio varies more than container in 3 of 6 headline comparisons.``; empty where no spread is shown to differ."""
        counts = {way: sum(_way(each) == way for each in self.spread) for way in ("more", "less")}
        parts = [f"{way} than {self.reference} in {count}" for way, count in counts.items() if count]
        if not parts:
            return ""
        return (
            f"{self.testbed} varies {' and '.join(parts)} of {self.total} headline comparison{'s' if self.total > 1 else ''}."
        )

    @property
    def advice(self) -> tuple[str, ...]:
        """What a person can do with this."""
        sentences = []
        if self.different:
            worst = max(self.different, key=_distance)
            sentences.append(
                f"Do not read {_names(self.different)} of {self.testbed} as {self.reference}'s: "
                f"the largest difference is {finding(worst)}."
            )
            if found := [each for each in self.different if each.predictable is not None]:
                widths = sorted(each.predictable or 0.0 for each in found)
                sentences.append(
                    f"Different, but predictable: {_names(found)} of {self.reference} follow from {self.testbed}'s within "
                    f"±{_within(widths[len(widths) // 2])} after calibration (median of {len(found)} of {len(self.different)})."
                )
        if self.equivalent:
            where = "" if not (self.different or self.inconclusive) else " where it is listed as equivalent"
            if wrong := [each for each in self.equivalent if _misnamed(each)]:
                sentences.append(
                    f"{_names(wrong)}: files contradict what their paths say of them in {len(wrong)} of the cells that look "
                    f"equivalent, so that nothing is said of {self.testbed} in their place."
                )
                where = f" in other cells{where}"
            named = [each for each in self.equivalent if each not in wrong]
            apart = [each for each in named if each in self.spread]
            if like := [each for each in named if each not in apart]:
                unseen = share(round(max(each.unseen_share or 0.0 for each in like), 2))
                sentences.append(
                    f"{self.testbed} can stand in for {self.reference} for the mean of {_names(like)}{where}. What happens in "
                    f"fewer than {unseen} of runs, such as a stall, so few would not have shown."
                )
            if apart:
                sentences.append(
                    f"Means of {_names(apart)} are those of {self.reference}{where}, but their spread is not: do not take a "
                    "single run, or a tail, for its."
                )
        if self.inconclusive:
            needed = [each.replicates_needed for each in self.inconclusive if each.replicates_needed]
            if needed:
                what = (
                    "what is open"
                    if len(needed) == len(self.inconclusive)
                    else f"{len(needed)} of {len(self.inconclusive)} open ones"
                )
                sentences.append(f"About {max(needed)} replicates would decide {what}.")
            if len(needed) < len(self.inconclusive):
                rest = [each for each in self.inconclusive if not each.replicates_needed]
                if beyond := [each for each in rest if _is_beyond(each)]:
                    sentences.append(
                        f"{_names(beyond)}: {explanation(beyond[0])}; more replicates or fewer comparisons may show the "
                        "difference, and `twinbed plan --pilot` says how many."
                    )
                if near := [each for each in rest if each not in beyond]:
                    sentences.append(f"{_names(near)}: {explanation(near[0])}; a wider margin or steadier runs may decide.")
        return tuple(sentences)


def _way(each: Comparison) -> str:
    """Whether a spread that differs is ``more`` or ``less``."""
    return "less" if each.spread and each.spread.ratio is not None and each.spread.ratio < 1 else "more"


def summaries(result: Comparisons) -> tuple[Summary, ...]:
    """One Summary for each testbed but the reference, of headline metrics."""
    testbeds = dict.fromkeys(each.testbed for each in result.comparisons)
    return tuple(_summary([each for each in result.comparisons if each.testbed == testbed]) for testbed in testbeds)


def _summary(comparisons: Sequence[Comparison]) -> Summary:
    first = comparisons[0]
    by = {verdict: tuple(each for each in comparisons if each.headline and each.verdict is verdict) for verdict in Verdict}
    return Summary(
        *(first.testbed, first.reference, first.margin),
        *(by[Verdict.EQUIVALENT], by[Verdict.DIFFERENT], by[Verdict.INCONCLUSIVE]),
        tuple(each for each in comparisons if each.headline and each.spread and each.spread.differs),
    )


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


def _distance(each: Comparison) -> float:
    if not each.ratio:
        return float("inf")
    return max(each.ratio, 1 / each.ratio)


def _misnamed(each: Comparison) -> bool:
    """Whether it may be of something else than its cell is called."""
    return any(caution.kind is Kind.MISNAMED for caution in each.cautions)


def _names(comparisons: Iterable[Comparison]) -> str:
    names = list(dict.fromkeys(metric_name(each.metric) for each in comparisons))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _all_of(total: int) -> str:
    return "its one headline comparison" if total == 1 else f"all {total} headline comparisons"
