"""The gallery: the studies that come with twinbed, from their files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from manual.markdown import table
from twinbed import design, registry
from twinbed.cli.plan import clock
from twinbed.model.run import Level
from twinbed.study import loading
from twinbed.study.loading import load
from twinbed.study.study import Study

MOST_LEVELS = 6


@cache
def text() -> str:
    """Return a table of all studies and a section of each."""
    names = loading.shipped_names()
    rows = [(f"[{name}](#{name})", _time(_quick(name)), loading.question_of(_source(name))) for name in names]
    return "\n".join([table(("study", "time, quick", "question"), rows), *map(_section, names)])


def _section(name: str) -> str:
    profile = loading.quick_profile(_source(name))
    studies = [_quick(name), load(_source(name), _file(name), registry.catalogue())] if profile else [_quick(name)]
    factors = dict.fromkeys(factor for study in studies for factor in study.factors if factor != "testbed")
    heads = [f"profile `{profile}`", "whole study"] if profile else ["whole study"]
    rows = [
        ("testbeds", *map(_testbeds, studies)),
        *((f"`{factor}`", *(_levels(study.factors.get(factor, ())) for study in studies)) for factor in factors),
        ("runs", *(str(len(design.runs(study))) for study in studies)),
        ("time", *map(_time, studies)),
    ]
    option = f" --profile {profile}" if profile else ""
    compared = table(("", *heads), rows)
    return f"## {name}\n\n{_sentence(loading.question_of(_source(name)))}\n\n{compared}\n```\ntwinbed run {name}{option}\n```\n"


def _testbeds(study: Study) -> str:
    named = []
    for name, choices in study.testbeds.items():
        drivers = ", ".join(dict.fromkeys(choice.kind for choice in choices))
        shown = f"**{name}**" if name == study.reference else name
        named.append(shown if drivers == name else f"{shown} ({drivers})")
    return ", ".join(named)


def _levels(levels: Sequence[Level]) -> str:
    """Return the levels of a factor; of many, the first and the last."""
    shown = ["null" if level is None else str(level) for level in levels]
    if len(shown) > MOST_LEVELS:
        return f"{shown[0]}, {shown[1]} ... {shown[-1]} ({len(shown)} levels)"
    return ", ".join(shown)


def _sentence(question: str) -> str:
    return question[0].upper() + question[1:]


def _time(study: Study) -> str:
    return clock(design.expense(design.runs(study)).seconds)


def _quick(name: str) -> Study:
    source = _source(name)
    return load(source, _file(name), registry.catalogue(), profile=loading.quick_profile(source))


def _source(name: str) -> str:
    return Path(_file(name)).read_text(encoding="utf-8")


def _file(name: str) -> str:
    """Return the study's file, in whose folder its own files are."""
    return str(loading.SHIPPED / f"{name}.yaml")
