"""The analysis ``capacity``: the largest N that keeps an objective, with confidence, in words.

In: one row an observation with N and other levels.  Out: ``statements`` (one a combination of the other levels), ``steps`` (one
for each N tested).  Limits and sources: twinbed.statistics.capacity.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from twinbed.model.error import TwinbedError
from twinbed.model.frame import Frame, of_tables
from twinbed.model.numbered import Numbered, numbered
from twinbed.model.result import Result
from twinbed.model.tables import Tables
from twinbed.statistics.capacity import Capacity, Objective, capacity, sentence


class CapacityParams(BaseModel):
    """What ``capacity`` can be told."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    response: str | None = Field(default=None, description="the metric; by default the first headline")
    over: str = Field(default="pairs", description="the factor that is N")
    bound: float = Field(description="what the mean must keep, in the unit of the metric; with relative a share")
    at_most: bool = Field(description="whether it must not exceed the bound, or not fall below it")
    relative: bool = Field(default=False, description="the bound is a share of the mean at N = 1")
    per_pair: bool = Field(default=False, description="the response divided by N")
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="that what is named keeps the objective")


class CapacityAnalysis:
    """How many fit."""

    name = "capacity"
    params = CapacityParams

    def run(self, tables_of_study: Tables, params: CapacityParams) -> Result:
        """Raises TwinbedError where nothing can be said, and says why."""
        return self.analyse(of_tables(tables_of_study, params.response), params)

    def analyse(self, frame: Frame, params: CapacityParams) -> Result:
        """Of a frame. Raises TwinbedError as ``run``."""
        objective = Objective(params.bound, params.at_most, params.relative)
        asked = words(frame, params)
        statements, steps = [], []
        for group in numbered(frame, params.over, per_pair=params.per_pair):
            found = _capacity(group, objective, params)
            statements.append(_statement(group, found, asked, params.over, frame.unit))
            steps += [_step(group, found, at) for at in range(len(found.steps))]
        return Result(analysis=self.name, cautions=frame.cautions, tables={"statements": statements, "steps": steps})


def words(frame: Frame, params: CapacityParams) -> str:
    """The objective, such as ``loss at most 1 %``."""
    one = _one(params.over)
    what = f"{frame.response}{f' per {one}' if params.per_pair else ''} {'at most' if params.at_most else 'at least'}"
    if params.relative:
        return f"{what} {params.bound * 100:g} % of that at 1 {one}"
    return f"{what} {params.bound:g}{f' {frame.unit}' if frame.unit not in ('', '1') else ''}"


def _capacity(group: Numbered, objective: Objective, params: CapacityParams) -> Capacity:
    try:
        return capacity(group.samples(), objective, params.confidence)
    except ValueError as error:
        where = f"{group.name}: " if group.name else ""
        raise TwinbedError(
            f"{where}{error}, with N the {params.over}",
            advice="replicates: 5 or more; factors with a single run each may be left out",
        ) from error


def _one(over: str) -> str:
    """What N counts, without the path to the factor: ``pair``."""
    return over.rpartition(".")[2].removesuffix("s")


def _statement(group: Numbered, found: Capacity, asked: str, over: str, unit: str) -> dict[str, Any]:
    one = _one(over)
    return {
        **group.levels,
        "objective": asked,
        "statement": sentence(found, one, f"{one}s", unit),
        "keeps": found.keeps,
        "fails": found.fails,
        "low": found.low,
        "high": found.high,
        "knee": found.knee,
        "confidence": found.level,
    }


def _step(group: Numbered, found: Capacity, at: int) -> dict[str, Any]:
    step = found.steps[at]
    return {
        **group.levels,
        "n": step.n,
        "runs": step.runs,
        "mean": step.mean,
        "low": step.interval.low,
        "high": step.interval.high,
        "monotone": step.fitted,
        "bound": found.bound,
        "keeps": step.keeps,
        "fails": step.fails,
    }


analysis = CapacityAnalysis()
