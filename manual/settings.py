"""The page of settings, from the declarations that check a study file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from manual.markdown import code, table
from twinbed import registry
from twinbed.model.units import QUANTITIES
from twinbed.study.declared import KEY, TITLES, Declared, Subject, declared, subjects, written

DOCS = Path(__file__).parents[1] / "docs"
_COLUMNS = ("allowed", "default", "example", "what")


def text() -> str:
    """Return the tables of quantities, keys and plugins."""
    every = subjects(registry.catalogue())
    parts = [_quantities(), _keys(every)]
    seen: dict[Declared, str] = {}
    known = frozenset(setting for subject in every for setting in subject.settings)
    for sort, title in TITLES.items():
        parts.append(f"## {title}\n" if sort != KEY else "## Settings of keys\n")
        for subject in every:
            if subject.sort == sort and subject.settings and (sort != KEY or subject.model is not None):
                parts.append(_subject(subject, seen, known))
    return "\n".join(parts)


def _quantities() -> str:
    rows = [(each.name, each.allowed, each.unit) for each in QUANTITIES]
    return f"## Quantities\n\n{table(('what', 'written', 'base unit'), rows)}"


def _keys(every: tuple[Subject, ...]) -> str:
    rows = []
    for subject in every:
        if subject.sort == KEY and "." not in subject.name:
            own = next((each for each in subject.settings if each.name == subject.name), None)
            allowed, default = (own.allowed(), own.default) if own is not None else ("", "")
            name = f"[`{subject.name}`]({_explained(subject.name)}#{subject.name})"
            rows.append((name, allowed, code(default), code(subject.example), subject.about))
    return f"## Keys\n\n{table(('key', *_COLUMNS), rows)}"


def _explained(key: str) -> str:
    """Return the page that has a section about a key."""
    (page,) = (page for page in ("study-file.md", "study-design.md") if re.search(rf"^##+ {key}$", _page(page), re.MULTILINE))
    return page


@cache
def _page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def _subject(subject: Subject, seen: dict[Declared, str], known: frozenset[Declared]) -> str:
    """Return the section of one subject. Settings that several plugins inherit stand where they are first."""
    own = [each for each in subject.settings if each.name != subject.name or subject.sort != KEY]
    elsewhere: dict[str, list[str]] = {}
    for each in list(own):
        first = seen.setdefault(each, subject.name)
        if first != subject.name:
            elsewhere.setdefault(first, []).append(each.name)
            own.remove(each)
    lines = [f"### {subject.name}\n", *([f"{subject.about}\n"] if subject.sort != KEY else []), f"`{subject.example}`\n"]
    if own:
        lines.append(table(("setting", *_COLUMNS), _rows(own, known)))
    for first, names in elsewhere.items():
        lines.append(f"The same as for [`{first}`](#{first}): {', '.join(f'`{name}`' for name in names)}.\n")
    return "\n".join(lines)


def _rows(settings: list[Declared], known: frozenset[Declared], prefix: str = "") -> Iterator[tuple[str, ...]]:
    for each in settings:
        name = f"`{prefix}{each.name}`"
        example = code(f"{each.name}: {written(each.examples[0])}") if each.examples else ""
        yield f"**{name}**" if each.required else name, each.allowed(), code(each.default), example, each.about
        for kind in each.models:
            inner = () if kind.model is None else declared(kind.model)
            own = [one for one in inner if one not in known and len(one.kinds[0].choices) != 1]
            yield from _rows(own, known, f"{prefix}{each.name}." + ("NAME." if kind.text_alone else ""))
