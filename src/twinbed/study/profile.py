"""``profiles`` of a study file: named sets of changes to it, as ``-s`` makes them: dotted paths, each with its value.

Every profile is checked whenever its file is read, so that mistakes in one are known before it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from twinbed.model.near import nearest
from twinbed.study.document import Entries, Items, Node, is_absent
from twinbed.study.override import put
from twinbed.study.problem import Position, Problem, listed

PROFILES = "profiles"
OPTION = "--profile"
"""What a problem with the option's value gives as its file."""
FIXED = ("study", PROFILES)
"""Keys that no profile changes."""

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
        """The study ``root`` with the changes made, in the order of the file."""
        for change in self.changes:
            fresh: list[Problem] = []
            if change.key.partition(".")[0] in FIXED:
                message = "is the same in every profile"
                problems.append(Problem.at(change.place, f"{PROFILES}.{self.name}.{change.key}", message, listed(sections)))
                continue
            root = put(root, change.key, change.value, change.place, sections, fresh)
            problems += [replace(problem, key=f"{PROFILES}.{self.name}.{problem.key}") for problem in fresh]
        return root

    def named_in(self, problem: Problem) -> Problem:
        """A problem of the study with this profile, which is named where the problem does not stand in it."""
        places = {(place.line, place.column) for change in self.changes for place in (change.place, *_places(change.value))}
        if (problem.line, problem.column) in places:
            return problem
        return replace(problem, message=f"{problem.message}, with the profile {self.name!r}")


def read_profiles(root: Entries, problems: list[Problem]) -> Mapping[str, Profile]:
    """The profiles of the study ``root``; what is no profile is left out and appended to ``problems``."""
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
        profiles[name] = Profile(name, tuple(Change(path, each, value.keys[path]) for path, each in value.entries.items()))
    return profiles


def chosen(name: str | None, profiles: Mapping[str, Profile], problems: list[Problem]) -> Profile | None:
    """The profile that is asked for. An unknown one is appended to ``problems``."""
    if name is not None and name not in profiles:
        message = f"{name!r} is not a profile of this study" + ("" if profiles else ", which has none: leave the option out")
        problems.append(Problem.at(Position(OPTION, 1, 1), "", message, listed(profiles), nearest(name, profiles)))
    return None if name is None else profiles.get(name)


def _places(node: Node) -> Iterator[Position]:
    """The places of a value and of all that is in it."""
    yield node.place
    if isinstance(node, Entries):
        yield from node.keys.values()
        for value in node.entries.values():
            yield from _places(value)
    elif isinstance(node, Items):
        for item in node.items:
            yield from _places(item)
