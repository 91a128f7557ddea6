"""The analysis ``multifidelity``: estimate an expensive testbed over uncertain inputs, with the runs of cheaper ones mixed in.

In: one row an observation with its testbed and its draw.  Out: ``estimates`` (mean, variance, quantiles, the share below a
bound) and ``testbeds`` (draws, correlations, seconds a run).  Methods, limits and sources: twinbed.statistics.multifidelity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import Field

from twinbed.analyses.multifidelity import words
from twinbed.analyses.multifidelity.result import Estimated, Group, Multifidelity, Testbed
from twinbed.contracts.analysis import Placed, RowsAnalysis
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.result import Interval
from twinbed.model.run import level_text
from twinbed.model.tables import Tables
from twinbed.observations.draws import DRAW, TESTBED, Draws, draws_of, inputs_of, seconds_of
from twinbed.observations.frame import Frame, of_tables
from twinbed.show.section import Section
from twinbed.statistics.multifidelity.allocation import LEAST_PAIRS
from twinbed.statistics.multifidelity.decision import correlation
from twinbed.statistics.multifidelity.estimate import shared
from twinbed.statistics.multifidelity.quantities import Quantity, mean, quantile, share_below, variance

QUANTILES = (0.5, 0.9)


class MultifidelityParams(Placed):
    """The settings of ``multifidelity``."""

    response: str | None = Field(default=None, description="the metric. Default: the first headline metric of RESULTS")
    dear: str | None = Field(default=None, description="the expensive testbed to estimate. Default: the reference of RESULTS")
    below: float | None = Field(default=None, description="also estimate the share of values below this bound")
    quantiles: tuple[float, ...] = Field(
        default=QUANTILES, alias="quantile", description="a quantile, above 0 and below 1; may be repeated"
    )
    by: tuple[str, ...] = Field(
        default=(), description="another factor of FILE; each of its levels is estimated by itself; may be repeated"
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="the confidence of the intervals")


class MultifidelityAnalysis(RowsAnalysis[MultifidelityParams, Multifidelity]):
    """Estimate an expensive testbed over uncertain inputs (`uncertain:` in the study) from its few runs and many cheap ones.

    Gives mean, variance, quantiles and the share below a bound, each with its interval. Cheaper testbeds run the same draws. If
    they do not help, only the expensive runs are used and the reason is printed. FILE has the columns testbed, draw and the
    response.

    \b
      twinbed analyse multifidelity results/
      twinbed analyse multifidelity results/ --response requests_per_second --below 500 --quantile 0.05
      twinbed analyse multifidelity runs.csv --response requests_per_second --dear physical
    """

    name = "multifidelity"
    params = MultifidelityParams
    epilog = "docs/multifidelity.md explains the estimates, and when mixing does not pay."
    table_names = ("estimates", "testbeds")
    is_in_reports = True

    def columns(self, params: MultifidelityParams) -> tuple[str | None, Sequence[str]]:
        return params.response, (TESTBED, DRAW, *params.by)

    def run(self, source: Tables | Frame, params: MultifidelityParams | None = None) -> Multifidelity:
        params = params or MultifidelityParams()
        inputs: Sequence[str] = ()
        seconds: Mapping[str, float] = {}
        if isinstance(source, Frame):
            frame = source
        else:
            inputs, seconds = inputs_of(source), seconds_of(source)
            frame = of_tables(source, params.response, params.host, params.direction)
        expensive = params.dear or frame.reference
        if expensive is None:
            raise TwinbedError(f"{frame.source} has no reference testbed to estimate", advice="name one: `--dear TESTBED`")
        if not all(0 < p < 1 for p in params.quantiles):
            raise TwinbedError("a quantile must be above 0 and below 1", advice="such as --quantile 0.9")
        groups = draws_of(frame, expensive, inputs)
        few = [caution for group in groups for caution in _few(group)]
        return Multifidelity(
            frame.source,
            frame.response,
            frame.unit,
            expensive,
            params.confidence,
            [_group(group, params, seconds) for group in groups],
            cautions=(*frame.cautions, *few),
            left_out=frame.left_out,
        )

    def section(self, result: Multifidelity) -> Section:
        return words.section(result)


def _few(group: Draws) -> Iterator[Caution]:
    pairs = [shared(group.values, at) for at in range(1, len(group.testbeds))]
    if pairs and max(pairs) < LEAST_PAIRS:
        where = ", ".join(f"{name} {level_text(level)}" for name, level in group.levels.items())
        yield Caution(Kind.FEW_REPLICATES, f"{max(pairs)} shared draws, {LEAST_PAIRS} are needed", where)


def _group(group: Draws, params: MultifidelityParams, seconds: Mapping[str, float]) -> Group:
    values, names, level = group.values, group.testbeds, params.confidence
    try:
        quantities = {"mean": mean(values, level, names), "variance": variance(values, level, names)}
        quantities |= {f"quantile {p:g}": quantile(values, p, level, names) for p in params.quantiles}
        if params.below is not None:
            quantities[f"P(< {params.below:g})"] = share_below(values, params.below, level, names)
    except ValueError as error:
        raise TwinbedError(
            str(error).replace("the expensive model", names[0]), advice="set uncertain: {samples: 10} or more"
        ) from error
    estimates = [_estimated(name, quantity, group, seconds) for name, quantity in quantities.items()]
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


def _estimated(name: str, quantity: Quantity, group: Draws, seconds: Mapping[str, float]) -> Estimated:
    return Estimated(
        name,
        quantity.value,
        quantity.low,
        quantity.high,
        tuple(group.testbeds[model] for model in quantity.models),
        None if quantity.plain is None else Interval(quantity.plain.low, quantity.plain.high, quantity.plain.level),
        quantity.refusal and quantity.refusal + _noise(quantity, group),
        _at_equal_time(quantity, group, seconds) if name == "mean" else None,
    )


def _noise(quantity: Quantity, group: Draws) -> str:
    """Return how run noise limits correlations, if weak correlations are why nothing was mixed in."""
    if quantity.expected is None:
        return ""
    caps = {name: group.cap(at) for at, name in enumerate(group.testbeds) if at}
    known = [f"{name} at {cap:.2f}" for name, cap in caps.items() if cap is not None]
    return f"; run noise caps the correlation of {', '.join(known)}" if known else ""


def _at_equal_time(quantity: Quantity, group: Draws, seconds: Mapping[str, float]) -> float | None:
    used = [0, *quantity.models]
    if not quantity.models or quantity.squared_error is None or any(group.testbeds[at] not in seconds for at in used):
        return None
    spent = sum(_draws(group, at) * seconds[group.testbeds[at]] for at in used)
    return quantity.squared_error[0] / quantity.squared_error[1] * spent / (_draws(group, 0) * seconds[group.testbeds[0]])


analysis = MultifidelityAnalysis()
