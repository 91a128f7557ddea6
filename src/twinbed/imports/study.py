"""The study of imported runs: ``study.json``, each run's record, and its passport."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import twinbed
from twinbed.imports.layout.manifest import Described, LinkFacts
from twinbed.imports.layout.names import in_order, shown
from twinbed.imports.runs import Made
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document, Json
from twinbed.model.members import list_at, object_at, text_at
from twinbed.model.record import IMPORTED, Record, Settings
from twinbed.model.run import Level, Status
from twinbed.model.topology import Link, Topology
from twinbed.study.study import FORMAT

KIND = IMPORTED
"""The kind of the workload and of testbeds that were measured elsewhere."""
PHASE = "import"
"""The phase that a run fails in none of whose files can be read."""
REFERENCES = ("physical", "host", "native", "bare-metal", "baremetal", "real")
_UNSAFE = re.compile(r"[^A-Za-z0-9._+=@,-]")


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """The settings of a whole import."""

    name: str
    reference: str | None = None
    testbeds: Sequence[str] = ()
    """Their order, where it is given."""
    margin: float = 0.1
    confidence: float = 0.95
    link: LinkFacts = field(default_factory=LinkFacts)
    described: Mapping[str, Described] = field(default_factory=dict)
    command: str = ""
    source: str = ""
    """The manifest's text; empty where the command is enough."""
    plugins: Mapping[str, str] = field(default_factory=dict)
    """Format of a package, as ``formats.NAME`` -> the package and its version."""

    def reference_of(self, testbeds: Sequence[str]) -> tuple[str, str]:
        """Return the reference, and by which rule."""
        if self.reference is not None:
            return self.reference, "given"
        named = {name.lower(): name for name in testbeds}
        for name in REFERENCES:
            if name in named:
                return named[name], f"named {name}"
        # As host_none among docker_nat and docker_weave.
        begun = [testbed for testbed in testbeds if any(re.match(f"{name}[^a-z0-9]", testbed.lower()) for name in REFERENCES)]
        if len(begun) == 1:
            return begun[0], "the only testbed with such a name"
        return testbeds[0], "the first testbed"

    def topology(self, testbed: str, levels: Mapping[str, Level]) -> Topology:
        own = self.described.get(testbed)
        link = own.link if own is not None and own.link is not None else self.link
        pairs = levels.get("pairs")
        count = pairs if isinstance(pairs, int) and not isinstance(pairs, bool) and 1 <= pairs <= 80 else 1
        return Topology(pairs=count, link=Link(rate=link.rate, mtu=link.mtu))


def artifact(host: str, path: str, taken: Iterable[str]) -> str:
    """Return the place of a file below a run's folder: a name that is safe everywhere, and not taken."""
    base = _UNSAFE.sub("_", path.rpartition("/")[2])[-120:].lstrip(".") or "file"
    folder = f"artifacts/{_UNSAFE.sub('_', host)[:60].lstrip('.') or KIND}"
    used = set(taken)
    names = (f"{folder}/{base}", *(f"{folder}/{number}-{base}" for number in range(2, len(used) + 3)))
    return next(name for name in names if name not in used)


def record(run: Made, importing: ImportSettings, places: Mapping[str, str], position: int, block: int) -> Record:
    """Return a run's record. ``places`` maps a file's path to its place below the run's folder."""
    metrics = {own.name: own.model_dump(mode="json") for candidate, _ in run.files for own in candidate.file_key.metrics}
    levels: dict[str, Level] = {"testbed": run.testbed, **run.levels}
    settings: Settings = {
        "levels": levels,
        "testbed": {"name": run.testbed, "kind": KIND},
        "topology": importing.topology(run.testbed, run.levels).model_dump(mode="json"),
        "workload": {
            "kind": KIND,
            "files": [
                {
                    "path": places[candidate.scanned.path].removeprefix("artifacts/"),
                    "then": [places[below.path].removeprefix("artifacts/") for below in candidate.scanned.then],
                    "format": candidate.scanned.format,
                    "piece": piece,
                    "host": candidate.file_key.host,
                    "options": dict(candidate.file_key.options),
                    **({"prefix": candidate.scanned.prefix} if candidate.scanned.prefix else {}),
                }
                for candidate, piece in run.files
            ],
            "metrics": list(metrics.values()),
        },
        "instruments": {},
    }
    scanned = {file.path: file for candidate in run.candidates() for file in (candidate.scanned, *candidate.scanned.then)}
    cautions = [
        Caution(Kind.UNREADABLE, f"{shown(candidate.scanned.path)}: {candidate.scanned.reason}", run.id)
        for candidate in run.refused
        if run.files
    ]
    cautions += [Caution(Kind.CONTRADICTED, shown(text), run.id) for text in run.cautions]
    cautions += [Caution(Kind.MISNAMED, shown(text), run.id) for text in run.misnamed]
    return Record(
        id=run.id,
        cell=run.cell,
        levels=levels,
        replicate=run.replicate,
        block=block,
        position=position,
        settings=settings,
        status=Status.FAILED if run.reason else Status.COMPLETE,
        started_s=run.started_s,
        phases={},
        failed_phase=PHASE if run.reason else None,
        reason=run.reason,
        cautions=tuple(cautions),
        artifacts=[
            {
                "path": place,
                "bytes": scanned[path].bytes,
                "sha256": scanned[path].sha256,
                "source": shown(path),
            }
            for path, place in places.items()
        ],
        twinbed=twinbed.__version__,
        lab="",
        plugins={
            f"formats.{name}": importing.plugins[f"formats.{name}"]
            for name in dict.fromkeys(candidate.scanned.format for candidate, _ in run.files)
            if f"formats.{name}" in importing.plugins
        },
    )


def passport(run: Made, settings: ImportSettings) -> dict[str, dict[str, Json]]:
    """Return the facts that files have of each host, and known facts of the testbed."""
    facts_of: dict[str, dict[str, Json]] = defaultdict(dict)
    for candidate, piece in run.files:
        place = facts_of[candidate.file_key.host or KIND]
        for fact, value in candidate.scanned.pieces[piece].facts.items():
            # Where two files of a host disagree, both facts are kept.
            place[fact if place.get(fact, value) == value else f"{fact} ({candidate.scanned.format})"] = value
        if candidate.file_key.facts:
            facts_of["layout"] = dict(candidate.file_key.facts)
    described = settings.described.get(run.testbed)
    if described is not None and described.facts:
        facts_of["described"] = dict(described.facts)
    return dict(facts_of)


def order(runs: Sequence[Made], before: Sequence[Record]) -> dict[str, tuple[int, int]]:
    """Return run -> position and block, after those that were there before, in order of their starts.

    A block has one run of each cell, as far as there are any.
    """
    counts = Counter(earlier.cell for earlier in before)
    after = max((earlier.position for earlier in before), default=-1) + 1
    places: dict[str, tuple[int, int]] = {}
    for position, run in enumerate(sorted(runs, key=lambda other: (other.started_s, other.id)), start=after):
        places[run.id] = (position, counts[run.cell])
        counts[run.cell] += 1
    return places


def study(settings: ImportSettings, records: Sequence[Record], before: Document, files: Document) -> dict[str, Json]:
    """Return ``study.json`` for all runs. ``before`` is the one that exists; ``files`` counts and names files not read."""
    named = [str(record.settings["testbed"]["name"]) for record in records]
    given = [*settings.testbeds, *object_at(before, "testbeds")]
    testbeds = list(dict.fromkeys([*(name for name in given if name in named), *named]))
    kept = text_at(before, "reference") if settings.reference is None and not settings.testbeds else None
    reference, reason = (kept, text_at(before, "reference_reason")) if kept in testbeds else settings.reference_of(testbeds)
    levels: dict[str, dict[str, Level]] = {"testbed": {json.dumps(name): name for name in testbeds}}
    for run in records:
        for name, level in run.levels.items():
            levels.setdefault(name, {})[json.dumps(level)] = level
    commands = list(dict.fromkeys([*map(str, list_at(before, "commands")), settings.command]))
    return {
        "format": FORMAT,
        "study": settings.name,
        "profile": None,
        "testbeds": {name: [{"kind": KIND}] for name in testbeds},
        "reference": reference,
        "reference_reason": reason,
        "factors": {name: testbeds if name == "testbed" else _sorted(values.values()) for name, values in levels.items()},
        "exclude": [],
        "replicates": max(Counter(record.cell for record in records).values()),
        "order": "as measured",
        "seed": None,
        "margin": settings.margin,
        "confidence": settings.confidence,
        "tables": [],
        "filename": "",
        "overrides": [],
        "source": settings.source or "\n".join(commands),
        "commands": commands,
        "import": dict(files),
        "runs": [
            {
                "id": run.id,
                "cell": run.cell,
                "levels": dict(run.levels),
                "replicate": run.replicate,
                "block": run.block,
                "position": run.position,
            }
            for run in sorted(records, key=lambda run: run.position)
        ],
    }


def _sorted(levels: Iterable[Level]) -> list[Level]:
    return in_order(list(levels))
