"""The plan of a merge: its ``study.json``, the runs' new records, and notes for the user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.near import instead
from twinbed.model.record import Record, Settings
from twinbed.model.run import Level, level_text
from twinbed.model.tables import TESTBED, Planned
from twinbed.model.units import QuantityError, parse_duration, parse_rate, parse_size
from twinbed.results.merge.sources import Source
from twinbed.results.store import testbed_of

FORMAT = 1


@dataclass(frozen=True)
class Plan:
    """The plan of a merge. ``runs`` are (source, id there, record here)."""

    study: Document
    testbeds: Sequence[str]
    reference: str
    runs: Sequence[tuple[Source, str, Record]]
    notes: Sequence[str]


def plan(of: Sequence[Source], name: str, reference: str | None, command: str) -> Plan:
    """Plan a merge. Raises TwinbedError for an unknown reference, or a source without runs."""
    for source in of:
        if not source.store.records:
            raise TwinbedError(f"{source.store.shown} has no runs", advice="leave it out, or run or import it first")
    testbeds = list(dict.fromkeys(new for source in of for new in source.testbeds.values()))
    first = of[0].store.outline
    chosen = reference or of[0].testbeds.get(first.reference or "", testbeds[0])
    if chosen not in testbeds:
        raise TwinbedError(f"the reference {chosen!r} is not a testbed of these results", advice=instead(chosen, testbeds))
    levels = UnifiedLevels(of)
    runs = [(source, record.id, _moved(source, record, levels)) for source in of for record in source.store.records]
    made = {source.name: {record.id for record in source.store.records} for source in of}
    missing = [(source, run) for source in of for run in source.store.planned if run.id not in made[source.name]]
    planned = [
        Planned(record.id, record.cell, record.levels, record.replicate, record.block, record.position) for *_, record in runs
    ]
    planned += [
        Planned(
            source.identity(run.id),
            source.identity(run.cell),
            levels.of(source, run.levels, {}),
            run.replicate,
            run.block + source.blocks_after,
            run.position + source.positions_after,
        )
        for source, run in missing
    ]
    factors = {factor: list(dict.fromkeys(run.levels.get(factor) for run in planned)) for factor in (TESTBED, *levels.factors)}
    study: Document = {
        "format": FORMAT,
        "study": name,
        "testbeds": {new: [] for new in testbeds},
        "reference": chosen,
        "reference_reason": "given" if reference else f"that of {of[0].name}",
        "factors": factors,
        "margin": first.margin,
        "confidence": first.confidence,
        "runs": [_entry(run) for run in planned],
        "sources": [
            {
                "name": source.name,
                "study": source.store.outline.name,
                "testbeds": dict(source.testbeds),
                "runs": len(source.store.records),
                "twinbed": sorted({record.twinbed for record in source.store.records}),
            }
            for source in of
        ],
        "commands": [command],
    }
    return Plan(study, testbeds, chosen, runs, [*_notes(of, testbeds), *levels.notes])


def refuse_without_artifacts(of: Sequence[Source]) -> None:
    """Raise TwinbedError for a source archived without artifacts: the merged folder would lack them."""
    for source in of:
        if source.store.frozen:
            raise TwinbedError(
                f"{source.name} has no artifacts, from which the merged tables would be made",
                advice="merge the results themselves, or archives with artifacts; `twinbed export --metrics` has values",
            )


def _entry(run: Planned) -> Document:
    return {
        "id": run.id,
        "cell": run.cell,
        "levels": dict(run.levels),
        "replicate": run.replicate,
        "block": run.block,
        "position": run.position,
    }


def _moved(source: Source, record: Record, levels: UnifiedLevels) -> Record:
    name = source.testbeds[testbed_of(record)]
    own = levels.of(source, record.levels, record.settings)
    settings: Settings = {**record.settings, "levels": own, "testbed": {**record.settings["testbed"], "name": name}}
    return replace(
        record,
        id=source.identity(record.id),
        cell=source.identity(record.cell),
        levels=own,
        replicate=record.replicate + source.replicates_after.get(name, 0),
        block=record.block + source.blocks_after,
        position=record.position + source.positions_after,
        settings=settings,
    )


def _notes(of: Sequence[Source], testbeds: Sequence[str]) -> Iterator[str]:
    first = of[0].store.outline
    for source in of:
        outline = source.store.outline
        for old, new in source.testbeds.items():
            if old != new:
                yield f"{source.name}: the testbed {old} is called {new}"
        if (outline.margin, outline.confidence) != (first.margin, first.confidence):
            yield (
                f"{source.name} has margin {outline.margin:g} and confidence {outline.confidence:g}; those of {of[0].name}"
                f" ({first.margin:g}, {first.confidence:g}) count"
            )
        if outline.interim is not None:
            yield f"{source.name} ended when it was decided: its error rates for several interim analyses no longer hold"
    for name in testbeds:
        several = [source for source in of if name in source.testbeds.values()]
        in_one_cell = len({str(source.given) for source in several}) < len(several)
        if in_one_cell:
            yield f"the testbed {name} is in {' and '.join(source.name for source in several)}: its replicates are renumbered"


class UnifiedLevels:
    """The levels of all runs, each written as its first source writes it."""

    def __init__(self, of: Sequence[Source]) -> None:
        self.factors: list[str] = []
        for source in of:
            names = (name for record in source.store.records for name in record.levels)
            self.factors += [name for name in dict.fromkeys((*names, *source.given)) if name not in (*self.factors, TESTBED)]
        self._written: dict[str, dict[str, Level]] = {factor: {} for factor in self.factors}
        self._settings = {(source.name, factor) for source in of for factor in self.factors if _sets(source, factor)}
        self.notes: list[str] = []

    def of(self, source: Source, own: Mapping[str, Level], settings: Mapping[str, object]) -> dict[str, Level]:
        """Return the level of every factor in a run; None for an unknown one."""
        if TESTBED in own:
            testbed = source.testbeds.get(str(own.get(TESTBED)), "")
        else:
            made = settings.get("testbed")
            testbed = source.testbeds[str(made["name"]) if isinstance(made, Mapping) else next(iter(source.testbeds))]
        return {TESTBED: testbed, **{factor: self._one(factor, source, own, settings) for factor in self.factors}}

    def _one(self, factor: str, source: Source, own: Mapping[str, Level], settings: Mapping[str, object]) -> Level:
        level = own.get(factor)
        value = _setting(settings, factor) if (source.name, factor) in self._settings else None
        if factor in source.given:
            level, value = source.given[factor], None
        elif factor not in own:
            if value is None:
                self._note(
                    f"{source.name} does not have {factor}: give it with --level, or its runs stay in cells of their own"
                )
                return None
            level = value
            self._note(f"{source.name}: {factor} is {level_text(value)}, from its runs' settings")
        written = self._written[factor]
        keys = [*([] if value is None else [_key(value)]), *_keys(level)]
        known = next((key for key in keys if key in written), None)
        if known is None:
            written.update(dict.fromkeys(keys, level))
            return level
        return written[known]

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _sets(source: Source, factor: str) -> bool:
    """Return whether a factor of a source is the setting of that name. Each value of the setting must go with one level, or the
    source must have no such factor."""
    levels_of: dict[str, set[str]] = {}
    for record in source.store.records:
        value = _setting(record.settings, factor)
        if value is not None and factor in record.levels:
            levels_of.setdefault(_key(value), set()).add(_key(record.levels[factor]))
    return all(len(levels) == 1 for levels in levels_of.values())


def _setting(settings: Mapping[str, object], factor: str) -> Level:
    """Return the value of the one setting of that name; None if there is none, or several."""
    leaves = dict(_leaves({part: settings[part] for part in settings if part != "levels"}))
    values = [value for name, value in leaves.items() if name == factor or name.endswith(f".{factor}")]
    present = [value for value in values if value is not None]
    return present[0] if len(present) == 1 else None


def _leaves(data: Mapping[str, object], above: str = "") -> Iterator[tuple[str, Level]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{name}.")
        elif isinstance(value, str | int | float | bool):
            yield f"{above}{name}", value


def _key(value: Level) -> str:
    return level_text(value)


def _keys(level: Level) -> Iterator[str]:
    """Yield all that a level may mean: ``500B`` means 500 too."""
    yield _key(level)
    if isinstance(level, str):
        for parse in (parse_size, parse_rate, parse_duration):
            with contextlib.suppress(QuantityError):
                yield _key(parse(level))
