"""Writes docs/settings.md from what checks a study file: ``python docs/make_settings.py``. A test holds the two together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from twinbed import registry
from twinbed.model.units import QUANTITIES
from twinbed.study.declared import Declared, declared
from twinbed.study.subjects import KEY, TITLES, Subject, subjects, written

HEAD = """# Settings

Every setting that a study file may give, made from the declarations that check it by `python docs/make_settings.py`.
`twinbed describe NAME` tells the same. [study-file.md](study-file.md) explains the keys, [testbeds.md](testbeds.md) the
testbeds. A setting in **bold** is required. Any single value can be a factor.
"""
COLUMNS = ("| setting | allowed | default | example | what |", "|---|---|---|---|---|")


def text() -> str:
    """The whole page."""
    every = subjects(registry.catalogue())
    parts = [HEAD, _quantities(), _keys(every)]
    seen: dict[Declared, str] = {}
    known = frozenset(setting for subject in every for setting in subject.settings)
    for sort, title in TITLES.items():
        parts.append(f"## {title}\n" if sort != KEY else "## Settings of keys\n")
        for subject in every:
            if subject.sort == sort and subject.settings and (sort != KEY or subject.model is not None):
                parts.append(_subject(subject, seen, known))
    return "\n".join(parts)


def _quantities() -> str:
    rows = [f"| {each.name} | {_cell(each.allowed)} | {each.unit} |" for each in QUANTITIES]
    return "\n".join(["## Quantities\n", "| what | written | base unit |", "|---|---|---|", *rows, ""])


def _keys(every: tuple[Subject, ...]) -> str:
    rows = ["| key | allowed | default | example | what |", COLUMNS[1]]
    for subject in every:
        if subject.sort == KEY and "." not in subject.name:
            own = next((each for each in subject.settings if each.name == subject.name), None)
            allowed, default = (own.allowed(), own.default) if own is not None else ("", "")
            name = f"[`{subject.name}`](study-file.md#{subject.name})"
            rows.append(f"| {name} | {_cell(allowed)} | {_code(default)} | {_code(subject.example)} | {_cell(subject.about)} |")
    return "\n".join(["## Keys\n", *rows, ""])


def _subject(subject: Subject, seen: dict[Declared, str], known: frozenset[Declared]) -> str:
    """Settings that several plugins inherit are told once, where they are first."""
    own = [each for each in subject.settings if each.name != subject.name or subject.sort != KEY]
    elsewhere: dict[str, list[str]] = {}
    for each in list(own):
        first = seen.setdefault(each, subject.name)
        if first != subject.name:
            elsewhere.setdefault(first, []).append(each.name)
            own.remove(each)
    lines = [f"### {subject.name}\n", *([f"{subject.about}\n"] if subject.sort != KEY else []), f"`{subject.example}`\n"]
    if own:
        lines += [*COLUMNS, *_rows(own, known), ""]
    for first, names in elsewhere.items():
        lines.append(f"As of [`{first}`](#{first}): {', '.join(f'`{name}`' for name in names)}.\n")
    return "\n".join(lines)


def _rows(settings: list[Declared], known: frozenset[Declared], prefix: str = "") -> Iterator[str]:
    for each in settings:
        name = f"`{prefix}{each.name}`"
        example = _code(f"{each.name}: {written(each.examples[0])}") if each.examples else ""
        cells = (
            f"**{name}**" if each.required else name,
            _cell(each.allowed()),
            _code(each.default),
            example,
            _cell(each.about),
        )
        yield f"| {' | '.join(cells)} |"
        for kind in each.models:
            inner = () if kind.model is None else declared(kind.model)
            own = [one for one in inner if one not in known and len(one.kinds[0].choices) != 1]
            yield from _rows(own, known, f"{prefix}{each.name}." + ("NAME." if kind.text_alone else ""))


def _code(text: str) -> str:
    return f"`{text.replace('|', chr(92) + '|')}`" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", chr(92) + "|")


if __name__ == "__main__":
    (Path(__file__).parent / "settings.md").write_text(text(), encoding="utf-8")
