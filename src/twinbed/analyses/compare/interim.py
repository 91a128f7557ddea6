"""A comparison at one of several interim analyses: the same tests, with error rates that hold over all of them together.

P-values become those of the whole procedure (``statistics.sequential``), so they are compared with alpha, and corrected
for a family, as any other.  Intervals are Jennison and Turnbull's repeated ones: those of all interim analyses hold together.
Intervals of means and quantiles of one testbed, which no verdict rests on, stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

from twinbed.analyses.compare.decision import Case, Judgement, judge
from twinbed.model.comparison import Effect, Spread
from twinbed.model.result import Interval, Verdict
from twinbed.statistics.sequential import interim_levels, overall_level

UNLOOKED = "unlooked"
"""The method of a comparison before its first interim analysis: there is no verdict yet."""


def judge_at_interim(case: Case) -> Judgement:
    """Return the judgement at the last interim analysis that the rules have the information of."""
    fixed, rules, information = judge(case), case.rules, case.rules.information
    if not information:
        return _unlooked(fixed)
    level, half = (interim_levels(alpha, information)[-1] for alpha in (rules.alpha, rules.alpha / 2))
    narrow = judge(replace(case, rules=replace(rules, alpha=level)))
    wide = judge(replace(case, rules=replace(rules, alpha=2 * half, confidence=1 - 2 * half)))
    p_equivalent = None if fixed.p_equivalent is None else overall_level(fixed.p_equivalent, information)
    p_different = None if fixed.p_different is None else min(1.0, 2 * overall_level(fixed.p_different / 2, information))
    equivalent = p_equivalent is not None and p_equivalent <= rules.alpha
    inner, outer = 1 - 2 * rules.alpha, 1 - rules.alpha
    return replace(
        fixed,
        verdict=Verdict.EQUIVALENT if equivalent else Verdict.INCONCLUSIVE,
        p_equivalent=p_equivalent,
        p_different=p_different,
        replicates_needed=None,
        ratio_interval=_at(narrow.ratio_interval, inner),
        bootstrap_interval=_at(narrow.bootstrap_interval, inner),
        effect=_effect(narrow.effect, inner, fixed.effect, information),
        wide_interval=_at(wide.wide_interval, outer),
        median_ratio_interval=_at(wide.median_ratio_interval, outer),
        spread=_spread(wide.spread, outer, information),
    )


def _at(interval: Interval | None, level: float) -> Interval | None:
    return None if interval is None else replace(interval, level=level)


def _effect(narrow: Effect | None, level: float, fixed: Effect | None, information: tuple[float, ...]) -> Effect | None:
    if narrow is None or fixed is None:
        return None
    p_same = None if fixed.p_same is None else overall_level(fixed.p_same, information)
    return replace(narrow, interval=_at(narrow.interval, level), p_same=p_same)


def _spread(wide: Spread | None, level: float, information: tuple[float, ...]) -> Spread | None:
    if wide is None:
        return None
    p_values = (
        None if p_value is None else overall_level(p_value, information)
        for p_value in (wide.p_value, wide.p_brown_forsythe, wide.p_at_values)
    )
    bonett, brown_forsythe, at_values = p_values
    return replace(
        wide,
        interval=_at(wide.interval, level),
        deviation_interval=_at(wide.deviation_interval, level),
        p_value=bonett,
        p_brown_forsythe=brown_forsythe,
        p_at_values=at_values,
    )


def _unlooked(fixed: Judgement) -> Judgement:
    return replace(
        fixed,
        verdict=Verdict.INCONCLUSIVE,
        method=UNLOOKED if fixed.method else "",
        p_equivalent=None if fixed.p_equivalent is None else 1.0,
        p_different=None if fixed.p_different is None else 1.0,
        replicates_needed=None,
        ratio_interval=None,
        bootstrap_interval=None,
        wide_interval=None,
        median_ratio_interval=None,
        effect=None if fixed.effect is None else replace(fixed.effect, interval=None, p_same=None),
        spread=None,
    )
