"""The analysis ``capacity``: the largest N that keeps an objective, with confidence.

In: one row an observation with N and other levels.  Out: ``statements`` (one a combination of the other levels), ``steps`` (one
for each N tested).  Limits and sources: twinbed.statistics.capacity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field, model_validator

from twinbed.analyses.capacity import words
from twinbed.analyses.capacity.result import Capacities, LevelCapacity, Tested
from twinbed.contracts.analysis import Otherwise, RowsAnalysis
from twinbed.metrics.metric import computable
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.result import Interval
from twinbed.model.tables import Tables
from twinbed.observations.frame import Frame
from twinbed.observations.numbered import ALONE, PAIRS, Fitting, Numbered, OverN, each_by_itself, fitting, one_of, over_n
from twinbed.show.section import Section
from twinbed.statistics.capacity import LEAST, Objective

FEW = 5
"""Runs at an N: with fewer, the spread of runs is not well known."""


class CapacityParams(OverN):
    """The settings of ``capacity``."""

    per_pair: Annotated[bool, Otherwise("whole")] = Field(default=False, description="divide the response by N")
    at_most: float | None = Field(default=None, description="the mean must not be above it")
    at_least: float | None = Field(default=None, description="the mean must not be below it")
    of_one: bool = Field(
        default=False, description="the bound is a share of the mean at N = 1, or of a better one: --at-least 0.9 --of-one"
    )
    by: tuple[str, ...] = Field(
        default=(), description="another factor of FILE; each of its levels has its own capacity; may be repeated"
    )
    confidence: float = Field(
        default=0.95, gt=0.5, lt=1, description="the confidence that the named number keeps the objective"
    )

    @model_validator(mode="before")
    @classmethod
    def _bound(cls, given: Mapping[str, object]) -> Mapping[str, object]:
        """Read an objective as a ``bound``, with ``at_most`` as yes or no, and ``relative``."""
        if "bound" not in given:
            return given
        which = "at_most" if given.get("at_most") else "at_least"
        rest = {name: value for name, value in given.items() if name not in ("bound", "at_most", "relative")}
        return {**rest, which: given["bound"], "of_one": given.get("relative", False)}

    @property
    def objective(self) -> Objective:
        """Return the objective. Raises TwinbedError where there is none, or two."""
        bound = self.at_least if self.at_most is None else self.at_most
        if bound is None or (self.at_most is not None and self.at_least is not None):
            raise TwinbedError("capacity needs one objective", advice="give either --at-most VALUE or --at-least VALUE")
        if not math.isfinite(bound):
            raise TwinbedError(
                f"the bound {bound:g} is not finite",
                advice="give a number in the unit of the response, or with --of-one a share",
            )
        if not computable(bound):
            raise TwinbedError(f"the bound {bound:.0e} is too large or too small to compute with", advice="use another unit")
        return Objective(bound, self.at_most is not None, self.of_one)


class CapacityAnalysis(RowsAnalysis[CapacityParams, Capacities]):
    """What is the largest N (pairs, flows, receivers) that keeps an objective, with which confidence?

    N is a factor of the study. Only tested N are named: nothing is known between them or above the largest.

    \b
      twinbed analyse capacity results/ --response loss --at-most 0.01
      twinbed analyse capacity results/ --response requests_per_second --per-pair --at-least 0.9 --of-one
      twinbed analyse capacity loss.csv --response loss --over receivers --at-most 1
      twinbed analyse capacity results/ --response loss --at-most 0.01 -o capacity.html       as a page
    """

    name = "capacity"
    params = CapacityParams
    epilog = "docs/capacity.md explains the tests, and why only tested N are named."
    table_names = ("statements", "steps")

    def columns(self, params: CapacityParams) -> tuple[str | None, Sequence[str]]:
        return params.response, (params.over or PAIRS, *params.by)

    def run(self, source: Tables | Frame, params: CapacityParams | None = None) -> Capacities:
        params = params or CapacityParams()
        objective = params.objective
        frame, over, numbered = over_n(source, params)

        def judged(group: Numbered) -> tuple[Numbered, Fitting]:
            return group, fitting(group, over, objective, params.confidence, frame.unit)

        fitted, refused = each_by_itself(numbered, judged)
        left_out = {**frame.left_out, **refused}
        if alone := sum(len(group.n) - sum(map(len, fit.samples.values())) for group, fit in fitted):
            left_out[ALONE] = alone
        few = (caution for group, _ in fitted for caution in _few(group, over))
        return Capacities(
            frame.source,
            frame.response,
            frame.unit,
            over,
            params.per_pair,
            _in_words(frame, over, objective, params.per_pair),
            params.confidence,
            [_group(group, fit) for group, fit in fitted],
            cautions=(*frame.cautions, *few),
            left_out=left_out,
        )

    def section(self, result: Capacities) -> Section:
        return words.section(result)


def _in_words(frame: Frame, over: str, objective: Objective, per_pair: bool) -> str:
    """Return the objective, such as ``loss at most 1 %``."""
    noun = one_of(over)
    what = f"{frame.response}{f' per {noun}' if per_pair else ''} {'at most' if objective.at_most else 'at least'}"
    if objective.relative:
        return f"{what} {objective.bound * 100:g} % of that at 1 {noun}"
    return f"{what} {objective.bound:g}{f' {unit}' if (unit := frame.unit.removeprefix('1')) else ''}"


def _few(group: Numbered, over: str) -> Iterator[Caution]:
    counts = {n: len(values) for n, values in group.samples(LEAST).items()}
    if min(counts.values()) < FEW:
        least = min(counts, key=counts.__getitem__)
        yield Caution(Kind.FEW_REPLICATES, f"{counts[least]} at {over} {least}", group.name)


def _group(group: Numbered, made: Fitting) -> LevelCapacity:
    fit = made.capacity
    steps = [
        Tested(
            step.n,
            made.samples[step.n],
            step.mean,
            Interval(step.interval.low, step.interval.high, step.interval.level),
            step.fitted,
            step.keeps,
            step.fails,
        )
        for step in fit.steps
    ]
    return LevelCapacity(group.levels, made.statement, fit.keeps, fit.fails, fit.low, fit.high, fit.knee, fit.bound, steps)


analysis = CapacityAnalysis()
