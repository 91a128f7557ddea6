"""A pattern proposed from paths alone: text that all paths share stays, text that varies becomes a field."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from twinbed.imports.layout.pattern import compile_pattern
from twinbed.imports.layout.run_key import SNAPSHOTS, FileKey, NotAssigned
from twinbed.imports.text.levels import is_plain

_PARTS = re.compile(r"([/_\-.=, ]+)")
_NUMBERED = re.compile(r"([A-Za-z]+)(\d+)")
_TESTBEDS = re.compile(
    r"(?i)(physical|host|native|bare-?metal|real|container|docker|podman|lxc|lxd|kvm|qemu|vm|virtio|e1000|xen|vmware|nat|overlay|"
    r"bridge|minimega|mininet|emulab)\d*"
)
_DIRECTIONS = re.compile(r"(?i)(send|sender|sent|receive|received|receiver|recv|tx|rx|up|down|upload|download|c2s|s2c|in|out)")
_RUNS = (
    "run",
    "rep",
    "replicate",
    "iter",
    "iteration",
    "trial",
    "try",
    "test",
    "round",
    "exp",
    "experiment",
    "sample",
    "n",
    "r",
)
"""Words before the number of a replicate."""
MOST_PATHS = 5000
"""Paths that are read; of more paths, some from everywhere."""
MOST_SHAPES = 8
"""Shapes of which each gives a pattern to try, those that most paths have."""
LEAST_SHARE = 0.02
"""Share of the paths that must have a shape. A pattern for fewer, such as for notes, may fit all paths and name nothing."""
_TWO_WORDS = re.compile(r"\{testbed\}[_\-.]\{factor\}")
"""Where a testbed's second word may have become a field of its own."""
Shape: TypeAlias = tuple[str, ...]
"""The separators of a path's words."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pattern and how many of the paths it fits."""

    pattern: str
    matches: int


def propose(paths: Sequence[str]) -> Proposal | None:
    """Return the pattern that fits most of the paths. None where fewer than two paths share a shape or nothing varies.

    Each common shape gives a pattern of the paths that have it, and one of all paths that end in it, as their first word may
    hold more separators.  Patterns that say less than that of the commonest shape do are left out, though they fit more.
    """
    plain = [path for path in paths[:: -(-len(paths) // MOST_PATHS) or 1] if is_plain(path)]
    shapes: dict[Shape, list[list[str]]] = {}
    for path in plain:
        parts = _split(path)
        shapes.setdefault(tuple(parts[1::2]), []).append(parts)
    common = sorted(shapes.values(), key=len, reverse=True)[:MOST_SHAPES]
    common = [rows for rows in common if len(rows) >= 2 and len(rows) >= LEAST_SHARE * len(plain)]
    if not common or _pattern(common[0]) is None:
        return None
    texts = [text for rows in common for group in (rows, _ending_so(rows, shapes)) if (text := _pattern(group)) is not None]
    least = _field_count(texts[0]) - (_TWO_WORDS.search(texts[0]) is not None)
    fits = {text: _fits(text, plain) for text in texts if _field_count(text) >= least}
    best = max(fits, key=lambda text: (fits[text], _field_count(text)))
    return Proposal(best, _fits(best, paths))


def _field_count(text: str) -> int:
    return text.replace("{{", "").count("{")


def _fits(text: str, paths: Sequence[str]) -> int:
    pattern = compile_pattern(text, FileKey("" if "{testbed}" in text else "any", {}))
    count = 0
    for path in paths:
        with contextlib.suppress(NotAssigned):
            pattern.assign(path)
            count += 1
    return count


def _pattern(rows: Sequence[Sequence[str]]) -> str | None:
    columns = [sorted({row[index] for row in rows}) for index in range(len(rows[0]))]
    if all(len(values) == 1 for values in columns):
        return None
    return "".join(_fields(*_joined(columns, rows)))


def _ending_so(rows: Sequence[Sequence[str]], shapes: Mapping[Shape, Sequence[list[str]]]) -> list[list[str]]:
    """Return the paths that end in the separators of ``rows``, with all text before them in their first word."""
    shape = tuple(rows[0][1::2])
    ending: list[list[str]] = []
    for other, members in shapes.items():
        extra = len(other) - len(shape)
        if extra < 0 or other[extra:] != shape or any("/" in separator for separator in other[:extra]):
            continue
        for parts in members:
            first, rest = parts[: 2 * extra + 1], parts[2 * extra + 1 :]
            ending.append(["".join(first).replace("\0", ""), *rest])
    return ending


def _split(path: str) -> list[str]:
    """Return words and separators in turn; ``run12`` is ``run``, nothing, ``12`` (its separator is written as a NUL)."""
    parts: list[str] = []
    for index, part in enumerate(_PARTS.split(path)):
        if index % 2 == 0 and not _TESTBEDS.fullmatch(part) and (match := _NUMBERED.fullmatch(part)):
            parts += [match[1], "\0", match[2]]
        else:
            parts.append(part)
    return parts


def _joined(columns: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> tuple[list[Sequence[str]], int | None]:
    """Join a testbed of two words into one column, and return the column's place; None where there is none.

    In ``docker_nat`` and ``host_none`` the second word determines the first.
    """
    joined = list(columns)
    for index in range(0, len(columns) - 2, 2):
        first, between, second = columns[index : index + 3]
        if (
            1 < len(first) < len(second)
            and "/" not in between[0]
            and all(_TESTBEDS.fullmatch(value) for value in first)
            and not _are_numbers(second)
            and not _directions(second)
            and len({(row[index], row[index + 2]) for row in rows}) == len(second)
        ):
            joined[index : index + 3] = [sorted({"".join(row[index : index + 3]) for row in rows})]
            return joined, index
    return joined, None


def _fields(columns: Sequence[Sequence[str]], two_words: int | None) -> list[str]:
    varying = [index for index in range(0, len(columns), 2) if len(columns[index]) > 1]
    # No text separates a word that varies from its number, as in client1 and server2.
    joined = {index + 2 for index in varying if index + 1 < len(columns) and columns[index + 1] == ["\0"]}
    names: dict[int, str] = {}
    testbed = two_words
    if testbed is None:
        testbed = next((index for index in varying if all(_TESTBEDS.fullmatch(value) for value in columns[index])), None)
    named = {index for index in varying if _directions(columns[index]) or _snapshots(columns[index])}
    words = [index for index in varying if not _are_numbers(columns[index]) and index not in named]
    if testbed is None and words:
        testbed = words[0]
    numbers = [index for index in varying if index != testbed and index not in joined and _are_numbers(columns[index])]
    counted = [index for index in numbers if _word_before(columns, index) in _RUNS]
    alone = [index for index in numbers[-1:] if not _word_before(columns, index)]
    replicate = next(iter([*counted, *alone]), None)
    taken: Counter[str] = Counter()
    for index in varying:
        if index == testbed:
            name = "testbed"
        elif index == replicate:
            name = "replicate"
        elif index in named:
            name = "snapshot" if _snapshots(columns[index]) else "direction"
        else:
            name = _word_before(columns, index) or "factor"
        taken[name] += 1
        names[index] = name if taken[name] == 1 else f"{name}{taken[name]}"
    fields: list[str] = []
    for index, values in enumerate(columns):
        if index in names and index not in joined:
            fields.append(f"{{{names[index]}:int}}" if index != testbed and _are_numbers(values) else f"{{{names[index]}}}")
        elif index not in joined:
            fields.append("" if values == ["\0"] else values[0].replace("{", "{{").replace("}", "}}"))
    return fields


def _are_numbers(values: Sequence[str]) -> bool:
    return all(value.isdecimal() for value in values)


def _directions(values: Sequence[str]) -> bool:
    return all(_DIRECTIONS.fullmatch(value) for value in values)


def _snapshots(values: Sequence[str]) -> bool:
    return all(value.lower() in SNAPSHOTS for value in values)


def _word_before(columns: Sequence[Sequence[str]], index: int) -> str:
    """Return the word before a number, as in ``parallel-10`` and ``run3``, where it never varies; empty without one."""
    before = columns[index - 2] if index >= 2 and columns[index - 1][0] in ("-", "=", "\0", "_") else ()
    if len(before) != 1 or not re.fullmatch(r"[A-Za-z]\w*", before[0]) or not _are_numbers(columns[index]):
        return ""
    return before[0].lower()
