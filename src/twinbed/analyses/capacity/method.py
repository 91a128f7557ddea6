"""The analysis ``capacity``: the largest N that keeps an objective, with confidence, in words.

In: one row an observation with N and other levels.  Out: ``statements`` (one a combination of the other levels), ``steps`` (one
for each N tested).  Limits and sources: twinbed.statistics.capacity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from pydantic import BaseModel, ConfigDict, Field

from twinbed.analyses.capacity.result import Capacities, LevelCapacity, Tested, tables
from twinbed.contracts.analysis import Analysis, Section
from twinbed.metrics.metric import computable
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.result import Interval
from twinbed.model.tables import Tables
from twinbed.observations.frame import Frame, of_tables
from twinbed.observations.numbered import ALONE, Numbered, each_by_itself, numbered
from twinbed.show.table import Row
from twinbed.statistics.capacity import LEAST, Capacity, Objective, capacity, sentence

FEW = 5
"""Runs at an N: fewer leave one unsure of how runs vary."""


class CapacityParams(BaseModel):
    """The settings of ``capacity``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    response: str | None = Field(default=None, description="the metric; by default the first headline")
    over: str = Field(default="pairs", description="the factor that is N")
    bound: float = Field(description="what the mean must keep, in the unit of the metric; with relative a share")
    at_most: bool = Field(description="whether it must not exceed the bound, or not fall below it")
    relative: bool = Field(default=False, description="the bound is a share of the mean at N = 1, or of a better one")
    per_pair: bool = Field(default=False, description="the response divided by N")
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="that what is named keeps the objective")


class CapacityAnalysis(Analysis[CapacityParams, Capacities]):
    """How many fit."""

    name = "capacity"
    params = CapacityParams
    summary = "the largest N that keeps an objective, with confidence"

    def run(self, source: Tables | Frame, params: CapacityParams | None = None) -> Capacities:
        if params is None:
            raise TwinbedError("what must hold?", advice="an objective: a bound, and whether the mean must not be above it")
        frame = source if isinstance(source, Frame) else of_tables(source, params.response)
        for what, largest in ((frame.response, float(max(abs(frame.y), default=0.0))), ("the bound", params.bound)):
            if not computable(largest):
                raise TwinbedError(f"{what} is of the size {largest:.0e}", advice="take another unit")
        estimated, refused = each_by_itself(
            numbered(frame, params.over, per_pair=params.per_pair),
            lambda group: (group, _group(group, params, frame.unit.removeprefix("1"))),
        )
        of_n, groups = [group for group, _ in estimated], [group for _, group in estimated]
        few = chain.from_iterable(_few(group, params.over) for group in of_n)
        left_out = {**frame.left_out, **refused}
        if alone := sum(len(group.n) - sum(map(len, _samples(group, params).values())) for group in of_n):
            left_out[ALONE] = alone
        return Capacities(
            frame.source,
            frame.response,
            frame.unit,
            params.over,
            params.per_pair,
            words(frame, params),
            params.confidence,
            groups,
            (*frame.cautions, *few),
            left_out,
        )

    def tables(self, result: Capacities) -> Mapping[str, Sequence[Row]]:
        return tables(result)

    def section(self, result: Capacities) -> Section:
        from twinbed.analyses.capacity.page import section

        return section(result)


def words(frame: Frame, params: CapacityParams) -> str:
    """The objective, such as ``loss at most 1 %``."""
    one = _one(params.over)
    what = f"{frame.response}{f' per {one}' if params.per_pair else ''} {'at most' if params.at_most else 'at least'}"
    if params.relative:
        return f"{what} {params.bound * 100:g} % of that at 1 {one}"
    return f"{what} {params.bound:g}{f' {unit}' if (unit := frame.unit.removeprefix('1')) else ''}"


def _samples(group: Numbered, params: CapacityParams) -> dict[int, list[float]]:
    return group.enough(LEAST, 1 if params.relative else None)


def _capacity(group: Numbered, params: CapacityParams) -> Capacity:
    objective = Objective(params.bound, params.at_most, params.relative)
    try:
        return capacity(_samples(group, params), objective, params.confidence)
    except ValueError as error:
        where = f"{group.name}: " if group.name else ""
        raise TwinbedError(
            f"{where}{error}, with N the {params.over}",
            advice="replicates: 5 or more, and N = 1 for a share of it; `twinbed run --retry-failed` makes failed runs again",
        ) from error


def _few(group: Numbered, over: str) -> Iterator[Caution]:
    counts = {n: len(values) for n, values in group.samples(LEAST).items()}
    if min(counts.values()) < FEW:
        least = min(counts, key=counts.__getitem__)
        yield Caution(Kind.FEW_REPLICATES, f"{counts[least]} at {over} {least}", group.name)


def _one(over: str) -> str:
    """What N counts, without the path to the factor: ``pair``."""
    return over.rpartition(".")[2].removesuffix("s")


def _group(group: Numbered, params: CapacityParams, unit: str) -> LevelCapacity:
    fit, samples, one = _capacity(group, params), _samples(group, params), _one(params.over)
    steps = [
        Tested(
            step.n,
            samples[step.n],
            step.mean,
            Interval(step.interval.low, step.interval.high, step.interval.level),
            step.fitted,
            step.keeps,
            step.fails,
        )
        for step in fit.steps
    ]
    statement = sentence(fit, one, f"{one}s", unit)
    return LevelCapacity(
        group.levels,
        statement,
        fit.keeps,
        fit.fails,
        fit.low,
        fit.high,
        fit.knee,
        fit.bound,
        steps,
    )


analysis = CapacityAnalysis()
