"""The analysis ``calibrate``: what one testbed would give, from what another gives and some runs of the first.

In: the runs of two testbeds of one study.  Out: ``calibrations`` (one a response, and a combination of levels that are no
numbers), ``predictions`` (one a cell of the testbed that is calibrated from), ``left_out`` (how each measured cell was
predicted without its like).  Method and limits: twinbed.statistics.calibration, docs/calibration.md.
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
        raise ValueError(f"{value!r} does not speak against a calibration; {' or '.join(known)} may")
    return known[str(value)]


class CalibrateParams(Placed):
    """The settings of ``calibrate``."""

    cheap: str | None = Field(
        default=None, alias="from", description="the testbed that is measured often. Default: of two the other one"
    )
    dear: str | None = Field(default=None, alias="to", description="the testbed to predict. Default: the study's reference")
    responses: tuple[str, ...] = Field(
        default=(), alias="response", description="a metric; may be repeated. Default: every headline metric"
    )
    level: Share = Field(default=0.95, ge=0.5, lt=1, description="that of the intervals")
    random: str | None = Field(
        default=None,
        description="a factor whose levels on the --to testbed were drawn at random, though no study says so",
    )
    despite: tuple[Annotated[Kind, BeforeValidator(_kind)], ...] = Field(
        default=(),
        description="calibrate although this caution speaks against it: software_cpu or cpu_exhausted. Every output says so",
    )


class CalibrateAnalysis(Analysis[CalibrateParams, Calibrations]):
    """What would the real testbed give where only the virtual one was measured?

    A few payloads (or any sizes, rates, numbers) are measured on both testbeds, many on the cheap one. The answer is what the
    expensive one gives at the others, with an interval, or a refusal. The calibration is kept in RESULTS/calibrations, for
    `twinbed predict` and `compare`.

    \b
      twinbed calibrate results/                                  from the other testbed to the reference
      twinbed calibrate results/ --from virtio --to physical --response requests_per_second
      twinbed calibrate results/ -o calibration.html              the page: curves, what was left out, residuals
      twinbed calibrate results/ --next 4                         which runs of the expensive testbed tell most
    """

    name = "calibrate"
    params = CalibrateParams
    epilog = "docs/calibration.md says how, what it promises, and where it says nothing."
    table_names = ("predictions", "calibrations", "left_out")

    def run(self, source: Tables, params: CalibrateParams | None = None) -> Calibrations:
        params = params or CalibrateParams()
        cheap, dear = _testbeds(source, params)
        made: list[Calibrated] = []
        refused: dict[str, TwinbedError] = {}
        frames: list[Frame] = []
        given = [(response, params.host, params.direction) for response in params.responses]
        for response, host, direction in given or headline_places(source):
            try:
                frame = of_tables(source, response, host or None, direction or None)
                if given or {cheap, dear} <= {*frame.column("testbed").levels}:
                    made += _each(source, frame, cheap, dear, params)
                    frames.append(frame)
            except TwinbedError as error:
                refused["@".join(each for each in (response, host, direction) if each)] = error
        if not made or (params.responses and refused):
            raise next(iter(refused.values()), TwinbedError(f"{source.shown} has nothing to calibrate"))
        frame = frames[0]
        against = objections(frame.cautions, cheap, dear)
        if refused_by := {kind: detail for kind, detail in against.items() if kind not in params.despite}:
            said = "; ".join(f"{kind.meaning} ({detail})" for kind, detail in refused_by.items())
            despite = " ".join(f"--despite {kind.name.lower()}" for kind in refused_by)
            raise TwinbedError(
                f"{said}: what holds there is no guide to what holds elsewhere",
                advice=f"{'; '.join(kind.advice for kind in refused_by)}; {despite} calibrates all the same, and says so",
            )
        return Calibrations(
            str(source.shown),
            cheap,
            dear,
            params.level,
            [kind.name.lower() for kind in against],
            {name: passport(source, name) for name in (cheap, dear)},
            made,
            digest(source, (cheap, dear)),
            [each for each in frame.cautions if each.subject in ("", cheap, dear)],
            {**frame.left_out, **{f"response {name} ({error.message})": 1 for name, error in refused.items()}},
        )

    def section(self, result: Calibrations) -> Section:
        return words.section(result)


def _testbeds(source: Tables, params: CalibrateParams) -> tuple[str, str]:
    names = source.outline.testbeds
    dear = params.dear or source.outline.reference
    others = [name for name in names if name != dear]
    cheap = params.cheap or (others[0] if len(others) == 1 else None)
    if dear is None or cheap is None:
        raise TwinbedError("from which testbed to which?", advice=f"--from A --to B; there are: {', '.join(names)}")
    for name in (cheap, dear):
        if name not in names:
            raise TwinbedError(f"there is no testbed {name!r}", advice=instead(name, names))
    if cheap == dear:
        raise TwinbedError(f"{dear} cannot be calibrated to itself", advice=f"there are: {', '.join(names)}")
    return cheap, dear


def _each(source: Tables, frame: Frame, cheap: str, dear: str, params: CalibrateParams) -> Iterator[Calibrated]:
    factors = [name for name in frame.factors if name != "testbed"]
    one, two = (runs_of(frame, name, factors) for name in (cheap, dear))
    further = dict(_further(frame, (cheap, dear), factors))
    inputs = inputs_of(one, two)
    combinations = list(others(one, two, inputs))
    if not combinations:
        raise TwinbedError(f"{cheap} and {dear} share no level of {', '.join(factors)}")
    for levels in combinations:
        own, there = one.only(levels), two.only(levels)
        by, drawn = _drawn(source, dear, [each.name for each in inputs], params.random, there.levels)
        most = limit(source, dear, frame.response, there)
        made = fitted(frame.response, frame.unit, levels, own, there, by=by, drawn=drawn, level=params.level, limit=most)
        yield Calibrated(made, {name: runs.only(levels) for name, runs in further.items()})


def _further(frame: Frame, not_these: Sequence[str], factors: Sequence[str]) -> Iterator[tuple[str, Runs]]:
    """The testbeds that are neither calibrated from nor to; those whose values have no logarithm are left out."""
    for name in map(str, frame.column("testbed").levels):
        if name not in not_these:
            with suppress(TwinbedError):
                yield name, runs_of(frame, name, factors)


def _drawn(
    source: Tables, dear: str, inputs: Sequence[str], declared: str | None, levels: Mapping[str, Sequence[Level]]
) -> tuple[str | None, Sequence[Level]]:
    """The input whose levels on the dear testbed were drawn at random, and these: what the study says, or the user."""
    if declared is not None:
        if declared not in inputs:
            raise TwinbedError(f"{declared} is no number that varies", advice=instead(declared, inputs))
        return declared, list(dict.fromkeys(levels[declared]))
    known = source.outline.data.get("drawn", {}).get(dear, {})
    own = [(len(known[name]), name) for name in inputs if name in known]
    if not own:
        return None, ()
    name = max(own)[1]
    there = set(levels[name])
    return name, [each for each in known[name] if each in there]


analysis = CalibrateAnalysis()
