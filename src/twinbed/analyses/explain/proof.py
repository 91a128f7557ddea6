"""Write the study that would prove a cause, and read how much of each difference the cause explains.

The study has two testbeds, the cell in which the cause is most likely, and the cause on and off. Everything else is as in the
runs, written out, so that a later default changes nothing.

Let ln r be the logarithm of the ratio of means with the cause as found on each testbed, and ln s the same with the cause alike
on both. The removed share of the difference is 1 - ln s / ln r, with Fieller's interval (``statistics.change``). A cause is
proved if that interval lies between MOST and 2 - MOST, at 1 - alpha over the number of proofs. At least half of the difference
is then gone, and at most half of it is reversed. Welch's t tests whether nothing is gone.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import log
from typing import TypeAlias, Union

from twinbed.analyses.explain.causes import CAUSES, Cause, Switch
from twinbed.analyses.explain.method import states_of
from twinbed.analyses.explain.result import Candidate, Explanation, Pair, Proof, Proved, Response, candidates_of, switchable
from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.record import Record
from twinbed.model.result import Interval
from twinbed.model.run import Level, Status, level_text
from twinbed.model.tables import Tables
from twinbed.observations.samples import Samples, gather
from twinbed.statistics.change import LogRatio
from twinbed.statistics.multiplicity import holm
from twinbed.statistics.ratio import fieller_interval

MOST = 0.5
"""A cause that explains less of a difference than this explains it in part; one that overshoots by more is no proof."""
Logs = tuple[LogRatio, LogRatio]
"""The ratio with the cause as found, and with it alike on both."""


def proved(result: Explanation, source: Tables, proofs: Sequence[Tables]) -> Explanation:
    """Return the explanation with the proofs from studies of its causes. Raises TwinbedError for a study that switches no
    cause, or has neither testbeds nor cells in common with the explanation."""
    states = states_of(source)
    alpha = 1 - source.outline.confidence
    pairs = [pair for study in proofs for pair in _of_study(result, states, study, alpha)]
    adjusted = holm([proof.p for proof, _ in pairs])
    known = [replace(proof, closed_interval=_closed(*logs, alpha / len(pairs))) for proof, logs in pairs]
    return replace(
        result, proofs=tuple(replace(proof, p=p, says=_says(proof, p, alpha)) for proof, p in zip(known, adjusted, strict=True))
    )


def _of_study(
    result: Explanation, states: Mapping[tuple[str, str], str | None], study: Tables, alpha: float
) -> Iterator[tuple[Proof, Logs]]:
    factors = study.outline.data.get("factors") or {}
    switched = [(cause, factor) for cause in CAUSES for factor in factors if cause.switch and _is(factor, cause.switch)]
    if not switched:
        settings = ", ".join(cause.switch.setting for cause in CAUSES if cause.switch)
        raise TwinbedError(f"{study.shown} switches no cause", advice=f"one of its factors must be: {settings}")
    samples, count = gather(study), 0
    for cause, factor in switched:
        for pair in result.pairs:
            for response in pair.responses:
                proof = _proof(pair, response, cause, factor, samples, states, alpha)
                if proof is not None:
                    count += 1
                    yield proof
    if not count:
        raise TwinbedError(
            f"{study.shown} shares no testbed, cell and metric with the differences from {result.reference}",
            advice="use a study that `twinbed explain RESULTS --study FILE` wrote",
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
) -> tuple[Proof, Logs] | None:
    assert cause.switch is not None
    key = response.metric, response.host, response.direction
    levels: set[Level] = {level for cell in samples.cells.values() if (level := cell.get(factor)) is not None}
    names = pair.testbed, pair.reference
    found_levels = [_level(states.get((name, cause.switch.factor)), levels, cause.switch.on) for name in names]
    alike = next((level for level in _alike(cause, found_levels) if level in levels), None)
    cells = {_text(cell): name for name, cell in samples.cells.items()}

    def values(testbed: str, level: Level | None) -> Sequence[float]:
        name = cells.get(_text({**pair.cell, factor: level}))
        group = samples.groups[name].get(testbed) if name is not None else None
        return group.values.get(key, ()) if group else ()

    as_found = [values(name, level) for name, level in zip(names, found_levels, strict=True)]
    equal = [values(name, alike) for name in names]
    if alike is None or any(len(sample) < 2 or min(sample) <= 0 for sample in (*as_found, *equal)):
        return None
    first, second = (LogRatio.of((own, reference)) for own, reference in (as_found, equal))
    proof = Proof(
        pair.cell,
        *names,
        cause,
        response,
        as_is=Interval(*first.interval(1 - alpha)),
        alike=Interval(*second.interval(1 - alpha)),
        level=alike,
        closed=1 - second.value / first.value if first.value else 0.0,
        closed_interval=None,
        p=first.less(second).p_zero,
        says=Proved.NOT_PROVED,
    )
    return proof, (first, second)


def _closed(first: LogRatio, second: LogRatio, alpha: float) -> Interval | None:
    """Return Fieller's interval of the removed share; None where the difference may be 0."""
    if not first.error and not second.error:
        known = 1 - second.value / first.value if first.value else None
        return None if known is None else Interval(known, known, 1 - alpha)
    sign = math.copysign(1.0, first.value)
    squares = second.error**2, first.error**2
    left = fieller_interval(sign * second.value, sign * first.value, *squares, first.less(second).df, alpha / 2)
    return None if left is None else Interval(1 - left.high, 1 - left.low, 1 - alpha)


def _alike(cause: Cause, found_levels: Sequence[Level]) -> list[Level]:
    """Return what both may be set to, the best first: off, or on if both are off."""
    assert cause.switch is not None
    both_off = all(level == cause.switch.off for level in found_levels)
    return [cause.switch.on, cause.switch.off] if both_off else [cause.switch.off, cause.switch.on, *found_levels]


def _level(state: str | None, levels: set[Level], default: Level) -> Level:
    """Return the level of the factor that is the state of a testbed."""
    return next((level for level in levels if str(level) == state), default)


def _text(cell: Mapping[str, Level | None]) -> str:
    return repr(sorted((name, str(level)) for name, level in cell.items()))


def _says(proof: Proof, p: float, alpha: float) -> Proved:
    if proof.as_is.low <= 1 <= proof.as_is.high:
        return Proved.GONE
    if p > alpha or proof.closed <= 0:
        return Proved.NOT_PROVED
    if proof.closed > 2 - MOST:
        return Proved.OVERSHOT
    known = proof.closed_interval
    if known is not None and known.low >= MOST and known.high <= 2 - MOST:
        return Proved.PROVED
    return Proved.IN_PART


Section: TypeAlias = dict[str, Union[Level, Sequence[Level], "Section"]]
"""A part of a study file."""
LEAST_REPLICATES = 5
TOGETHER = ("sg", "tso", "gso", "gro")
"""The settings that ``offload`` sets."""


def cause_of(result: Explanation, name: str | None) -> Cause:
    """Return the candidate of that name, by default the most likely one that can be switched. Raises TwinbedError."""
    causes = switchable(result)
    if not causes:
        raise TwinbedError(
            "no candidate cause can be switched on and off", advice="`twinbed explain RESULTS` prints the candidates"
        )
    for cause in causes:
        if name in (None, cause.name):
            return cause
    names = ", ".join(cause.name for cause in causes)
    raise TwinbedError(f"--cause {name} is not a candidate here that can be switched", advice=f"candidates: {names}")


def study_text(result: Explanation, source: Tables, cause: Cause) -> str:
    """Return the study file. Raises TwinbedError if the runs' study cannot be run again."""
    pair, candidate = _strongest(result, cause)
    records = {name: _record(source, pair, name) for name in (pair.reference, pair.testbed)}
    if any(record is None for record in records.values()) or source.outline.data.get("uncertain"):
        raise TwinbedError(
            f"{source.shown} has no runs of both testbeds that a study could repeat",
            advice=f"write the study by hand, with the factor {cause.switch and cause.switch.setting}",
        )
    return _commented(pair, cause) + _yaml(_study(source, pair, candidate, {n: r for n, r in records.items() if r is not None}))


def _strongest(result: Explanation, cause: Cause) -> tuple[Pair, Candidate]:
    """Return the pair where the cause ranks best; if several do, the one whose first headline differs most."""

    def rank(entry: tuple[Pair, Candidate]) -> tuple[int, float]:
        pair, candidate = entry
        ratio = pair.responses[0].ratio
        return pair.candidates.index(candidate), -abs(log(ratio)) if ratio else 0.0

    return min((entry for entry in candidates_of(result) if entry[1].cause is cause), key=rank)


def _record(source: Tables, pair: Pair, testbed: str) -> Record | None:
    for record in source.records:
        own = {name: level for name, level in record.levels.items() if name != "testbed"}
        at = str(record.settings["testbed"]["name"])
        if record.status is Status.COMPLETE and at == testbed and own == dict(pair.cell):
            return record
    return None


def _study(source: Tables, pair: Pair, candidate: Candidate, records: Mapping[str, Record]) -> Section:
    switch = candidate.cause.switch
    assert switch is not None
    settings = records[pair.reference].settings
    factors = {name: level for name, level in pair.cell.items() if name not in (switch.setting, switch.factor)}
    sections: Section = {
        "testbeds": {name: _testbed(record.settings["testbed"], switch.setting) for name, record in records.items()},
        "reference": pair.reference,
        "topology": _known(settings["topology"]),
        "workload": _known(settings["workload"]),
        "background": {kind: _plugin(plugin) for kind, plugin in settings.get("background", {}).items()},
    }
    if "instruments" not in factors:
        sections["instruments"] = {kind: _plugin(plugin) for kind, plugin in settings["instruments"].items()}
    for name in factors:
        sections = _without_factor(sections, name)
    if switch.section != "testbed":
        sections = _without_factor(sections, switch.factor)
    states: set[Level] = {_switched(state) for state in candidate.states if state is not None}
    levels: Sequence[Level] = sorted(states, key=str, reverse=True) if len(states) == 2 else [switch.on, switch.off]
    return {
        "study": f"{source.outline.name}-{candidate.cause.name.replace('_', '-')}"[:64],
        **{name: section for name, section in sections.items() if section},
        "factors": {
            "testbed": list(records),
            switch.factor: levels,
            **{name: [level] for name, level in factors.items()},
        },
        "replicates": max(LEAST_REPLICATES, max(record.replicate for record in source.records) + 1),
        "margin": source.outline.margin,
        "confidence": source.outline.confidence,
    }


def _switched(state: str) -> str | int:
    return int(state) if state.isdigit() else state


def _known(settings: Document) -> Section:
    """Return the settings without those that are not set."""
    known: Section = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            if inner := _known(value):
                known[name] = inner
        elif isinstance(value, float) and value.is_integer():
            known[name] = int(value)
        elif isinstance(value, bool | int | float | str):
            known[name] = value
        elif isinstance(value, Sequence):
            known[name] = [item for item in value if isinstance(item, bool | int | float | str)]
    return known


def _plugin(settings: Document) -> Section | None:
    return {name: value for name, value in _known(settings).items() if name != "kind"} or None


def _testbed(settings: Document, setting: str) -> Section:
    known = _known(settings)
    if setting in TOGETHER and (together := known.pop("offload", None)) is not None:
        known |= dict.fromkeys(TOGETHER, together)
    return {"driver": known["kind"], **{name: value for name, value in known.items() if name not in ("name", "kind", setting)}}


def _without_factor(sections: Section, factor: str) -> Section:
    """Return the sections without a setting that is a factor: it is given once."""
    *path, name = factor.split(".")
    return {
        key: _without(section, name, path[1:])
        if isinstance(section, dict) and (not path or key.rstrip("s") == path[0].rstrip("s"))
        else section
        for key, section in sections.items()
    }


def _without(section: Section, name: str, path: Sequence[str]) -> Section:
    """Return the section without a setting, wherever it is below the keys of ``path``."""
    return {
        key: _without(inner, name, path[1:] if path and key == path[0] else path) if isinstance(inner, dict) else inner
        for key, inner in section.items()
        if path or key != name
    }


def _commented(pair: Pair, cause: Cause) -> str:
    cell = "".join(f", {name} {level_text(level)}" for name, level in pair.cell.items())
    return (
        f"# Does {cause.title} make {pair.testbed} differ from {pair.reference}{cell}?\n"
        "# It is switched on and off on both testbeds; everything else is unchanged.\n"
        "#\n"
        "#   twinbed run THIS-FILE -o PROOF\n"
        "#   twinbed explain RESULTS --proof PROOF\n\n"
    )


def _yaml(study: Section) -> str:
    from ruamel.yaml import YAML

    yaml = YAML()
    text = io.StringIO()
    yaml.dump(study, text)
    return text.getvalue()
