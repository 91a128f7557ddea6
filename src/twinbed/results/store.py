"""Opens a results folder: the study's outline, planned runs, run records, and the extracted tables.

Knows no plugin.  Reads ``study.json``, ``looks.json``, ``study.yaml``, ``links/<cell>.json``, ``runs/<id>/run.json`` and
``tables/<name>/part-<id>.parquet``; writes nothing.  A part counts only when it is listed by the file of the same name under
``tables/runs``, which is written last.
A folder below ``runs`` without a ``run.json``, or with a name that starts with a dot, is a run that never finished.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, cast

from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.interim import FILE as INTERIM_FILE
from twinbed.model.interim import InterimAnalyses
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.record import Record
from twinbed.model.tables import Outline, Planned, StudyDocument

if TYPE_CHECKING:
    import pyarrow as pa


FROZEN = "frozen.json"
"""A file in results whose artifacts were left out of an archive: their tables are not to be made anew."""
_KINDS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("study", "reference", "source"), (str,)),
    "testbeds": (dict, list),
    "factors": (dict,),
    "runs": (list,),
}
"""What there may be in study.json, of what is read here."""


class StoreError(TwinbedError):
    """The folder cannot be read as results."""


@dataclass(frozen=True)
class Store:
    """An opened results folder. ``digests`` maps a run's id to the hash of its ``run.json``."""

    path: Path
    shown: Path
    """As the user knows it: where it was unpacked from an archive, the archive."""
    outline: Outline
    planned: tuple[Planned, ...]
    records: tuple[Record, ...]
    digests: Mapping[str, str]
    cautions: tuple[Caution, ...]
    link_checks: tuple[LinkCheck, ...] = ()
    other_settings: int = 0
    """Runs in the folder that ``records`` leaves out: the study as it stands does not ask for them."""

    @classmethod
    def open(cls, path: Path, shown: Path | None = None) -> Store:
        """``shown`` is the archive that ``path`` was unpacked from, if it was, for messages to name.

        Raises StoreError where ``path`` is not a results folder or its study.json cannot be read.
        """
        runs = path / "runs"
        shown = shown or path
        if path.is_file():
            raise StoreError(f"{path} is no archive, or not all of one", advice="get it again, or give a results folder")
        if not path.is_dir():
            raise StoreError(f"{path}: no such folder", advice="give the results folder that `twinbed run` named")
        if not any(runs.glob("*")) and not (path / "study.json").is_file():
            raise StoreError(
                f"{shown} has no runs and no study.json: it is not a results folder",
                advice="give the results folder that `twinbed run` named",
            )
        study = _study(path, shown)
        records, digests, cautions = _records(runs)
        link_checks = _link_checks(path / "links", cautions)
        return cls(
            path=path,
            shown=shown,
            outline=_outline(path, shown, study, records),
            planned=tuple(_planned(path, shown, study)),
            records=tuple(sorted(records, key=lambda record: (record.position, record.id))),
            digests=digests,
            cautions=tuple(cautions),
            link_checks=link_checks,
        )

    @property
    def frozen(self) -> bool:
        """Whether the tables are to be taken as they are, since what they were made from is not there."""
        return (self.path / FROZEN).is_file()

    def parts(self) -> tuple[str, ...]:
        """File names of the committed parts."""
        return tuple(sorted(file.name for file in (self.path / "tables" / "runs").glob("part-*.parquet")))

    def names(self) -> tuple[str, ...]:
        """Names of the tables that there are."""
        folder = self.path / "tables"
        return tuple(sorted(entry.name for entry in folder.iterdir() if entry.is_dir())) if folder.is_dir() else ()

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """All committed parts of a table, one below the other; an empty table without columns where there are none."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        files = [self.path / "tables" / name / part for part in self.parts()]
        try:
            parts = [pq.ParquetFile(file).read(columns=columns) for file in files if file.is_file()]
            return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})
        except (OSError, pa.ArrowException) as error:
            raise StoreError(
                f"the table {name} of {self.shown} cannot be read: {self.named(error)}",
                advice=_mend(
                    self.path, self.shown, f"tables are derived: delete {self.path / 'tables'} and run the command again"
                ),
            ) from error

    def named(self, error: Exception) -> str:
        """What an error says, files named from the folder on."""
        return str(error).replace(f"{self.path}/", "")

    def as_it_stands(self) -> Store:
        """The results without the runs that the study no longer asks for, since settings or replicates were changed after they
        were made. Results that name no planned runs are left as they are."""
        return self.of_runs({run.id for run in self.planned}) if self.planned else self

    def of_runs(self, ids: Container[str]) -> Store:
        """The results with these runs only; testbeds that no run or plan names any more go too."""
        records = tuple(record for record in self.records if record.id in ids)
        left_out = len(self.records) - len(records)
        if not left_out:
            return self
        asked = {str(run.levels["testbed"]) for run in self.planned if "testbed" in run.levels}
        asked |= {testbed_of(record) for record in records}
        cells = {*(run.cell for run in self.planned), *(record.cell for record in records)}
        testbeds = tuple(name for name in self.outline.testbeds if name in asked) or self.outline.testbeds
        return replace(
            self,
            records=records,
            outline=replace(self.outline, testbeds=testbeds),
            link_checks=tuple(check for check in self.link_checks if check.cell in cells),
            other_settings=self.other_settings + left_out,
        )

    def missing(self) -> tuple[Planned, ...]:
        """Planned runs that have no record."""
        made = {record.id for record in self.records}
        return tuple(run for run in self.planned if run.id not in made)


def _mend(path: Path, shown: Path, text: str) -> str:
    """The advice for a folder; what was unpacked from an archive is not the reader's to mend."""
    return text if path == shown else "get the archive again, or have the results archived anew"


def _study(path: Path, shown: Path) -> StudyDocument:
    file = shown / "study.json"
    advice = _mend(path, shown, "`twinbed run` writes it anew from the study file")
    try:
        data = json.loads((path / "study.json").read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{file} cannot be read: {error}", advice=advice) from error
    if not isinstance(data, dict):
        raise StoreError(f"{file} is not a study: a JSON object is wanted", advice=advice)
    for name, kinds in _KINDS.items():
        if not isinstance(data.get(name), (*kinds, NoneType)):
            raise StoreError(f"{file} is not a study: its {name} is {data[name]!r:.60}", advice=advice)
    return cast(StudyDocument, data)


def _outline(path: Path, shown: Path, study: StudyDocument, records: Sequence[Record]) -> Outline:
    factors = study.get("factors")
    testbeds = list(study.get("testbeds") or (factors.get("testbed") if isinstance(factors, dict) else None) or ())
    testbeds += sorted({testbed_of(record) for record in records} - set(testbeds))
    source = study.get("source") or ""
    if (path / "study.yaml").is_file():
        source = (path / "study.yaml").read_text(encoding="utf-8", errors="replace")
    defaults = Outline("", (), None)
    return Outline(
        name=study.get("study") or path.name,
        testbeds=tuple(testbeds),
        reference=study.get("reference") or (testbeds[0] if testbeds else None),
        margin=_number(study.get("margin"), defaults.margin),
        confidence=_number(study.get("confidence"), defaults.confidence),
        seed=study.get("seed"),
        source=source,
        data=study,
        interim=_interim(path, shown, study),
    )


def _interim(path: Path, shown: Path, study: StudyDocument) -> InterimAnalyses | None:
    """The interim analyses of a study that goes on until it is decided."""
    until = study.get("replicates")
    if not isinstance(until, dict):
        return None
    file = path / INTERIM_FILE
    try:
        return (
            InterimAnalyses.from_json(json.loads(file.read_bytes()))
            if file.is_file()
            else InterimAnalyses(until["least"], until["most"])
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{shown / INTERIM_FILE} cannot be read: {error}",
            advice=_mend(path, shown, "delete it; `twinbed run` takes the looks again"),
        ) from error


def _number(value: object, default: float) -> float:
    return float(value) if isinstance(value, int | float) else default


def testbed_of(record: Record) -> str:
    """The name of a run's testbed, whether or not it is a factor of the study."""
    return str(record.settings["testbed"]["name"])


def _planned(path: Path, shown: Path, study: StudyDocument) -> Iterator[Planned]:
    try:
        for run in study.get("runs") or ():
            yield Planned(run["id"], run["cell"], run["levels"], run["replicate"], run["block"], run["position"])
    except (KeyError, TypeError) as error:
        raise StoreError(
            f"{shown / 'study.json'} lists a run that lacks something: {error}",
            advice=_mend(path, shown, "`twinbed run` writes it anew"),
        ) from error


def _link_checks(folder: Path, cautions: list[Caution]) -> tuple[LinkCheck, ...]:
    """One that cannot be read is left out, with a caution, which names it from the results on: wherever they lie, their page is
    the same."""
    checks = []
    for file in sorted(folder.glob("*.json")):
        try:
            checks.append(LinkCheck.from_json(json.loads(file.read_bytes())))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            problem = f"{folder.name}/{file.name}: {type(error).__name__}: {_without(error, file)}"
            cautions.append(Caution(Kind.UNREADABLE, f"{problem}; this link check is left out"))
    return tuple(checks)


def _without(error: Exception, file: Path | str) -> str:
    """What an error says, but for the file's name."""
    return str(error).removesuffix(f": {str(file)!r}")


def _plainly(file: str, flags: int) -> int:
    """Opens what may be a stranger's: no link is followed, no named pipe waited for."""
    return os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _records(runs: Path) -> tuple[list[Record], dict[str, str], list[Caution]]:
    records: list[Record] = []
    digests: dict[str, str] = {}
    cautions: list[Caution] = []
    root = str(runs)
    for name in sorted(os.listdir(root)) if runs.is_dir() else ():  # noqa: PTH208 -- a Path for each of 10,000 costs more than reading it
        if name.startswith("."):
            continue
        file = f"{root}/{name}/run.json"
        try:
            with open(file, "rb", opener=_plainly) as stream:
                text = stream.read()
            record = Record.from_json(json.loads(text))
            testbed_of(record)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            problem = f"runs/{name}/run.json: {type(error).__name__}: {_without(error, file)}"
            cautions.append(Caution(Kind.UNREADABLE, f"{problem}; this run is left out", name))
            continue
        if record.id != name:
            problem = f"runs/{name}/run.json says it is run {record.id}"
            cautions.append(Caution(Kind.UNREADABLE, f"{problem}; this run is left out", name))
            continue
        records.append(record)
        digests[name] = hashlib.blake2b(text, digest_size=16).hexdigest()
    return records, digests, cautions
