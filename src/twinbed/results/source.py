"""Where results are read from: a folder, or what was published. Analyses know neither, they are given a Store."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from twinbed.model.caution import Caution, Kind
from twinbed.model.columns import PlannedRuns, Records
from twinbed.model.record import Record

if TYPE_CHECKING:
    import pyarrow as pa


class Catalogue(NamedTuple):
    """The runs that there are. ``digests`` gives the hash of each one's ``run.json`` by its identity."""

    records: Records
    digests: Callable[[], Mapping[str, str]]
    cautions: list[Caution]


class Source(Protocol):
    """Names are those of a results folder: ``study.json``, ``links/<cell>.json``."""

    def read(self, name: str) -> bytes:
        """A file of the study. Raises FileNotFoundError where there is none."""
        ...

    def link_checks(self) -> Sequence[str]:
        """Names of the files that say what was measured of links, sorted."""
        ...

    def catalogue(self) -> Catalogue: ...

    def planned(self) -> PlannedRuns | None:
        """The runs that the study asks for; None where study.json lists them."""
        ...

    def tables(self) -> Sequence[str]:
        """Names of the tables that there are, sorted."""
        ...

    def parts(self, table: str) -> Sequence[Path | pa.NativeFile | BinaryIO]:
        """Parquet files that together are a table; none where there is no such table."""
        ...


class FolderSource(NamedTuple):
    """A results folder, which may be a stranger's."""

    path: Path

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def link_checks(self) -> Sequence[str]:
        return sorted(f"links/{file.name}" for file in (self.path / "links").glob("*.json"))

    def planned(self) -> PlannedRuns | None:
        return None

    def tables(self) -> Sequence[str]:
        folder = self.path / "tables"
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []

    def parts(self, table: str) -> Sequence[Path]:
        """A part counts only when it is listed by the file of the same name under ``tables/runs``, which is written last."""
        committed = sorted(file.name for file in (self.path / "tables" / "runs").glob("part-*.parquet"))
        files = [self.path / "tables" / table / name for name in committed]
        return [file for file in files if file.is_file()]

    def catalogue(self) -> Catalogue:
        """A run that cannot be read is left out, with a caution."""
        records: list[Record] = []
        digests: dict[str, str] = {}
        cautions: list[Caution] = []
        root = f"{self.path}/runs"
        for name in sorted(os.listdir(root)) if (self.path / "runs").is_dir() else ():  # noqa: PTH208 -- a Path for each of 10,000 costs more than reading it
            if name.startswith("."):
                continue
            file = f"{root}/{name}/run.json"
            try:
                with open(file, "rb", opener=_plainly) as stream:
                    text = stream.read()
                record = Record.from_json(json.loads(text))
                str(record.settings["testbed"]["name"])
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                problem = f"runs/{name}/run.json: {type(error).__name__}: {without(error, file)}"
                cautions.append(Caution(Kind.UNREADABLE, f"{problem}; this run is left out", name))
                continue
            if record.id != name:
                problem = f"runs/{name}/run.json says it is run {record.id}"
                cautions.append(Caution(Kind.UNREADABLE, f"{problem}; this run is left out", name))
                continue
            records.append(record)
            digests[name] = hashlib.blake2b(text, digest_size=16).hexdigest()
        return Catalogue(Records.of(records), lambda: digests, cautions)


def without(error: Exception, file: Path | str) -> str:
    """What an error says, but for the file's name."""
    return str(error).removesuffix(f": {str(file)!r}")


def _plainly(file: str, flags: int) -> int:
    """Opens what may be a stranger's: no link is followed, no named pipe waited for."""
    return os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
