"""Show what testbeds are made of and what was set on them, side by side; from the tables ``facts`` and ``applied``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from twinbed.model.tables import Tables

Values = Mapping[str, tuple[str, ...]]
"""Testbed -> the distinct values that its runs have."""
MISSING = "–"


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of one place on every testbed; applied settings have ``asked`` and ``source`` too."""

    place: str
    name: str
    values: Values
    asked: Values
    source: str = ""

    def differs(self, testbeds: Sequence[str]) -> bool:
        return len({self.values.get(testbed, ()) for testbed in testbeds}) > 1


def passports(tables: Tables) -> tuple[Fact, ...]:
    """Return the testbeds' passports, in the order of places and names; places that are alike everywhere share a line."""
    rows_of = _collect(tables, "facts", ("place", "fact", "value"))
    return _places_joined(Fact(place, name, _values(rows, 0), {}) for (place, name), rows in sorted(rows_of.items()))


def applied(tables: Tables) -> tuple[Fact, ...]:
    """Return every setting as asked and as found; places that are alike everywhere share a line."""
    rows_of = _collect(tables, "applied", ("subject", "setting", "found", "asked", "source"))
    return _places_joined(
        Fact(subject, setting, _values(rows, 0), _values(rows, 1), next(iter(rows.values()))[0][2])
        for (subject, setting), rows in sorted(rows_of.items())
    )


def _places_joined(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return the facts with those of one name that only differ in their places as one."""
    joined: list[Fact] = []
    for fact in facts:
        same = next((index for index, other in enumerate(joined) if replace(other, place=fact.place) == fact), None)
        if same is None:
            joined.append(fact)
        else:
            joined[same] = replace(fact, place=f"{joined[same].place}, {fact.place}")
    return tuple(sorted(joined, key=lambda fact: (fact.place, fact.name)))


Rows = dict[str, list[tuple[str, ...]]]


def _collect(tables: Tables, name: str, columns: Sequence[str]) -> dict[tuple[str, str], Rows]:
    """(first, second column) -> testbed -> distinct rest of the row, in the order of appearance."""
    table = tables.table(name)
    rows_of: dict[tuple[str, str], Rows] = {}
    if not table.num_rows:
        return rows_of
    testbeds = {record.id: str(record.settings["testbed"]["name"]) for record in tables.records}
    distinct: Iterable[tuple[str, ...]] = dict.fromkeys(
        (testbeds[run], *rest)
        for run, *rest in zip(*(table[column].to_pylist() for column in ("run", *columns)), strict=True)
        if run in testbeds
    )
    for testbed, key, subkey, *rest in distinct:
        rows_of.setdefault((key, subkey), {}).setdefault(testbed, []).append(tuple(rest))
    return rows_of


def _values(rows: Rows, column: int) -> Values:
    return {testbed: tuple(sorted({row[column] for row in of_testbed})) for testbed, of_testbed in rows.items()}


def shown(values: Values, testbed: str, most: int = 4) -> str:
    """Return a testbed's values in one text; a value that runs do not agree on is shown with its alternatives."""
    known = values.get(testbed, ())
    if not known:
        return MISSING
    rest = f" | and {len(known) - most} more" if len(known) > most else ""
    return " | ".join(known[:most]) + rest
