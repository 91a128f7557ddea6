"""After a study with a cause switched on and off: what it explains of each difference.

With ln r the logarithm of the ratio of means with the cause as it was found on each testbed, and ln s the same with the cause
alike on both, the share of the difference that is gone is 1 - ln s / ln r.  That nothing is gone (ln r = ln s) is tested by
Welch's t, with Satterthwaite's degrees of freedom of the means that the two ratios are made of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from scipy.special import stdtr, stdtrit

from twinbed.analyses.explain.analysis import states_of
from twinbed.analyses.explain.causes import CAUSES, Cause, Switch
from twinbed.analyses.explain.result import Explanation, Pair, Proof, Proved, Response, candidates_of
from twinbed.model.error import TwinbedError
from twinbed.model.result import Interval
from twinbed.model.run import Level
from twinbed.model.tables import Tables
from twinbed.observations.samples import Samples, gather
from twinbed.statistics.moments import variance
from twinbed.statistics.multiplicity import holm

MOST = 0.5
"""What explains less than this of a difference explains it in part."""


def proved(result: Explanation, source: Tables, proofs: Sequence[Tables]) -> Explanation:
    """The explanation with what studies of its causes say. Raises TwinbedError for one that switches no cause, or has neither
    testbeds nor cells in common with it."""
    states = states_of(source)
    found = [each for study in proofs for each in _of_study(result, states, study, 1 - source.outline.confidence)]
    adjusted = holm([each.p for each in found])
    alpha = 1 - source.outline.confidence
    return replace(
        result, proofs=tuple(replace(each, p=p, says=_says(each, p, alpha)) for each, p in zip(found, adjusted, strict=True))
    )


def _of_study(
    result: Explanation, states: Mapping[tuple[str, str], str | None], study: Tables, alpha: float
) -> Iterator[Proof]:
    factors = study.outline.data.get("factors") or {}
    switched = [(cause, factor) for cause in CAUSES for factor in factors if cause.switch and _is(factor, cause.switch)]
    if not switched:
        there = ", ".join(cause.switch.setting for cause in CAUSES if cause.switch)
        raise TwinbedError(f"{study.shown} switches no cause", advice=f"a factor must be one of: {there}")
    samples, count = gather(study), 0
    for cause, factor in switched:
        for pair in result.pairs:
            for response in pair.responses:
                one = _proof(pair, response, cause, factor, samples, states, alpha)
                if one is not None:
                    count += 1
                    yield one
    if not count:
        raise TwinbedError(
            f"{study.shown} has no testbeds, cells and responses that {result.reference} is different in",
            advice="it must be a study that `twinbed explain RESULTS --study FILE` wrote",
        )


def _is(factor: str, switch: Switch) -> bool:
    return factor in (switch.setting, switch.factor)


def _proof(
    pair: Pair,
    response: Response,
    cause: Cause,
    factor: str,
    samples: Samples,
    states: Mapping[tuple[str, str], str | None],
    alpha: float,
) -> Proof | None:
    assert cause.switch is not None
    key = response.metric, response.host, response.direction
    levels: set[Level] = {level for cell in samples.cells.values() if (level := cell.get(factor)) is not None}
    names = pair.testbed, pair.reference
    found = [_level(states.get((name, cause.switch.factor)), levels, cause.switch.on) for name in names]
    alike = next((level for level in _alike(cause, found) if level in levels), None)
    cells = {_text(cell): name for name, cell in samples.cells.items()}

    def values(testbed: str, level: Level | None) -> Sequence[float]:
        name = cells.get(_text({**pair.cell, factor: level}))
        group = samples.groups[name].get(testbed) if name is not None else None
        return group.values.get(key, ()) if group else ()

    as_found = [values(name, level) for name, level in zip(names, found, strict=True)]
    equal = [values(name, alike) for name in names]
    if alike is None or any(len(each) < 2 or min(each) <= 0 for each in (*as_found, *equal)):
        return None
    first, second = _log_ratio(as_found), _log_ratio(equal)
    return Proof(
        pair.cell,
        *names,
        cause,
        response,
        as_is=_interval(first, alpha),
        alike=_interval(second, alpha),
        level=alike,
        closed=1 - second[0] / first[0] if first[0] else 0.0,
        p=_p(first, second),
        says=Proved.NOT_PROVED,
    )


def _alike(cause: Cause, found: Sequence[Level]) -> list[Level]:
    """What to hold on both: off; or, where both are off, on."""
    assert cause.switch is not None
    both_off = all(level == cause.switch.off for level in found)
    return [cause.switch.on, cause.switch.off] if both_off else [cause.switch.off, cause.switch.on, *found]


def _level(state: str | None, levels: set[Level], default: Level) -> Level:
    """The level of the factor that is the state of a testbed."""
    return next((level for level in levels if str(level) == state), default)


def _text(cell: Mapping[str, Level | None]) -> str:
    return repr(sorted((name, str(level)) for name, level in cell.items()))


Log = tuple[float, list[tuple[float, int]]]
"""The logarithm of a ratio of geometric means; of each mean its squared standard error and the number of values."""


def _log_ratio(pair: Sequence[Sequence[float]]) -> Log:
    here, there = ([math.log(value) for value in values] for values in pair)
    return fmean(here) - fmean(there), [(variance(each) / len(each), len(each)) for each in (here, there)]


def _df(parts: Sequence[tuple[float, int]]) -> float:
    """Satterthwaite (1946, Biometrics Bull. 2:110)."""
    total = sum(part for part, _ in parts)
    return total**2 / sum(part**2 / (count - 1) for part, count in parts) if total else math.inf


def _interval(log: Log, alpha: float) -> Interval:
    centre, parts = log
    total = sum(part for part, _ in parts)
    half = float(stdtrit(_df(parts), 1 - alpha / 2)) * math.sqrt(total) if total else 0.0
    return Interval(math.exp(centre - half), math.exp(centre + half), 1 - alpha)


def _p(first: Log, second: Log) -> float:
    parts = [*first[1], *second[1]]
    difference, error = abs(first[0] - second[0]), math.sqrt(sum(part for part, _ in parts))
    if not error:
        return 0.0 if difference else 1.0
    return 2 * float(stdtr(_df(parts), -difference / error))


def _says(each: Proof, p: float, alpha: float) -> Proved:
    if each.as_is.low <= 1 <= each.as_is.high:
        return Proved.GONE
    if p > alpha or each.closed <= 0:
        return Proved.NOT_PROVED
    return Proved.PROVED if each.closed >= MOST else Proved.IN_PART


def switchable(result: Explanation) -> list[Cause]:
    """The candidates that a study can switch, the likeliest first."""
    ranked = sorted(
        ((pair.candidates.index(candidate), candidate.cause) for pair, candidate in candidates_of(result)),
        key=lambda found: (found[0], CAUSES.index(found[1])),
    )
    return list(dict.fromkeys(cause for _, cause in ranked if cause.switch))
