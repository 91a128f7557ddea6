"""``-s key=value``: one setting of a study changed from the command line. The value is YAML, the key a dotted path."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.model.near import nearest
from twinbed.study.document import Entries, Items, Node, Scalar, parse
from twinbed.study.problem import Position, Problem, listed

FILE = "-s"
"""What problems of an override give as their file; the line is the override's number, the column counts in its text."""


def override(root: Entries, text: str, number: int, sections: Sequence[str], problems: list[Problem]) -> Entries:
    """``root`` with one ``key=value`` put in; unchanged where that cannot be done. ``sections`` are the keys of a study."""
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
    """``root`` with a value at the dotted path ``key``, which stands at ``place``; unchanged where that cannot be done."""
    if not is_key(key, place, sections, problems):
        return root
    changed = _put(root, _steps(key), value, place)
    if changed is None:
        problems.append(Problem.at(place, key, "goes through something that is not a mapping"))
        return root
    return changed


def is_key(key: str, place: Position, sections: Sequence[str], problems: list[Problem]) -> bool:
    """Whether a dotted path begins with a key of a study; where it does not, that is appended to ``problems``."""
    first = _steps(key)[0]
    if first not in sections:
        problems.append(Problem.at(place, key, "is not a key of a study", listed(sections), nearest(first, sections)))
    return first in sections


def _steps(key: str) -> list[str]:
    """A factor's name may be a dotted path itself."""
    return key.split(".", 1) if key.startswith("factors.") else key.split(".")


def _put(node: Node, steps: Sequence[str], value: Node, place: Position) -> Entries | None:
    """``node`` with the value at the path; mappings that are missing on the way are made. None where a value is in the way."""
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
    """A list of names (of instruments) as a mapping from each to no settings, so that a setting can be put there."""
    names = [item for item in node.items if isinstance(item, Scalar) and isinstance(item.value, str)]
    if len(names) != len(node.items):
        return None
    return Entries(
        {str(name.value): Scalar(None, name.place) for name in names},
        {str(name.value): name.place for name in names},
        node.place,
    )
