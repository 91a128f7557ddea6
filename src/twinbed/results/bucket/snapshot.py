"""What results in a bucket are made of: files of the study, the planned runs, and batches of runs with their tables.

Each batch has runs of its own. Small ones are put together as results grow (``publish``), so that there are few.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.model.json import document, documents, integer, text
from twinbed.results.bucket.objects import BucketError, Objects, Stored, stored_all

FORMAT = 1
_FOLDER = "snapshots"


@dataclass(frozen=True, slots=True)
class Batch:
    """Some runs: their records, and the rows of every table that are theirs."""

    runs: int
    catalogue: Stored
    tables: Mapping[str, Sequence[Stored]]

    def to_json(self) -> dict[str, object]:
        tables = {name: [each.to_json() for each in of_name] for name, of_name in sorted(self.tables.items())}
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
        """Make these the results there, all at once; False where another has put a snapshot of this number before."""
        content = {
            "format": FORMAT,
            "twinbed": self.twinbed,
            "files": {name: each.to_json() for name, each in sorted(self.files.items())},
            "planned": self.planned and self.planned.to_json(),
            "batches": [batch.to_json() for batch in self.batches],
        }
        return objects.create(f"{_FOLDER}/{self.number:010}.json", f"{json.dumps(content, indent=1)}\n".encode())


def latest(objects: Objects) -> Snapshot | None:
    """The results as they are; None where nothing was published. Raises BucketError where they cannot be read."""
    names = [name for name in objects.names(_FOLDER) if re.fullmatch(rf"{_FOLDER}/\d{{10}}\.json", name)]
    if not names:
        return None
    name = names[-1]
    try:
        data = document(json.loads(bytes(objects.read(name))))
        if data["format"] != FORMAT:
            raise ValueError(f"it has format {data['format']!r}, this twinbed reads {FORMAT}")
        return Snapshot(
            number=int(name[-15:-5]),
            twinbed=text(data["twinbed"]),
            files={each: Stored.from_json(document(of)) for each, of in document(data["files"]).items()},
            planned=None if data["planned"] is None else Stored.from_json(document(data["planned"])),
            batches=tuple(
                Batch(
                    integer(each["runs"]),
                    Stored.from_json(document(each["catalogue"])),
                    stored_all({table: documents(of) for table, of in document(each["tables"]).items()}),
                )
                for each in documents(data["batches"])
            ),
        )
    except (ValueError, LookupError, TypeError, RecursionError, FileNotFoundError) as error:
        raise BucketError(
            f"{objects.address}: {name} cannot be read: {error}",
            advice="it is not all there, or of another version: remove it to have the snapshot before it",
        ) from error
