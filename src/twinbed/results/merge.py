"""Several results folders as one, testbeds side by side.

What is made is a results folder like any other; its ``study.json`` names the ``sources``, which stay as they are.  Runs get ids
of their own, since two sources may have made the same run.  Levels that mean the same are written the same: a factor that a
source lacks is looked up in the settings of its runs, where the factor's name is that of a setting.  What sources do not agree
on is kept as it is, and a doubt wherever they are compared.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from twinbed.model.error import TwinbedError
from twinbed.model.record import Record
from twinbed.model.run import Level, level_text
from twinbed.model.units import QuantityError, parse_duration, parse_rate, parse_size
from twinbed.results.store import Store, testbed_of

FORMAT = 1
TESTBED = "testbed"
Levels = dict[str, Level]
Named = Mapping[tuple[int, str], Any]
"""(position of a source, name in it) -> what the user says of it."""


@dataclass(frozen=True)
class Source:
    """One of the results that are put together."""

    name: str
    store: Store
    testbeds: Mapping[str, str]
    """Its testbed -> the name that it gets."""
    given: Mapping[str, Level]
    """Factor -> the level of all its runs, as the user says."""
    replicates_after: Mapping[str, int]
    """New name of a testbed -> the replicates that sources before it have of the same."""
    blocks_after: int
    positions_after: int

    def identity(self, old: str) -> str:
        """Of a run or a cell."""
        return hashlib.sha256(json.dumps([self.name, old]).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Plan:
    """What a merge makes. ``runs`` are (source, id there, record here)."""

    study: Mapping[str, Any]
    runs: Sequence[tuple[Source, str, Record]]
    notes: Sequence[str]


def sources(stores: Sequence[Store], renamed: Named, given: Named) -> list[Source]:
    """Testbeds of one name are told apart by their source, unless the user gives both that name: then they are one testbed,
    whose replicates are numbered on."""
    names = _distinct([store.path.resolve().name for store in stores])
    asked = [
        {testbed: renamed.get((at, testbed), testbed) for testbed in each.outline.testbeds} for at, each in enumerate(stores)
    ]
    taken = [name for of_source in asked for name in of_source.values()]
    found: list[Source] = []
    replicates: dict[str, int] = {}
    blocks = positions = 0
    for at, store in enumerate(stores):
        testbeds = {
            testbed: name if (at, testbed) in renamed or taken.count(name) == 1 else f"{name}@{names[at]}"
            for testbed, name in asked[at].items()
        }
        levels = {factor: level for (source, factor), level in given.items() if source == at}
        found.append(Source(names[at], store, testbeds, levels, dict(replicates), blocks, positions))
        for record in store.records:
            name = testbeds[testbed_of(record)]
            replicates[name] = max(replicates.get(name, 0), found[-1].replicates_after.get(name, 0) + record.replicate + 1)
        blocks += max((record.block for record in store.records), default=-1) + 1
        positions += max((record.position for record in store.records), default=-1) + 1
    return found


def _distinct(names: Sequence[str]) -> list[str]:
    """Numbered from the second on where several are the same."""
    found: list[str] = []
    for name in names:
        numbered = (f"{name}-{number}" for number in itertools.count(2))
        found.append(next(each for each in itertools.chain([name], numbered) if each not in found))
    return found


def plan(of: Sequence[Source], name: str, reference: str | None, command: str) -> Plan:
    """Raises TwinbedError where there is no such reference, or a source has no runs, or was archived without its artifacts."""
    for source in of:
        if not source.store.records:
            raise TwinbedError(f"{source.store.shown} has no runs", advice="leave it out, or run or import it first")
        if source.store.frozen:
            raise TwinbedError(
                f"{source.name} was archived without its artifacts, of which the tables of all together would be made",
                advice="merge the results themselves, or an archive with artifacts; `twinbed export --metrics` has values",
            )
    testbeds = list(dict.fromkeys(new for source in of for new in source.testbeds.values()))
    first = of[0].store.outline
    chosen = reference or of[0].testbeds.get(first.reference or "", testbeds[0])
    if chosen not in testbeds:
        raise TwinbedError(f"there is no testbed {chosen!r} to be the reference", advice=f"there are: {', '.join(testbeds)}")
    levels = _Levels(of)
    runs = [(source, record.id, _moved(source, record, levels)) for source in of for record in source.store.records]
    made = {source.name: {record.id for record in source.store.records} for source in of}
    missing = [(source, run) for source in of for run in source.store.planned if run.id not in made[source.name]]
    planned = [
        _planned(record.id, record.cell, record.levels, record.replicate, record.block, record.position) for *_, record in runs
    ]
    planned += [
        _planned(
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
        factor: list(dict.fromkeys(entry["levels"].get(factor) for entry in planned)) for factor in (TESTBED, *levels.factors)
    }
    study = {
        "format": FORMAT,
        "study": name,
        "testbeds": {new: [] for new in testbeds},
        "reference": chosen,
        "reference_reason": "given" if reference else f"that of {of[0].name}",
        "factors": factors,
        "margin": first.margin,
        "confidence": first.confidence,
        "runs": planned,
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
    return Plan(study, runs, [*_notes(of, testbeds), *levels.notes])


def _planned(run: str, cell: str, levels: Mapping[str, Level], replicate: int, block: int, position: int) -> dict[str, Any]:
    return {"id": run, "cell": cell, "levels": dict(levels), "replicate": replicate, "block": block, "position": position}


def _moved(source: Source, record: Record, levels: _Levels) -> Record:
    name = source.testbeds[testbed_of(record)]
    own = levels.of(source, record.levels, record.settings)
    settings = {**record.settings, "levels": own, "testbed": {**record.settings["testbed"], "name": name}}
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
            yield f"{source.name} ended when it was decided: its error rates were those of several looks, and are not now"
    for name in testbeds:
        several = [source.name for source in of if name in source.testbeds.values()]
        if len(several) > 1:
            yield f"the testbed {name} is of {' and '.join(several)}: replicates are numbered on"


class _Levels:
    """One way to write each level, over all sources."""

    def __init__(self, of: Sequence[Source]) -> None:
        self.factors: list[str] = []
        for source in of:
            names = (name for record in source.store.records for name in record.levels)
            self.factors += [name for name in dict.fromkeys((*names, *source.given)) if name not in (*self.factors, TESTBED)]
        self._written: dict[str, dict[str, Level]] = {factor: {} for factor in self.factors}
        self._settings = {(source.name, factor) for source in of for factor in self.factors if _sets(source, factor)}
        self.notes: list[str] = []

    def of(self, source: Source, own: Mapping[str, Level], settings: Mapping[str, Any]) -> Levels:
        """A run's levels, of every factor; None of one that nothing is known of."""
        found: Levels = {TESTBED: source.testbeds.get(str(own.get(TESTBED)), "")} if TESTBED in own else {}
        if not found:
            name = str(settings["testbed"]["name"]) if settings else next(iter(source.testbeds))
            found = {TESTBED: source.testbeds[name]}
        for factor in self.factors:
            found[factor] = self._one(factor, source, own, settings)
        return found

    def _one(self, factor: str, source: Source, own: Mapping[str, Level], settings: Mapping[str, Any]) -> Level:
        said = own.get(factor)
        value = _setting(settings, factor) if (source.name, factor) in self._settings else None
        if factor in source.given:
            said, value = source.given[factor], None
        elif factor not in own:
            if value is None:
                self._note(f"{source.name} does not say {factor}: say it with --level, or its runs are in cells of their own")
                return None
            said = value
            self._note(f"{source.name}: {factor} is {level_text(value)}, from its runs' settings")
        written = self._written[factor]
        keys = [*([] if value is None else [_key(value)]), *_keys(said)]
        known = next((key for key in keys if key in written), None)
        if known is None:
            written.update(dict.fromkeys(keys, said))
            return said
        return written[known]

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _sets(source: Source, factor: str) -> bool:
    """Whether a factor of a source is the setting of that name: each value of it is one level, or there is no such factor."""
    said: dict[str, set[str]] = {}
    for record in source.store.records:
        value = _setting(record.settings, factor)
        if value is not None and factor in record.levels:
            said.setdefault(_key(value), set()).add(_key(record.levels[factor]))
    return all(len(levels) == 1 for levels in said.values())


def _setting(settings: Mapping[str, Any], factor: str) -> Level:
    """The value of the one setting of that name; None where there is none, or several."""
    leaves = dict(_leaves({part: settings[part] for part in settings if part != "levels"}))
    found = [value for name, value in leaves.items() if name == factor or name.endswith(f".{factor}")]
    found = [value for value in found if value is not None]
    return found[0] if len(found) == 1 else None


def _leaves(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Level]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{name}.")
        elif isinstance(value, str | int | float | bool):
            yield f"{above}{name}", value


def _key(value: Level) -> str:
    return level_text(value)


def _keys(level: Level) -> Iterator[str]:
    """All that a level may mean: ``500B`` is 500 as well."""
    yield _key(level)
    if isinstance(level, str):
        for parse in (parse_size, parse_rate, parse_duration):
            with contextlib.suppress(QuantityError):
                yield _key(parse(level))


def write(made: Plan, folder: Path, on_progress: Callable[[int, int], None] | None = None) -> None:
    """The results folder. Artifacts are hard links where the file system can, else copies. One that a merge made before is made
    anew; another is refused. Raises TwinbedError."""
    _may_be_made(folder)
    new = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    try:
        (new / "links").mkdir(parents=True)
        for number, (source, old, record) in enumerate(made.runs, start=1):
            there, here = source.store.path / "runs" / old, new / "runs" / record.id
            _linked(there, here)
            (here / "run.json").write_text(json.dumps(record.to_json(), indent=1, sort_keys=True) + "\n")
            if on_progress is not None:
                on_progress(number, len(made.runs))
        for source in {source.name: source for source, *_ in made.runs}.values():
            _links(source, new / "links")
        (new / "study.json").write_text(json.dumps(made.study, indent=1) + "\n")
        if folder.exists():
            shutil.rmtree(folder)
        new.rename(folder)
    except OSError as error:
        # Of a copy that fails, the first name is the source's, which may be a folder that an archive was unpacked to.
        where = error.filename2 or error.filename or folder
        raise TwinbedError(f"{where}: {error.strerror}", advice="name another folder with -o") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _may_be_made(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    with contextlib.suppress(OSError, ValueError):
        if "sources" in json.loads((folder / "study.json").read_bytes()):
            return
    raise TwinbedError(f"{folder} is there, and no merge made it", advice="name another folder with -o")


def _linked(there: Path, here: Path) -> None:
    """A run's folder without its record. Folders are made, not copied: a source that may only be read has them read-only."""
    here.mkdir(parents=True)
    for path in sorted(there.rglob("*")):
        target = here / path.relative_to(there)
        if path.is_dir():
            target.mkdir()
        elif path != there / "run.json":
            _link(path, target)


def _link(one: Path, other: Path) -> None:
    try:
        os.link(one, other)
    except OSError:
        shutil.copy2(one, other)


def _links(source: Source, folder: Path) -> None:
    for check in source.store.link_checks:
        cell = source.identity(check.cell)
        moved = replace(check, cell=cell, run=source.identity(check.run))
        (folder / f"{cell}.json").write_text(json.dumps(moved.to_json(), indent=1) + "\n")
