"""Gather what comparisons are made of: samples, the units in which means are compared, and the rules of the study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, field_validator

from twinbed.analyses.compare.decision import Rules
from twinbed.model.caution import OF_RUNS
from twinbed.model.columns import Records
from twinbed.model.record import IMPORTED
from twinbed.model.tables import Tables
from twinbed.model.view import AsOf, Without
from twinbed.observations.samples import CellRuns, Key, Samples, gather
from twinbed.observations.units import NONE, TIME, Units, units


class CompareParams(BaseModel):
    """The settings of ``compare``; null takes what the study file says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: str | None = Field(
        default=None,
        description="the factor whose levels are compared; null: testbeds; with one testbed, the switch or choice that varies",
    )
    reference: str | None = Field(default=None, description="the testbed, or the level, to compare the others with")
    margin: float | None = Field(default=None, gt=0, description="how far apart still counts as equivalent: 0.1 is 10 %")
    confidence: float | None = Field(
        default=None, gt=0.5, lt=1, description="1 - alpha: 0.95 keeps each kind of wrong verdict at 5 %"
    )
    sessions: str | None = Field(
        default=None,
        description=f"the factor that says in which session a run was made; {TIME}: by pauses between runs; "
        f"{NONE}: sessions do not matter",
    )

    exclude: tuple[str, ...] = Field(default=(), description="cautions that leave a run out: instead of the study's own")

    @field_validator("exclude")
    @classmethod
    def _of_runs(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in OF_RUNS:
                raise ValueError(f"{name!r} is not a caution that leaves a run out, expected {', '.join(OF_RUNS)}")
        return names


@dataclass(frozen=True, slots=True)
class Gathered:
    """All that the comparisons of a study rest on."""

    tables: Tables
    """As of the last interim analysis, without the runs that are left out."""
    rules: Rules
    samples: Samples
    units: Units
    sessions: str | None
    """The factor that says which session a run is of; None where pauses do."""
    without_sessions: bool
    """True if somebody says that sessions do not matter."""

    @property
    def interim_analyses(self) -> int:
        """Return how many interim analyses were taken."""
        return len(self.rules.information or ())

    def headlines(self, key: Key) -> Sequence[str]:
        """Return the testbeds whose comparison of this is a headline: what the reference cannot measure is none."""
        reference, samples = self.tables.outline.reference, self.samples
        if reference is None or not samples.is_headline(key) or not samples.measures(reference, key):
            return ()
        return [testbed for testbed in samples.testbeds if samples.measures(testbed, key)]


def gathered(source: Tables, params: CompareParams, without: frozenset[str] = frozenset()) -> Gathered:
    """Gather what the runs of a study hold, but for the runs ``without``."""
    tables: Tables = Without(source, without) if without else source
    outline = tables.outline
    margin = params.margin if params.margin is not None else outline.margin
    confidence = params.confidence if params.confidence is not None else outline.confidence
    interim = outline.interim
    information = tuple(analysis.information for analysis in interim.taken) if interim else None
    elsewhere = any(settings["testbed"].get("kind") == IMPORTED for settings in Records.of(tables.records).settings.distinct())
    rules = Rules(margin, round(1 - confidence, 12), confidence, information, elsewhere)
    if interim and interim.taken:
        tables = AsOf(tables, interim.blocks)
    asked = params.sessions if params.sessions is not None else outline.data.get("sessions")
    sessions = None if asked == NONE else asked
    samples = gather(tables, sessions)
    if without:
        _keep_places(samples, gather(source, sessions))
    return Gathered(tables, rules, samples, units(tables, sessions), sessions, asked == NONE)


def _keep_places(samples: Samples, whole: Samples) -> None:
    """Keep a cell and testbed of which all runs are left out: it is compared all the same, of no values."""
    for cell, groups in whole.groups.items():
        samples.cells.setdefault(cell, whole.cells[cell])
        for testbed in groups:
            samples.groups.setdefault(cell, {}).setdefault(testbed, CellRuns())
    for metric, declared in whole.metrics.items():
        samples.metrics.setdefault(metric, declared)
    samples.testbeds = whole.testbeds
