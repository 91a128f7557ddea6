"""The sides of a comparison: the testbeds of results, or the levels of any other factor in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from twinbed.model.columns import PlannedRuns, Records, planned_testbeds
from twinbed.model.error import TwinbedError
from twinbed.model.near import instead
from twinbed.model.record import Record, Settings
from twinbed.model.run import Level, level_text
from twinbed.model.tables import TESTBED, Outline, Planned, Tables
from twinbed.model.units import magnitude, magnitudes
from twinbed.model.view import View
from twinbed.observations.numbered import of_pairs

ON = "on testbed"
"""The testbed's name where it is one factor of cells among others."""


@dataclass(frozen=True)
class _Held(View):
    """Tables with their own outline, plan and records, which define what is compared."""

    outline: Outline
    planned: Sequence[Planned]
    records: Sequence[Record]


def varied(tables: Tables) -> Mapping[str, Sequence[Level]]:
    """Return the factors but the testbed that have two levels or more, with their levels in the order of the study file."""
    given = tables.outline.data.get("factors") or {}
    levels: dict[str, dict[str, Level]] = {name: {level_text(level): level for level in of} for name, of in given.items()}
    planned, records = PlannedRuns.of(tables.planned), Records.of(tables.records)
    for of_run in (*planned.levels.distinct(), *records.levels.distinct()):
        for name, level in of_run.items():
            levels.setdefault(name, {}).setdefault(level_text(level), level)
    return {name: tuple(of.values()) for name, of in levels.items() if name != TESTBED and len(of) > 1}


def size(level: Level) -> tuple[str, float] | None:
    """Return unit and number of a level that has an order: of numbers, sizes, rates and durations."""
    if isinstance(level, bool) or level is None:
        return None
    return ("", float(level)) if isinstance(level, int | float) else magnitude(level)


def is_ordered(levels: Sequence[Level]) -> bool:
    """Return whether all levels have an order, and the same unit."""
    known = [level for level in levels if level is not None and not isinstance(level, bool)]
    units = {sized and sized[0] for sized in magnitudes(known)}
    return len(known) == len(levels) and len(units) == 1 and None not in units


@dataclass(frozen=True, slots=True)
class Chosen:
    """The factor that is compared by default."""

    by: str
    reason: str = ""
    """The reason, and how to choose another factor; empty if testbeds are compared, or there is no other choice."""


def compared_by(tables: Tables) -> Chosen:
    """Return the factor that a study asks to compare: the testbed, or with one testbed the only factor that is a switch, a
    choice, or a setting of the testbed. The load of a testbed (payload, connections, duration, a link's rate) is no question of
    faithfulness. A number of pairs asks how many fit, which another analysis answers."""
    factors = varied(tables)
    if len(tables.outline.testbeds) > 1 or not factors or tables.outline.data.get("uncertain"):
        return Chosen(TESTBED)
    amounts = [name for name, levels in factors.items() if is_amount(tables, name, levels)]
    choices = [name for name in factors if name not in amounts]
    if len(choices) == 1:
        others = f" --by FACTOR compares another: {', '.join(amounts)}." if amounts else ""
        return Chosen(choices[0], f"There is one testbed: the levels of {choices[0]} are compared.{others}")
    if choices:
        return Chosen(TESTBED, f"There is one testbed: --by FACTOR compares the levels of {' or '.join(choices)}.")
    if of_pairs(amounts) is not None:
        return Chosen(TESTBED)
    return Chosen(
        TESTBED,
        f"There is one testbed, and only its load varies ({', '.join(amounts)}): --by {amounts[0]} compares its levels.",
    )


def is_amount(tables: Tables, factor: str, levels: Sequence[Level]) -> bool:
    """Return whether a factor's levels are numbers, sizes, rates or times, and no setting of testbeds."""
    path, _, name = factor.rpartition(".")
    own = path.partition(".")[0] == TESTBED or (
        not path and any(name in settings["testbed"] for settings in Records.of(tables.records).settings.distinct())
    )
    return is_ordered(levels) and not own


def compared_with(tables: Tables, by: str, reference: str | None = None) -> Tables:
    """Return the tables as a comparison: testbeds with one of them, or the levels of another factor in the place of testbeds.
    ``reference`` None takes the study's testbed, or the first level. Raises TwinbedError for an unknown name."""
    if by == TESTBED:
        names = tables.outline.testbeds
        if reference is not None and reference not in names:
            raise TwinbedError(f"{tables.shown} has no testbed {reference!r}", advice=f"it has: {', '.join(names) or 'none'}")
        return tables if reference is None else _referring(tables, reference)
    factors = varied(tables)
    if by not in factors:
        choices = instead(by, [TESTBED, *factors])
        raise TwinbedError(f"{tables.shown} has no factor {by!r} of two levels or more", advice=choices)
    texts = [level_text(level) for level in factors[by]]
    if reference is not None and reference not in texts:
        raise TwinbedError(f"{by} has no level {reference!r}", advice=instead(reference, texts))
    return _in_place_of_testbeds(tables, by, texts, reference or texts[0])


def _referring(tables: Tables, reference: str) -> Tables:
    outline = replace(tables.outline, reference=reference)
    return _Held(tables, outline, tables.planned, tables.records)


def _in_place_of_testbeds(tables: Tables, by: str, texts: Sequence[str], reference: str) -> Tables:
    outline = tables.outline
    several = len(outline.testbeds) > 1
    data = outline.data.copy()
    given = {name: levels for name, levels in (data.get("factors") or {}).items() if name not in (TESTBED, by)}
    names = tuple(named(by, text) for text in texts)
    data["factors"] = {TESTBED: names, **({ON: outline.testbeds} if several else {}), **given}

    def moved(levels: Mapping[str, Level], testbed: object) -> dict[str, Level]:
        rest = {name: level for name, level in levels.items() if name not in (TESTBED, by)}
        own = {ON: str(testbed)} if several else {}
        return {TESTBED: named(by, level_text(levels.get(by))), **own, **rest}

    def held(levels: Mapping[str, Level], settings: Settings) -> tuple[Mapping[str, Level], Settings]:
        other = moved(levels, settings["testbed"]["name"])
        testbed = {**settings["testbed"], "name": other[TESTBED]}
        return other, {**settings, "levels": other, "testbed": testbed}

    planned, records = PlannedRuns.of(tables.planned), Records.of(tables.records)
    return _Held(
        tables,
        replace(outline, testbeds=names, reference=named(by, reference), data=data, by=by),
        planned.held(planned_testbeds(planned, records, outline.reference), moved),
        records.held(held),
    )


def named(by: str, level: str) -> str:
    """Return a level's name among others: ``workload.keep_alive on``."""
    return f"{by} {level}"
