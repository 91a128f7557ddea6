"""Writes docs/gallery.md, the studies that come with twinbed, from their files: ``python docs/make_gallery.py``.

A test holds the page and the studies together.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twinbed import design, registry
from twinbed.cli.plan import clock
from twinbed.model.run import Level
from twinbed.study import shipped
from twinbed.study.loading import load
from twinbed.study.study import Study

HEAD = """# Studies to begin with

Made by `python docs/make_gallery.py` from the studies in `studies/`, which every installation has.

Each study asks one question. Its profile `quick` is a first look that ends in minutes on a small machine; the
whole study may take hours. Times are what `twinbed plan` estimates. `twinbed studies NAME` prints the file of
a study, with the reasons for what it does; `twinbed studies NAME -o FILE` copies it, to change it. The
reference testbed is in bold; [testbeds.md](testbeds.md) has the drivers.

| study | time, quick | question |
|---|---|---|
"""
MOST_LEVELS = 6


def text() -> str:
    """The whole page."""
    names = shipped.names()
    rows = "".join(f"| [{name}](#{name}) | {_time(_quick(name))} | {shipped.question(_source(name))} |\n" for name in names)
    return "\n".join([HEAD + rows, *map(_section, names)])


def _section(name: str) -> str:
    profile = shipped.profile(_source(name))
    studies = [_quick(name), load(_source(name), name, registry.catalogue())] if profile else [_quick(name)]
    factors = dict.fromkeys(factor for study in studies for factor in study.factors if factor != "testbed")
    heads = [f"profile `{profile}`", "whole study"] if profile else ["whole study"]
    rows = [
        ("", *heads),
        ("---",) * (len(studies) + 1),
        ("testbeds", *map(_testbeds, studies)),
        *((f"`{factor}`", *(_levels(study.factors.get(factor, ())) for study in studies)) for factor in factors),
        ("runs", *(str(len(design.runs(study))) for study in studies)),
        ("time", *map(_time, studies)),
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    option = f" --profile {profile}" if profile else ""
    return f"## {name}\n\n{_sentence(shipped.question(_source(name)))}\n\n{table}\n\n```\ntwinbed run {name}{option}\n```\n"


def _testbeds(study: Study) -> str:
    named = []
    for name, choices in study.testbeds.items():
        drivers = ", ".join(dict.fromkeys(choice.kind for choice in choices))
        shown = f"**{name}**" if name == study.reference else name
        named.append(shown if drivers == name else f"{shown} ({drivers})")
    return ", ".join(named)


def _levels(levels: Sequence[Level]) -> str:
    """A factor of many levels by its first and last."""
    shown = ["null" if level is None else str(level).replace("|", "\\|") for level in levels]
    if len(shown) > MOST_LEVELS:
        return f"{shown[0]}, {shown[1]} ... {shown[-1]} ({len(shown)} levels)"
    return ", ".join(shown)


def _sentence(question: str) -> str:
    return question[0].upper() + question[1:]


def _time(study: Study) -> str:
    return clock(design.expense(design.runs(study)).seconds)


def _quick(name: str) -> Study:
    source = _source(name)
    return load(source, name, registry.catalogue(), profile=shipped.profile(source))


def _source(name: str) -> str:
    return (shipped.FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


if __name__ == "__main__":
    (Path(__file__).parent / "gallery.md").write_text(text(), encoding="utf-8")
