"""The parts of results in a bucket: files of the study, the planned runs, and batches of runs with their tables.

Each batch has runs of its own. Small ones are combined as results grow (``publish``), so that there are few.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.model.json import document, documents, integer, loads, text
from twinbed.results.bucket.objects import BucketError, Objects, Stored, stored_all

FORMAT = 1
MOST_BYTES = 16 * 2**20
"""The most bytes of a snapshot, and of a file of the study: as JSON in memory either takes at most twenty times as much."""
MOST_FILES = 100_000
MOST_BATCHES = 1000
"""n runs are in log2(n) + 1 batches; millions of runs in n / 262,144."""
MOST_OBJECTS = 100_000
"""The most objects of all tables together."""
MOST_RUNS = 2**27
_FOLDER = "snapshots"
_FILE = re.compile(r"(study\.json|study\.yaml|looks\.json|fleet\.json|links/[^/]+)")


@dataclass(frozen=True, slots=True)
class Batch:
    """Some runs: their records, and their rows of every table."""

    runs: int
    catalogue: Stored
    tables: Mapping[str, Sequence[Stored]]

    def to_json(self) -> dict[str, object]:
        tables = {name: [stored.to_json() for stored in of_name] for name, of_name in sorted(self.tables.items())}
        return {"runs": self.runs, "catalogue": self.catalogue.to_json(), "tables": tables}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Results as they were at one time. ``files`` maps a name, such as study.json, to its content."""

    number: int
    twinbed: str
    files: Mapping[str, Stored]
    planned: Stored | None
    batches: Sequence[Batch]

    @property
    def runs(self) -> int:
        return sum(batch.runs for batch in self.batches)

    def put(self, objects: Objects) -> bool:
        """Make these the results there, all at once; False if another has put a snapshot of this number. Raises BucketError if
        they exceed what would be read."""
        content = {
            "format": FORMAT,
            "twinbed": self.twinbed,
            "files": {name: stored.to_json() for name, stored in sorted(self.files.items())},
            "planned": self.planned and self.planned.to_json(),
            "batches": [batch.to_json() for batch in self.batches],
        }
        where = objects.address
        written = f"{json.dumps(content, indent=1)}\n".encode()
        try:
            _refuse_strange(self)
            if len(written) > MOST_BYTES:
                raise ValueError(f"it has {len(written):,} bytes; at most {MOST_BYTES:,} are read")
        except ValueError as error:
            raise BucketError(f"{where}: no snapshot was put: {error}", advice="publish fewer runs to one prefix") from error
        return objects.create(f"{_FOLDER}/{self.number:010}.json", written)


def latest(objects: Objects) -> Snapshot | None:
    """Return the present results; None if nothing was published. Raises BucketError if they cannot be read."""
    names = [name for name in objects.names(_FOLDER) if re.fullmatch(rf"{_FOLDER}/\d{{10}}\.json", name)]
    if not names:
        return None
    name = names[-1]
    try:
        data = document(loads(bytes(objects.read(name, MOST_BYTES))))
        if data["format"] != FORMAT:
            raise ValueError(f"it has format {data['format']!r}, this twinbed reads {FORMAT}")
        snapshot = Snapshot(
            number=int(name[-15:-5]),
            twinbed=text(data["twinbed"]),
            files={name: Stored.from_json(document(of)) for name, of in document(data["files"]).items()},
            planned=None if data["planned"] is None else Stored.from_json(document(data["planned"])),
            batches=tuple(
                Batch(
                    integer(batch["runs"]),
                    Stored.from_json(document(batch["catalogue"])),
                    stored_all({table: documents(of) for table, of in document(batch["tables"]).items()}),
                )
                for batch in documents(data["batches"])
            ),
        )
        _refuse_strange(snapshot)
        return snapshot
    except (ValueError, LookupError, TypeError, RecursionError, FileNotFoundError) as error:
        raise BucketError(
            f"{objects.address}: {name} cannot be read: {error}",
            advice="it is incomplete, or from another version: remove it to use the previous snapshot",
        ) from error


def _refuse_strange(snapshot: Snapshot) -> None:
    """Raise ValueError for what no publisher writes: an object listed twice would count twice."""
    batches = snapshot.batches
    objects = sum(len(of_name) for batch in batches for of_name in batch.tables.values())
    for what, number, most in (
        ("files", len(snapshot.files), MOST_FILES),
        ("batches", len(batches), MOST_BATCHES),
        ("objects", objects, MOST_OBJECTS),
        ("runs", snapshot.runs, MOST_RUNS),
    ):
        if number > most:
            raise ValueError(f"it lists {number:,} {what}; at most {most:,} are read")
    for name, file in snapshot.files.items():
        if _FILE.fullmatch(name) is None:
            raise ValueError(f"it lists {name!r:.80}, which is not a file of results")
        if file.bytes > MOST_BYTES:
            raise ValueError(f"it lists {name} with {file.bytes:,} bytes; at most {MOST_BYTES:,} are read")
    seen: set[str] = set()
    for number, batch in enumerate(batches, start=1):
        if batch.runs < 0:
            raise ValueError(f"its batch {number} has {batch.runs} runs")
        if batch.catalogue.name in seen:
            raise ValueError(f"its batch {number} is listed twice")
        seen.add(batch.catalogue.name)
