"""Changes to a study: one from the command line (``-s key=value``), or a named set of them (``profiles`` of the study file).

A key is a dotted path, a value YAML.  All profiles are checked when their file is read, so that an error in one is known before
the profile is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from twinbed.model.near import nearest
from twinbed.study.document import Entries, Items, Node, Position, Problem, Scalar, is_absent, listed, parse

FILE = "-s"
"""The file name in an override's problems; the line is the override's number, the column counts in its text."""


def override(root: Entries, text: str, number: int, sections: Sequence[str], problems: list[Problem]) -> Entries:
    """Return ``root`` with one ``key=value`` put in, or unchanged after an error. ``sections`` are the keys of a study."""
    place = Position(FILE, number, 1)
    key, equals, value_text = text.partition("=")
    key = key.strip()
    if not equals or not key:
        problems.append(
            Problem.at(place, "", f"{text!r} is not an override", "key=value, such as replicates=2 or workload.duration=1s")
        )
        return root
    value = parse(value_text, FILE, problems, line=number, column=text.index("=") + 2) if value_text.strip() else None
    if value is None:
        if not value_text.strip() and is_key(key, place, sections, problems):
            problems.append(Problem.at(place, key, "has no value", "a value, or null"))
        return root
    return put(root, key, value, place, sections, problems)


def put(root: Entries, key: str, value: Node, place: Position, sections: Sequence[str], problems: list[Problem]) -> Entries:
    """Return ``root`` with a value at the dotted path ``key``, or unchanged after an error, which has the place ``place``."""
    if not is_key(key, place, sections, problems):
        return root
    changed = _put(root, _steps(key), value, place)
    if changed is None:
        problems.append(Problem.at(place, key, "is below a value that is not a mapping"))
        return root
    return changed


def is_key(key: str, place: Position, sections: Sequence[str], problems: list[Problem]) -> bool:
    """Return whether a dotted path begins with a key of a study; append a problem if it does not."""
    first = _steps(key)[0]
    if first not in sections:
        problems.append(Problem.at(place, key, "is not a key of a study", listed(sections), nearest(first, sections)))
    return first in sections


def _steps(key: str) -> list[str]:
    """Split a path; a factor's name may be a dotted path itself."""
    return key.split(".", 1) if key.startswith("factors.") else key.split(".")


def _put(node: Node, steps: Sequence[str], value: Node, place: Position) -> Entries | None:
    """Return ``node`` with the value at the path, making mappings that are missing; None where a value is in the way."""
    if isinstance(node, Scalar) and node.value is None:
        node = Entries({}, {}, place)
    if isinstance(node, Items):
        node = _as_mapping(node) or node
    if not isinstance(node, Entries):
        return None
    head, rest = steps[0], steps[1:]
    below: Node | None = value
    if rest:
        below = _put(node.entries.get(head, Scalar(None, place)), rest, value, place)
    if below is None:
        return None
    keys = {**node.keys, head: place} if not rest else {head: place, **node.keys}
    return Entries({**node.entries, head: below}, keys, node.place)


def _as_mapping(node: Items) -> Entries | None:
    """Turn a list of names (of instruments) into a mapping of each to no settings, so that a setting can be put there."""
    names = [item for item in node.items if isinstance(item, Scalar) and isinstance(item.value, str)]
    if len(names) != len(node.items):
        return None
    return Entries(
        {str(name.value): Scalar(None, name.place) for name in names},
        {str(name.value): name.place for name in names},
        node.place,
    )


PROFILES = "profiles"
OPTION = "--profile"
"""The file name in problems of the option's value."""
FIXED = ("study", PROFILES)
"""Keys that a profile cannot change."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", re.ASCII)
_NAME_ALLOWED = "letters, digits, '_' and '-', beginning with a letter or digit, at most 32"


@dataclass(frozen=True, slots=True)
class Change:
    """One setting of a profile."""

    key: str
    value: Node
    place: Position


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    changes: tuple[Change, ...]

    def put_in(self, root: Entries, sections: Sequence[str], problems: list[Problem]) -> Entries:
        """Return the study ``root`` with the changes made, in the order of the file."""
        for change in self.changes:
            fresh: list[Problem] = []
            if change.key.partition(".")[0] in FIXED:
                message = "cannot be changed by a profile"
                problems.append(Problem.at(change.place, f"{PROFILES}.{self.name}.{change.key}", message, listed(sections)))
                continue
            root = put(root, change.key, change.value, change.place, sections, fresh)
            problems += [replace(problem, key=f"{PROFILES}.{self.name}.{problem.key}") for problem in fresh]
        return root

    def named_in(self, problem: Problem) -> Problem:
        """Return a problem of the study with this profile; name the profile if the problem is in another part of the file."""
        places = {(place.line, place.column) for change in self.changes for place in (change.place, *_places(change.value))}
        if (problem.line, problem.column) in places:
            return problem
        return replace(problem, message=f"{problem.message}, with the profile {self.name!r}")


def read_profiles(root: Entries, problems: list[Problem]) -> Mapping[str, Profile]:
    """Return the profiles of the study ``root``; append a problem for whatever is not a profile."""
    node = root.entries.get(PROFILES)
    if node is None or is_absent(node):
        return {}
    if not isinstance(node, Entries):
        problems.append(Problem.at(node.place, PROFILES, "is not a mapping", "a mapping such as {quick: {replicates: 2}}"))
        return {}
    profiles = {}
    for name, value in node.entries.items():
        key = f"{PROFILES}.{name}"
        if not NAME.fullmatch(name):
            problems.append(Problem.at(node.keys[name], key, "is not a name for a profile", _NAME_ALLOWED))
        if not isinstance(value, Entries):
            allowed = "a mapping of dotted paths to values, such as {replicates: 2, workload.duration: 1s}"
            problems.append(Problem.at(value.place, key, "is not a mapping", allowed))
            continue
        profiles[name] = Profile(name, tuple(Change(path, node, value.keys[path]) for path, node in value.entries.items()))
    return profiles


def chosen(name: str | None, profiles: Mapping[str, Profile], problems: list[Problem]) -> Profile | None:
    """Return the profile that is asked for; append a problem if it is unknown."""
    if name is not None and name not in profiles:
        message = f"{name!r} is not a profile of this study" + ("" if profiles else f": it has none, so leave {OPTION} out")
        problems.append(Problem.at(Position(OPTION, 1, 1), "", message, listed(profiles), nearest(name, profiles)))
    return None if name is None else profiles.get(name)


def _places(node: Node) -> Iterator[Position]:
    """Yield the places of a value and of everything in it."""
    yield node.place
    if isinstance(node, Entries):
        yield from node.keys.values()
        for value in node.entries.values():
            yield from _places(value)
    elif isinstance(node, Items):
        for item in node.items:
            yield from _places(item)
