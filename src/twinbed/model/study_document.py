"""Reader of ``study.json`` as any command or another version may have written it.

Unknown keys are left as they are; a known key of another kind is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from twinbed.model.json import Document, Json, document, each, integer, named, number, text, value_of
from twinbed.model.run import level
from twinbed.model.tables import StudyDocument

_levels = each(level)


def study_document(value: Json) -> StudyDocument:
    """Return the study. Raises ValueError or TypeError, which name the key."""
    data = document(value)
    for name, read in _READ.items():
        if data.get(name) is not None:
            value_of(data, name, read)
    # An empty value is what a missing one is.
    return cast(StudyDocument, {name: given for name, given in data.items() if given is not None or name in _NULL})


def _testbeds(value: Json) -> object:
    """Check the testbeds: names, with settings if these are known."""
    return named(_any)(value) if isinstance(value, Mapping) else each(text)(value)


def _any(value: Json) -> Json:
    return value


def _replicates(value: Json) -> object:
    if not isinstance(value, Mapping):
        return integer(value)
    return value_of(value, "least", integer), value_of(value, "most", integer)


def _share(value: Json) -> float:
    share = number(value)
    if not 0 < share < 1:
        raise ValueError(f"{share} is not between 0 and 1")
    return share


def _margin(value: Json) -> float:
    margin = number(value)
    if margin <= 0:
        raise ValueError(f"{margin} is not above 0")
    return margin


def _uncertain(value: Json) -> Document:
    data = document(value)
    value_of(data, "inputs", each(text))
    value_of(data, "samples", named(integer))
    return data


def _source(value: Json) -> Document:
    data = document(value)
    value_of(data, "name", text)
    value_of(data, "runs", integer)
    value_of(data, "testbeds", named(text))
    return data


def _run(value: Json) -> Document:
    data = document(value)
    value_of(data, "id", text)
    value_of(data, "cell", text)
    value_of(data, "levels", named(level))
    for name in ("replicate", "block", "position"):
        value_of(data, name, integer)
    return data


def _runs(value: Json) -> object:
    runs = each(_run)(value)
    if len({run["id"] for run in runs}) < len(runs):
        raise ValueError("two runs have one id")
    return runs


_NULL = frozenset({"profile", "uncertain", "sessions"})
_READ: Mapping[str, Callable[[Json], object]] = {
    **dict.fromkeys(("study", "profile", "reference", "reference_reason", "order", "comparison", "sessions"), text),
    **dict.fromkeys(("filename", "source"), text),
    **dict.fromkeys(("exclude_cautions", "overrides", "commands"), each(text)),
    **dict.fromkeys(("seed", "exclude_decided_after"), integer),
    "testbeds": _testbeds,
    "factors": named(_levels),
    "drawn": named(named(_levels)),
    "uncertain": _uncertain,
    "replicates": _replicates,
    "margin": _margin,
    "confidence": _share,
    "tables": each(document),
    "import": document,
    "sources": each(_source),
    "workload": document,
    "runs": _runs,
}
