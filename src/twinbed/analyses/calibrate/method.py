"""The analysis ``calibrate``: predict an expensive testbed from a cheap one and a few runs of the expensive one.

In: the runs of two testbeds of one study.  Out: ``calibrations`` (one for each response and combination of levels that are no
numbers), ``predictions`` (one for each cell of the cheap testbed) and ``left_out`` (how each measured cell was predicted from
the others).  Method and limits: twinbed.statistics.calibration, docs/calibration.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated

from pydantic import BeforeValidator, Field

from twinbed.analyses.calibrate import words
from twinbed.analyses.calibrate.data import DISQUALIFYING, Runs, inputs_of, limit, objections, others, passport, runs_of
from twinbed.analyses.calibrate.fit import fitted
from twinbed.analyses.calibrate.result import Calibrated, Calibrations
from twinbed.contracts.analysis import Analysis, Placed
from twinbed.model.caution import Kind
from twinbed.model.error import TwinbedError
from twinbed.model.near import instead
from twinbed.model.run import Level
from twinbed.model.tables import Tables
from twinbed.model.units import Share
from twinbed.observations.frame import Frame, headline_places, of_tables
from twinbed.observations.predictable import digest
from twinbed.show.section import Section


def _kind(value: object) -> object:
    """Return a caution that disqualifies, by its name. Raises ValueError for others."""
    known = {kind.name.lower(): kind for kind in DISQUALIFYING}
    if isinstance(value, Kind):
        return value
    if value not in known:
        raise ValueError(f"{value!r} never prevents a calibration; give {' or '.join(known)}")
    return known[str(value)]


class CalibrateParams(Placed):
    """The settings of ``calibrate``."""

    cheap: str | None = Field(
        default=None, alias="from", description="the cheap testbed. Default: the other one, if there are two"
    )
    expensive: str | None = Field(
        default=None, alias="to", description="the expensive testbed to predict. Default: the study's reference"
    )
    responses: tuple[str, ...] = Field(
        default=(), alias="response", description="a metric; may be repeated. Default: every headline metric"
    )
    level: Share = Field(default=0.95, ge=0.5, lt=1, description="the confidence of the intervals, such as 95%")
    random: str | None = Field(
        default=None,
        description="a factor whose levels on the --to testbed were drawn at random, without a record in the study",
    )
    despite: tuple[Annotated[Kind, BeforeValidator(_kind)], ...] = Field(
        default=(),
        description="calibrate in spite of this caution: software_cpu or cpu_exhausted. Every output reports it",
    )


class CalibrateAnalysis(Analysis[CalibrateParams, Calibrations]):
    """Predict the expensive (real) testbed where only the cheap (virtual) one was measured.

    A few payloads (or any sizes, rates, numbers) are measured on both testbeds, many on the cheap one. For the others, this
    predicts the expensive testbed with an interval, or refuses. The calibration is kept in RESULTS/calibrations, for `twinbed
    predict` and `compare`.

    \b
      twinbed calibrate results/                                  from the other testbed to the reference
      twinbed calibrate results/ --from virtio --to physical --response requests_per_second
      twinbed calibrate results/ -o calibration.html              a page: curves, left-out cells, residuals
      twinbed calibrate results/ --next 4                         the most useful next runs of the expensive testbed
    """

    name = "calibrate"
    params = CalibrateParams
    epilog = "docs/calibration.md explains the method, what it promises, and where it refuses."
    table_names = ("predictions", "calibrations", "left_out")

    def run(self, source: Tables, params: CalibrateParams | None = None) -> Calibrations:
        params = params or CalibrateParams()
        cheap, expensive = _testbeds(source, params)
        made: list[Calibrated] = []
        refused: dict[str, TwinbedError] = {}
        frames: list[Frame] = []
        given = [(response, params.host, params.direction) for response in params.responses]
        for response, host, direction in given or headline_places(source):
            try:
                frame = of_tables(source, response, host or None, direction or None)
                if given or {cheap, expensive} <= {*frame.column("testbed").levels}:
                    frames.append(frame)
                    made += _calibrated(source, frame, cheap, expensive, params)
            except TwinbedError as error:
                refused["@".join(part for part in (response, host, direction) if part)] = error
        if not made or (params.responses and refused):
            raise next(iter(refused.values()), TwinbedError(f"{source.shown} has no headline metric to calibrate"))
        frame = frames[0]
        against = objections(frame.cautions, cheap, expensive)
        if refused_by := {kind: detail for kind, detail in against.items() if kind not in params.despite}:
            reasons = "; ".join(f"{kind.meaning} ({detail})" for kind, detail in refused_by.items())
            despite = " ".join(f"--despite {kind.name.lower()}" for kind in refused_by)
            raise TwinbedError(
                f"these runs cannot be calibrated, since they would not predict others: {reasons}",
                advice=f"{'; '.join(kind.advice for kind in refused_by)}; {despite} calibrates anyway, and reports it",
            )
        return Calibrations(
            str(source.shown),
            cheap,
            expensive,
            params.level,
            [kind.name.lower() for kind in against],
            {name: passport(source, name) for name in (cheap, expensive)},
            made,
            digest(source, (cheap, expensive)),
            cautions=[caution for caution in frame.cautions if caution.subject in ("", cheap, expensive)],
            left_out={**frame.left_out, **{f"response {name} ({error.message})": 1 for name, error in refused.items()}},
        )

    def section(self, result: Calibrations) -> Section:
        return words.section(result)


def _testbeds(source: Tables, params: CalibrateParams) -> tuple[str, str]:
    names = source.outline.testbeds
    expensive = params.expensive or source.outline.reference
    others = [name for name in names if name != expensive]
    cheap = params.cheap or (others[0] if len(others) == 1 else None)
    if expensive is None or cheap is None:
        raise TwinbedError(
            "a calibration needs two testbeds", advice=f"name them: --from A --to B; RESULTS have {', '.join(names)}"
        )
    for name in (cheap, expensive):
        if name not in names:
            raise TwinbedError(f"{source.shown} has no testbed {name!r}", advice=instead(name, names))
    if cheap == expensive:
        raise TwinbedError(f"{expensive} cannot be calibrated to itself", advice=f"choose two of {', '.join(names)}")
    return cheap, expensive


def _calibrated(source: Tables, frame: Frame, cheap: str, expensive: str, params: CalibrateParams) -> Iterator[Calibrated]:
    factors = [name for name in frame.factors if name != "testbed"]
    cheap_runs, expensive_runs = (runs_of(frame, name, factors) for name in (cheap, expensive))
    further = dict(_further(frame, (cheap, expensive), factors))
    inputs = inputs_of(cheap_runs, expensive_runs)
    combinations = list(others(cheap_runs, expensive_runs, inputs))
    if not combinations:
        raise TwinbedError(
            f"{cheap} and {expensive} share no level of {', '.join(factors)}", advice="measure some levels on both testbeds"
        )
    for levels in combinations:
        of_cheap, of_expensive = cheap_runs.only(levels), expensive_runs.only(levels)
        by, drawn = _drawn(source, expensive, [factor.name for factor in inputs], params.random, of_expensive.levels)
        most = limit(source, expensive, frame.response, of_expensive)
        made = fitted(
            frame.response, frame.unit, levels, of_cheap, of_expensive, by=by, drawn=drawn, level=params.level, limit=most
        )
        yield Calibrated(made, {name: runs.only(levels) for name, runs in further.items()})


def _further(frame: Frame, not_these: Sequence[str], factors: Sequence[str]) -> Iterator[tuple[str, Runs]]:
    """Yield the runs of other testbeds, without those whose values have no logarithm."""
    for name in map(str, frame.column("testbed").levels):
        if name not in not_these:
            with suppress(TwinbedError):
                yield name, runs_of(frame, name, factors)


def _drawn(
    source: Tables, expensive: str, inputs: Sequence[str], declared: str | None, levels: Mapping[str, Sequence[Level]]
) -> tuple[str | None, Sequence[Level]]:
    """Return the input whose levels on the expensive testbed were drawn at random, by the study or the user, and its levels."""
    if declared is not None:
        if declared not in inputs:
            raise TwinbedError(f"--random {declared} is not a number that varies", advice=instead(declared, inputs))
        return declared, list(dict.fromkeys(levels[declared]))
    known = source.outline.data.get("drawn", {}).get(expensive, {})
    own = [(len(known[name]), name) for name in inputs if name in known]
    if not own:
        return None, ()
    name = max(own)[1]
    measured = set(levels[name])
    return name, [level for level in known[name] if level in measured]


analysis = CalibrateAnalysis()
