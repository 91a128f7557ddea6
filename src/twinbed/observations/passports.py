"""Differences between the passports of two testbeds, or of two results: facts, settings, and values that were read back.

Hosts with a number are pooled with those of the same role: ``client3`` is a client.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.model.tables import Tables
from twinbed.observations.suspicion import Suspicion, suspicion
from twinbed.show.table import Row
from twinbed.terminal import one_line

Facts = Mapping[tuple[str, str], frozenset[str]]
"""(place, fact) -> its values, without null."""

_NOTHING: frozenset[str] = frozenset()
_UNKNOWN = ("", "null", "None")
_NUMBER = re.compile(r"\d+$")
SETTINGS = "settings"
"""The place of facts of a study, rather than of a host."""
LESSER = ("package", "name")
"""Kinds that are shown only with ``everything``."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that is not the same on both sides, with all its values on either."""

    kind: str
    place: str
    fact: str
    left: Sequence[str]
    right: Sequence[str]
    varies: bool
    """True if it also varies within a side."""
    why: str


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences between two sides, most suspicious first."""

    left: str
    right: str
    differ: int
    unknown: int
    """Facts that only one side has recorded."""
    same: int
    differences: tuple[Difference, ...]

    @property
    def summary(self) -> Row:
        return {
            "left": self.left,
            "right": self.right,
            "differ": self.differ,
            "unknown": self.unknown,
            "same": self.same,
        }


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the comparison. ``testbed`` None takes all of a results folder."""

    tables: Tables
    testbed: str | None
    name: str


def between(first: Side, second: Side, *, everything: bool = False) -> Differences:
    """Return the differences between two sides, which may be of different results; with ``everything`` names of things too."""
    left, right = facts_of(first), facts_of(second)
    rows = list(_rows(left, right))
    if not everything:
        rows = [row for row in rows if row[0].kind not in LESSER]
    rows.sort(key=lambda row: (row[0].rank, _unknown(row[1]), row[1].varies, row[1].place, row[1].fact))
    return Differences(
        first.name,
        second.name,
        differ=sum(not _unknown(row) for _, row in rows),
        unknown=sum(_unknown(row) for _, row in rows),
        same=sum(left[key] == right[key] for key in left if key in right),
        differences=tuple(row for _, row in rows),
    )


def _unknown(row: Difference) -> bool:
    return not row.left or not row.right


def _rows(left: Facts, right: Facts) -> Iterator[tuple[Suspicion, Difference]]:
    """Yield the facts that differ; places where a fact differs alike share a row."""
    places: dict[tuple[str, frozenset[str], frozenset[str], Suspicion], list[str]] = {}
    for place, fact in sorted({*left, *right}):
        in_left, in_right = left.get((place, fact), _NOTHING), right.get((place, fact), _NOTHING)
        if in_left != in_right:
            places.setdefault((fact, in_left, in_right, suspicion(place, fact)), []).append(place)
    for (fact, in_left, in_right, suspected), alike in places.items():
        yield (
            suspected,
            Difference(
                kind=suspected.kind,
                place=", ".join(alike),
                fact=fact,
                left=sorted(in_left),
                right=sorted(in_right),
                varies=len(in_left) > 1 or len(in_right) > 1,
                why=suspected.why,
            ),
        )


def facts_of(side: Side) -> Facts:
    """Return all known facts of a side's runs."""
    facts: dict[tuple[str, str], set[str]] = {}
    records = [record for record in side.tables.records if side.testbed in (None, record.settings["testbed"]["name"])]
    runs = {record.id for record in records}
    for place, fact, value in _columns(side.tables, "facts", ("place", "fact", "value"), runs):
        facts.setdefault((_role(place), fact), set()).add(value)
    for (place, name), values in _applied(side.tables, runs).items():
        if facts.get((place, name.replace(".", " "))) != values:
            facts[place, f"{name} (set)"] = values
    for record in records:
        for name, value in _leaves({name: part for name, part in record.settings.items() if name != "levels"}):
            if name != "testbed.name" and not name.startswith(("workload.files", "workload.metrics")):
                facts.setdefault((SETTINGS, name), set()).add(value)
    known = {key: frozenset(values) - set(_UNKNOWN) for key, values in facts.items()}
    return {key: values for key, values in known.items() if values}


def _applied(tables: Tables, runs: set[str]) -> Mapping[tuple[str, str], set[str]]:
    applied: dict[tuple[str, str], set[str]] = {}
    for subject, setting, value in _columns(tables, "applied", ("subject", "setting", "found"), runs):
        applied.setdefault((_role(subject), setting), set()).add(value)
    return applied


def _role(place: str) -> str:
    """Return the place without its number: ``client3`` -> ``client``; ``p.client3`` -> ``p.client``."""
    return _NUMBER.sub("", place) or place


def _columns(tables: Tables, name: str, columns: tuple[str, ...], runs: set[str]) -> Iterator[tuple[str, ...]]:
    table = tables.table(name)
    if not table.num_rows:
        return
    rows = zip(*(table[column].to_pylist() for column in ("run", *columns)), strict=True)
    yield from dict.fromkeys(tuple(rest) for run, *rest in rows if run in runs)


def _leaves(data: object, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _leaves(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, data if isinstance(data, str) else json.dumps(data, sort_keys=True)


_LONGEST, _MOST = 44, 3
"""A line shows at most so many characters of a value, and so many values; JSON and CSV have all."""


def lines(pair: Differences, most: int | None = None) -> Iterator[str]:
    """Yield the lines for a terminal: the first ``most`` differences, or all."""
    from twinbed.render.rows import as_text

    left, right = one_line(pair.left), one_line(pair.right)
    title = f"{left} and {right}"
    if left == right or max(len(left), len(right)) > _LONGEST // 2:
        title, left, right = f"A: {left}\nB: {right}\nA and B", "A", "B"
    yield f"{title}: {sentence(pair)}"
    rows = pair.differences[:most]
    for kind in dict.fromkeys(row.kind for row in rows):
        of_kind = [row for row in rows if row.kind == kind]
        yield ""
        yield f"{kind}{': ' if of_kind[0].why else ''}{of_kind[0].why}"
        table = as_text(
            [{"": f"  {row.place}: {row.fact}", left: _shown(row.left), right: _shown(row.right)} for row in of_kind]
        )
        yield table.rstrip("\n")


def sentence(pair: Differences) -> str:
    """Summarise: ``3 differ, 21 the same, 2 known for only one``."""
    return f"{pair.differ} differ, {pair.same} the same, {pair.unknown} known for only one"


def _shown(values: Sequence[str]) -> str:
    if not values:
        return "(not recorded)"
    more = f" and {len(values) - _MOST} more" if len(values) > _MOST else ""
    return " | ".join(_short(value) for value in values[:_MOST]) + more


def _short(value: str) -> str:
    return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 3]}..."
