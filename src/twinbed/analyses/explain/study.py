"""Write the small study that would prove a cause: two testbeds and the cell in which it is the likeliest, the cause on and off.

Everything else is as in the runs, written out, so that another default changes nothing.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from math import log
from typing import TypeAlias, Union

from twinbed.analyses.explain.causes import Cause
from twinbed.analyses.explain.result import Candidate, Explanation, Pair, candidates_of, switchable
from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.record import Record
from twinbed.model.run import Level, Status, level_text
from twinbed.model.tables import Tables

Section: TypeAlias = dict[str, Union[Level, Sequence[Level], "Section"]]
"""A part of a study file."""
LEAST_REPLICATES = 5
TOGETHER = ("sg", "tso", "gso", "gro")
"""What the setting ``offload`` sets."""


def cause_of(result: Explanation, name: str | None) -> Cause:
    """Return the candidate of that name, by default the likeliest that can be switched. Raises TwinbedError."""
    causes = switchable(result)
    if not causes:
        raise TwinbedError("no candidate can be switched on and off", advice="`twinbed explain RESULTS` says what was found")
    for cause in causes:
        if name in (None, cause.name):
            return cause
    there = ", ".join(cause.name for cause in causes)
    raise TwinbedError(f"{name} is no candidate here that can be switched", advice=f"there are: {there}")


def study_text(result: Explanation, source: Tables, cause: Cause) -> str:
    """Return the study file. Raises TwinbedError where the runs are not of a study that can be run again."""
    pair, candidate = _strongest(result, cause)
    records = {name: _record(source, pair, name) for name in (pair.reference, pair.testbed)}
    if any(record is None for record in records.values()) or source.outline.data.get("uncertain"):
        raise TwinbedError(
            f"{source.shown} has no runs of both testbeds that a study could make again",
            advice="write the study by hand: the factor is " + str(cause.switch and cause.switch.setting),
        )
    return _commented(pair, cause) + _yaml(_study(source, pair, candidate, {n: r for n, r in records.items() if r is not None}))


def _strongest(result: Explanation, cause: Cause) -> tuple[Pair, Candidate]:
    """Return the pair where the cause ranks best; of several, that whose first headline differs most."""

    def rank(found: tuple[Pair, Candidate]) -> tuple[int, float]:
        pair, candidate = found
        ratio = pair.responses[0].ratio
        return pair.candidates.index(candidate), -abs(log(ratio)) if ratio else 0.0

    return min((found for found in candidates_of(result) if found[1].cause is cause), key=rank)


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
    one = records[pair.reference].settings
    factors = {name: level for name, level in pair.cell.items() if name not in (switch.setting, switch.factor)}
    sections: Section = {
        "testbeds": {name: _testbed(record.settings["testbed"], switch.setting) for name, record in records.items()},
        "reference": pair.reference,
        "topology": _known(one["topology"]),
        "workload": _known(one["workload"]),
        "background": {kind: _plugin(each) for kind, each in one.get("background", {}).items()},
    }
    if "instruments" not in factors:
        sections["instruments"] = {kind: _plugin(each) for kind, each in one["instruments"].items()}
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
        f"# Is it {cause.title} that makes {pair.testbed} differ from {pair.reference}{cell}?\n"
        "# It is switched on and off on both testbeds; all else is as it was.\n"
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
