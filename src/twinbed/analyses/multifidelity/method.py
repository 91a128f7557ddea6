"""The analysis ``multifidelity``: what the dear testbed gives over uncertain inputs, with the runs of cheaper ones mixed in.

In: one row an observation with its testbed and its draw.  Out: ``estimates`` (mean, variance, quantiles, the share below a
bound) and ``testbeds`` (draws, correlations, what a run takes).  Methods, limits and sources:
twinbed.statistics.multifidelity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field

from twinbed.analyses.multifidelity.result import Estimated, Group, Multifidelity, Testbed, tables
from twinbed.contracts.analysis import Analysis, Section
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.result import Interval
from twinbed.model.run import level_text
from twinbed.model.tables import Tables
from twinbed.observations.draws import Draws, draws_of, inputs_of, seconds_of
from twinbed.observations.frame import Frame, of_tables
from twinbed.show.table import Row
from twinbed.statistics.multifidelity.allocation import LEAST_PAIRS
from twinbed.statistics.multifidelity.decision import correlation
from twinbed.statistics.multifidelity.estimate import shared
from twinbed.statistics.multifidelity.quantities import Quantity, mean, quantile, share_below, variance

QUANTILES = (0.5, 0.9)


class MultifidelityParams(BaseModel):
    """The settings of ``multifidelity``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    response: str | None = Field(default=None, description="the metric; by default the first headline")
    host: str | None = Field(default=None, description="where it was measured, where there are several")
    direction: str | None = Field(default=None, description="in which direction, where there are both")
    dear: str | None = Field(default=None, description="the testbed that is asked about; of results by default the reference")
    below: float | None = Field(default=None, description="the share of values below it is estimated too")
    quantiles: tuple[float, ...] = Field(default=QUANTILES, description="each above 0 and below 1")
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="of the intervals")


class MultifidelityAnalysis(Analysis[MultifidelityParams, Multifidelity]):
    """Few dear runs and many cheap ones."""

    name = "multifidelity"
    params = MultifidelityParams
    summary = "what the dear testbed gives over uncertain inputs, with cheap runs mixed in"

    def run(self, source: Tables | Frame, params: MultifidelityParams | None = None) -> Multifidelity:
        params = params or MultifidelityParams()
        inputs: Sequence[str] = ()
        seconds: Mapping[str, float] = {}
        if isinstance(source, Frame):
            frame = source
        else:
            inputs, seconds = inputs_of(source), seconds_of(source)
            frame = of_tables(source, params.response, params.host, params.direction)
        dear = params.dear or frame.reference
        if dear is None:
            raise TwinbedError("which testbed is asked about?", advice="--dear TESTBED")
        if not all(0 < p < 1 for p in params.quantiles):
            raise TwinbedError("a quantile is not above 0 and below 1", advice="--quantile 0.9")
        groups = draws_of(frame, dear, inputs)
        few = [caution for group in groups for caution in _few(group)]
        return Multifidelity(
            frame.source,
            frame.response,
            frame.unit,
            dear,
            params.confidence,
            [_group(group, params, seconds) for group in groups],
            (*frame.cautions, *few),
            frame.left_out,
        )

    def section(self, result: Multifidelity) -> Section:
        from twinbed.analyses.multifidelity.section import section

        return section(result)

    def sections(self, source: Tables) -> Sequence[Section]:
        """Of studies with uncertain inputs alone."""
        if not source.outline.data.get("uncertain"):
            return ()
        try:
            result = self.run(source)
        except TwinbedError:  # too few draws yet
            return ()
        return (self.section(result),)

    def tables(self, result: Multifidelity) -> Mapping[str, Sequence[Row]]:
        return tables(result)


def _few(group: Draws) -> Iterator[Caution]:
    pairs = [shared(group.values, at) for at in range(1, len(group.testbeds))]
    if pairs and max(pairs) < LEAST_PAIRS:
        where = ", ".join(f"{name} {level_text(level)}" for name, level in group.levels.items())
        yield Caution(Kind.FEW_REPLICATES, f"{max(pairs)} shared draws, of which {LEAST_PAIRS} are wanted", where)


def _group(group: Draws, params: MultifidelityParams, seconds: Mapping[str, float]) -> Group:
    values, names, level = group.values, group.testbeds, params.confidence
    try:
        found = {"mean": mean(values, level, names), "variance": variance(values, level, names)}
        found |= {f"quantile {p:g}": quantile(values, p, level, names) for p in params.quantiles}
        if params.below is not None:
            found[f"P(< {params.below:g})"] = share_below(values, params.below, level, names)
    except ValueError as error:
        raise TwinbedError(str(error).replace("the dear model", names[0]), advice="samples: 10 draws or more") from error
    estimates = [_estimated(name, each, group, seconds) for name, each in found.items()]
    return Group(group.levels, estimates, [_testbed(group, at, seconds) for at in range(len(names))])


def _testbed(group: Draws, at: int, seconds: Mapping[str, float]) -> Testbed:
    name = group.testbeds[at]
    return Testbed(
        name,
        _draws(group, at),
        shared(group.values, at),
        correlation(group.values, at) if at else None,
        group.cap(at) if at else None,
        seconds.get(name),
    )


def _draws(group: Draws, at: int) -> int:
    return int((group.values[:, at] == group.values[:, at]).sum())


def _estimated(name: str, each: Quantity, group: Draws, seconds: Mapping[str, float]) -> Estimated:
    return Estimated(
        name,
        each.value,
        each.low,
        each.high,
        tuple(group.testbeds[model] for model in each.models),
        None if each.plain is None else Interval(each.plain.low, each.plain.high, each.plain.level),
        each.refusal and each.refusal + _noise(each, group),
        _at_equal_time(each, group, seconds) if name == "mean" else None,
    )


def _noise(each: Quantity, group: Draws) -> str:
    """What run noise leaves of correlations, where weak ones are why nothing was mixed in."""
    if each.expected is None:
        return ""
    caps = {name: group.cap(at) for at, name in enumerate(group.testbeds) if at}
    known = [f"{name} at {cap:.2f}" for name, cap in caps.items() if cap is not None]
    return f"; run noise caps the correlation of {', '.join(known)}" if known else ""


def _at_equal_time(each: Quantity, group: Draws, seconds: Mapping[str, float]) -> float | None:
    used = [0, *each.models]
    if not each.models or each.squared_error is None or any(group.testbeds[at] not in seconds for at in used):
        return None
    spent = sum(_draws(group, at) * seconds[group.testbeds[at]] for at in used)
    return each.squared_error[0] / each.squared_error[1] * spent / (_draws(group, 0) * seconds[group.testbeds[0]])


analysis = MultifidelityAnalysis()
