"""The plan of a merge: its ``study.json``, the runs' new records, and notes for the user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.near import instead
from twinbed.model.record import Record, Settings
from twinbed.model.tables import TESTBED, Planned
from twinbed.results.merge.levels import UnifiedLevels
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
        raise TwinbedError(f"the reference {chosen!r} is no testbed of these results", advice=instead(chosen, testbeds))
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
    factors = {
        factor: list(dict.fromkeys(each.levels.get(factor) for each in planned)) for factor in (TESTBED, *levels.factors)
    }
    study: Document = {
        "format": FORMAT,
        "study": name,
        "testbeds": {new: [] for new in testbeds},
        "reference": chosen,
        "reference_reason": "given" if reference else f"that of {of[0].name}",
        "factors": factors,
        "margin": first.margin,
        "confidence": first.confidence,
        "runs": [_entry(each) for each in planned],
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
            yield f"the testbed {name} is in {' and '.join(source.name for source in several)}: its replicates are numbered on"
