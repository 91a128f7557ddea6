"""The analysis ``compare``: every metric of every cell against the reference testbed, with a verdict.

In: runs with levels and status, and the table ``metrics``.  Out: one Comparison for each metric, host, direction, cell and
testbed but the reference, in the order of layers and of the study file.  Limits: replicates are taken as independent; where
blocks shift all testbeds alike, verdicts err towards inconclusive.  Sources: see ``equivalence`` and ``estimates``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from twinbed.analyses.compare.doubts import carried, of_group, of_study
from twinbed.analyses.compare.equivalence import RatioTest, ratio_test, replicates_needed
from twinbed.analyses.compare.estimates import estimate, holds_outlier, intervals_overlap, within_rule
from twinbed.analyses.compare.looks import at_look
from twinbed.analyses.compare.samples import Declared, Group, Key, Samples, gather
from twinbed.model.caution import Caution, Kind
from twinbed.model.looks import AsOf
from twinbed.model.metric import Scale
from twinbed.model.multiplicity import holm
from twinbed.model.result import Comparison, Estimate, Result, Verdict
from twinbed.model.run import Level
from twinbed.model.tables import Tables

FEW = 3
"""Fewer replicates than this get a caution."""


class CompareParams(BaseModel):
    """What ``compare`` can be told; null takes what the study file says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    margin: float | None = Field(default=None, gt=0, description="how far apart still counts as equivalent: 0.1 is 10 %")
    confidence: float | None = Field(
        default=None, gt=0.5, lt=1, description="1 - alpha: 0.95 keeps each kind of wrong verdict at 5 %"
    )


@dataclass(frozen=True, slots=True)
class _Rules:
    margin: float
    alpha: float
    confidence: float
    information: tuple[float, ...] | None = None
    """At each look that was taken, of a study that goes on until it is decided."""


def _comparison(
    key: Key,
    about: Declared,
    cell: dict[str, Level],
    names: tuple[str, str],
    groups: tuple[Group, Group],
    rules: _Rules,
    cautions: tuple[Caution, ...],
) -> Comparison:
    """One comparison before Holm's correction; its verdict is not yet final."""
    metric, host, direction = key
    one, two = (estimate(group.values.get(key, ()), rules.confidence) for group in groups)
    found: RatioTest | None = None
    if one.n >= 2 and two.n >= 2 and about.scale == Scale.RATIO:
        found = ratio_test(one.values, two.values, rules.margin, rules.alpha)
    if found and rules.information is not None:
        found = at_look(found, one.values, two.values, rules.margin, rules.alpha, rules.information)
    # The one number worth having of single runs is their ratio.
    plain = one.mean / two.mean if about.scale == Scale.RATIO and one.mean is not None and two.mean else None
    equivalent = found is not None and found.p_equivalent <= rules.alpha
    return Comparison(
        metric=metric,
        unit=about.unit,
        layer=about.layer,
        scale=about.scale,
        host=host,
        direction=direction,
        headline=about.headline,
        cell=cell,
        testbed=names[0],
        reference=names[1],
        estimate=one,
        reference_estimate=two,
        ratio=found.ratio if found else plain,
        ratio_interval=found.interval if found else None,
        margin=rules.margin,
        verdict=Verdict.EQUIVALENT if equivalent else Verdict.INCONCLUSIVE,
        within_rule=within_rule(one, two, rules.margin),
        intervals_overlap=intervals_overlap(one, two),
        cautions=(*cautions, *_own_cautions(names, (one, two), groups, rules)),
        method=found.method if found else "",
        wide_interval=found.wide if found else None,
        p_equivalent=found.p_equivalent if found else None,
        p_different=found.p_different if found else None,
        replicates_needed=None if equivalent or not found or rules.information is not None else _needed(one, two, rules),
    )


def _needed(one: Estimate, two: Estimate, rules: _Rules) -> int | None:
    return replicates_needed(one.values, two.values, rules.margin, rules.alpha)


def _own_cautions(
    names: tuple[str, str], estimates: tuple[Estimate, Estimate], groups: tuple[Group, Group], rules: _Rules
) -> Iterable[Caution]:
    for name, found, group in zip(names, estimates, groups, strict=True):
        if found.n < FEW:
            yield Caution(Kind.FEW_REPLICATES, f"{found.n} values", name)
        if found.n < len(group.complete):
            yield Caution(Kind.UNREADABLE, f"{len(group.complete) - found.n} of {len(group.complete)} runs have no value", name)
        # An outlier far inside the margin moves no verdict.
        if found.mean and found.stdev and found.stdev > rules.margin / 10 * abs(found.mean) and holds_outlier(found.values):
            yield Caution(Kind.SKEWED, "one value lies far from the others (Grubbs's test)", name)


def _decided(comparisons: Sequence[Comparison], alpha: float) -> dict[int, Comparison]:
    """The comparisons of one family with Holm's correction; by position."""
    tested = [index for index, each in enumerate(comparisons) if each.p_different is not None]
    adjusted = holm([comparisons[index].p_different or 0.0 for index in tested])
    decided: dict[int, Comparison] = {}
    for index, p_value in zip(tested, adjusted, strict=True):
        verdict = Verdict.DIFFERENT if p_value <= alpha else comparisons[index].verdict
        decided[index] = replace(comparisons[index], p_different=p_value, family=len(tested), verdict=verdict)
    return decided


def _decide(comparisons: list[Comparison], alpha: float) -> list[Comparison]:
    """Headlines are one family and everything else another, so that looking at more costs the headlines nothing."""
    decided = list(comparisons)
    for headline in (True, False):
        members = [index for index, each in enumerate(comparisons) if each.headline is headline]
        for position, each in _decided([comparisons[index] for index in members], alpha).items():
            decided[members[position]] = each
    return decided


def _study_cautions(tables: Tables, samples: Samples, carry: Any, comparisons: Sequence[Comparison]) -> Iterable[Caution]:
    yield from of_study(tables, samples, carry)
    for kind in (Kind.FEW_REPLICATES, Kind.SKEWED):
        for testbed in samples.testbeds:
            hit = {
                (str(each.cell), each.metric, each.host, each.direction)
                for each in comparisons
                if each.headline
                for caution in each.cautions
                if caution.kind is kind and caution.subject == testbed
            }
            if hit:
                names = ", ".join(sorted({metric for _cell, metric, *_rest in hit}))
                yield Caution(kind, f"{len(hit)} headline values: {names}", testbed)


class Compare:
    """The analysis."""

    name = "compare"
    params = CompareParams
    summary = "every metric and cell against the reference testbed: ratio, interval, verdict"

    def run(self, tables: Tables, params: CompareParams | None = None) -> Result:
        params = params or CompareParams()
        margin = params.margin if params.margin is not None else tables.outline.margin
        confidence = params.confidence if params.confidence is not None else tables.outline.confidence
        looks = tables.outline.looks
        information = tuple(look.information for look in looks.taken) if looks else None
        rules = _Rules(margin, round(1 - confidence, 12), confidence, information)
        if looks and looks.taken:
            tables = AsOf(tables, looks.blocks)
        samples = gather(tables)
        carry = carried(tables)
        reference = tables.outline.reference
        empty = Group()
        comparisons: list[Comparison] = []
        doubts = {
            (cell, testbed): of_group(testbed, group, carry)
            for cell, groups in samples.groups.items()
            for testbed, group in groups.items()
        }
        for key in samples.keys():  # noqa: SIM118 -- not a mapping
            about = samples.metrics[key[0]]
            shown = {each: samples.measures(each, key) for each in samples.testbeds} if samples.is_headline(key) else {}
            for cell, levels in samples.cells.items():
                groups = samples.groups[cell]
                two = groups.get(reference or "", empty)
                if not any(key in group.values for group in groups.values()):
                    continue
                for testbed in samples.testbeds:
                    if testbed == reference or testbed not in groups or reference is None:
                        continue
                    cautions = (*doubts[cell, testbed], *doubts.get((cell, reference), ()))
                    pair = (groups[testbed], two)
                    found = _comparison(key, about, levels, (testbed, reference), pair, rules, cautions)
                    headline = shown.get(testbed, False) and shown.get(reference, False)
                    comparisons.append(replace(found, headline=headline))
        decided = tuple(_decide(comparisons, rules.alpha))
        return Result(
            analysis=self.name,
            comparisons=decided,
            cautions=tuple(_study_cautions(tables, samples, carry, decided)),
            look=looks.taken[-1] if looks and looks.taken else None,
            tables={"estimates": list(_estimates(samples, rules.confidence))},
        )


def _estimates(samples: Samples, confidence: float) -> Iterable[dict[str, Any]]:
    for key in samples.keys():  # noqa: SIM118 -- not a mapping
        about = samples.metrics[key[0]]
        for cell, levels in samples.cells.items():
            for testbed in samples.testbeds:
                group = samples.groups[cell].get(testbed)
                if group is None or key not in group.values:
                    continue
                found = estimate(group.values[key], confidence)
                yield {
                    **dict(zip(("metric", "host", "direction"), key, strict=True)),
                    "unit": about.unit,
                    "layer": about.layer,
                    "headline": samples.is_headline(key),
                    "description": about.description,
                    "cell": levels,
                    "testbed": testbed,
                    "n": found.n,
                    "mean": found.mean,
                    "stdev": found.stdev,
                    "low": found.interval.low if found.interval else None,
                    "high": found.interval.high if found.interval else None,
                    "values": found.values,
                }


compare = Compare()
