"""Sources of results: a folder, or a published snapshot. Analyses know neither; they get a Store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from twinbed.model.caution import Caution, Kind
from twinbed.model.columns import PlannedRuns, Records
from twinbed.model.json import WRONG, document, parsed, why
from twinbed.model.record import Record
from twinbed.results import listed
from twinbed.tree import NotPlain, Tree

if TYPE_CHECKING:
    import pyarrow as pa


class Catalogue(NamedTuple):
    """The existing runs. ``digests`` gives the hash of each ``run.json`` by the run's identity."""

    records: Records
    digests: Callable[[], Mapping[str, str]]
    cautions: list[Caution]


class Source(Protocol):
    """Names are those of a results folder: ``study.json``, ``links/<cell>.json``."""

    def read(self, name: str) -> bytes:
        """Return a file of the study. Raises FileNotFoundError if there is none."""
        ...

    def link_checks(self) -> Sequence[str]:
        """Return the names of the files with measurements of links, sorted."""
        ...

    def catalogue(self) -> Catalogue: ...

    def planned(self) -> PlannedRuns | None:
        """Return the planned runs of the study; None if study.json lists them."""
        ...

    def tables(self) -> Sequence[str]:
        """Return the names of the existing tables, sorted."""
        ...

    def parts(self, table: str) -> Iterable[tuple[str, pa.NativeFile | BinaryIO]]:
        """Return the Parquet files of a table, each with the name of its part; none without such a table. Raises PartBroken if
        one is lost or was changed."""
        ...


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A results folder, which may be a stranger's."""

    tree: Tree

    def read(self, name: str) -> bytes:
        return self.tree.read(name)

    def link_checks(self) -> Sequence[str]:
        return [f"links/{name}" for name in self.tree.entries("links") if _is_named(name, "", ".json")]

    def planned(self) -> PlannedRuns | None:
        return None

    def tables(self) -> Sequence[str]:
        """Return the tables; a link is listed too, so that reading it reports the link."""
        return [name for name, kind in self.tree.entries("tables").items() if kind in ("folder", "symbolic link")]

    def parts(self, table: str) -> Iterator[tuple[str, BinaryIO]]:
        """Yield the parts that are listed by a file of the same name under ``tables/runs``, which is written last."""
        if self.tree.kind("tables") is not None:
            with self.tree.inside("tables") as tables:
                yield from listed.files(tables, table)

    def catalogue(self) -> Catalogue:
        """Return the runs; one that cannot be read is left out, with a caution."""
        records: list[Record] = []
        digests: dict[str, str] = {}
        cautions: list[Caution] = []
        runs = self.tree.entries("runs")
        with self.tree.inside("runs") if runs else nullcontext(self.tree) as folder:
            for name, kind in runs.items():
                if name.startswith(".") or kind == "file":
                    continue
                try:
                    text = folder.read(f"{name}/run.json")
                    record = Record.from_json(document(parsed(text)))
                except FileNotFoundError:
                    continue
                except (NotPlain, OSError) as error:
                    problem = f"runs/{name}/run.json: {type(error).__name__}: {without(error, folder.path / name / 'run.json')}"
                    cautions.append(Caution(Kind.UNREADABLE, f"{problem}; this run is left out", name))
                    continue
                except WRONG as error:
                    problem = f"runs/{name}/run.json: {why(error)}"
                    cautions.append(Caution(Kind.UNREADABLE, f"{problem}; this run is left out", name))
                    continue
                if record.id != name:
                    problem = f"runs/{name}/run.json has the id {record.id}"
                    cautions.append(Caution(Kind.UNREADABLE, f"{problem}; this run is left out", name))
                    continue
                records.append(record)
                digests[name] = hashlib.blake2b(text, digest_size=16).hexdigest()
        return Catalogue(Records.of(records), lambda: digests, cautions)


def without(error: Exception, file: Path | str) -> str:
    """Return the text of an error without the file's name."""
    if isinstance(error, NotPlain):
        return error.strerror
    return str(error).removesuffix(f": {str(file)!r}")


def _is_named(name: str, begin: str, end: str) -> bool:
    return name.startswith(begin) and name.endswith(end) and not name.startswith(".")
