"""Opens results, from a folder or published: the study's outline, planned runs, run records, and the extracted tables.

It knows no plugin, and writes nothing.  In a folder it reads ``study.json``, ``looks.json``, ``study.yaml``,
``links/<cell>.json``, ``runs/<id>/run.json`` and ``tables/<name>/part-<id>.parquet``.  A folder below ``runs`` without a
``run.json``, or with a name that starts with a dot, is a run that never finished.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.model.caution import Caution, Kind
from twinbed.model.columns import PlannedRuns, Records, testbed_named
from twinbed.model.error import TwinbedError
from twinbed.model.interim import FILE as INTERIM_FILE
from twinbed.model.interim import InterimAnalyses
from twinbed.model.json import WRONG, document, integer, named, parsed, text, value_of, why
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.record import IMPORTED, Record
from twinbed.model.tables import Outline, Planned, StudyDocument, study_document
from twinbed.results.bucket.address import Address, address_of
from twinbed.results.listed import RUNS, PartBroken
from twinbed.results.parquet import Room
from twinbed.results.schema import WrongTable, check, check_distinct
from twinbed.results.source import FolderSource, Source, without
from twinbed.tree import NotPlain, Tree

if TYPE_CHECKING:
    import pyarrow as pa

_LOG = logging.getLogger(__name__)
_FEW_ROWS = 10_000
"""Starting threads takes longer than reading so few rows."""

FLEET = "fleet.json"
"""A file of results that a fleet made: its members, and those left out."""
FROZEN = "frozen.json"
"""A file in results archived without artifacts: their tables cannot be made again."""


class StoreError(TwinbedError):
    """The folder cannot be read as results."""


@dataclass(frozen=True)
class Store:
    """An opened results folder."""

    path: Path
    """The folder, or the address of published results."""
    shown: Path
    """The path as the user knows it: the archive, if it was unpacked from one."""
    source: Source
    outline: Outline
    planned: Sequence[Planned]
    records: Sequence[Record]
    """In the order of the plan."""
    digests_of: Callable[[], Mapping[str, str]]
    cautions: tuple[Caution, ...]
    link_checks: tuple[LinkCheck, ...] = ()
    other_settings: int = 0
    """Runs in the folder that are not in ``records``: the present study does not ask for them."""
    make_again: Callable[[str], None] | None = None
    """Makes a part of the tables again from artifacts; None if that is impossible."""

    @classmethod
    def open(cls, path: Path, shown: Path | None = None) -> Store:
        """Open ``path``, a folder or the address of published results. ``shown`` is the archive that it was unpacked from, if
        any, for messages. Raises StoreError if ``path`` is not a results folder or its study.json cannot be read."""
        if address := address_of(path):
            path = shown = address
            source = _published(address)
        else:
            shown = shown or path
            source = _folder(path, shown)
        study = _study(source, path, shown)
        records, digests, cautions = source.catalogue()
        link_checks = _link_checks(source, path, cautions)
        cautions += _left_out(source, records)
        return cls(
            path=path,
            shown=shown,
            source=source,
            outline=_outline(source, path, shown, study, records),
            planned=source.planned() or _planned(study),
            records=records.in_order(),
            digests_of=digests,
            cautions=tuple(cautions),
            link_checks=link_checks,
        )

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """Return run -> the hash of its ``run.json``."""
        return self.digests_of()

    @cached_property
    def _imported(self) -> bool:
        """Return whether any run was measured elsewhere, by a program that may know less than twinbed's own."""
        return any(settings["testbed"].get("kind") == IMPORTED for settings in Records.of(self.records).settings.distinct())

    @property
    def published(self) -> bool:
        """Return whether results are published: they have tables, but no artifacts to read."""
        return isinstance(self.path, Address)

    @property
    def frozen(self) -> bool:
        """Return whether the tables cannot be made again, since their artifacts are missing."""
        return self.published or self.tree.kind(FROZEN) is not None

    @property
    def tree(self) -> Tree:
        """Return the folder, to read or write a file in it."""
        return Tree(self.path)

    def names(self) -> tuple[str, ...]:
        """Return the names of the existing tables."""
        return tuple(self.source.tables())

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all committed parts of a table, one below the other; an empty table without columns if there are none. A part
        that is lost, changed or not as its readers expect is made again from the artifacts. Raises StoreError, which names the
        part and the column, if there are no artifacts, or that does not help."""
        import pyarrow as pa

        try:
            parts = self._repaired(name, columns)
            whole = pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})
            if name == RUNS:
                check_distinct(whole)
        except (pa.ArrowException, WrongTable) as error:
            raise self.broken(PartBroken(name, self.named(error))) from error
        _LOG.info("read the table %s of %s: %s rows", name, self.shown, f"{whole.num_rows:,}")
        return whole

    def parts(self, name: str) -> Iterator[pa.Table]:
        """Yield the parts of a table, one in memory at a time. Raises as ``table``."""
        self._repaired(name, ["run"])
        try:
            yield from self._parts(name, None)
        except PartBroken as error:
            raise self.broken(error) from error

    def _repaired(self, name: str, columns: Sequence[str] | None) -> list[pa.Table]:
        try:
            return list(self._parts(name, columns))
        except PartBroken as error:
            if self.make_again is None or not error.part:
                raise self.broken(error) from error
            _LOG.info("%s: %s: it is made again", self.shown, error)
            self.make_again(error.part)
        try:
            return list(self._parts(name, columns))
        except PartBroken as error:
            raise self.broken(error) from error

    def _parts(self, name: str, columns: Sequence[str] | None) -> Iterator[pa.Table]:
        import pyarrow as pa

        room = Room()
        for part, file in self.source.parts(name):
            path = part if self.published else f"{name}/{part}"
            try:
                parquet = room.opened(file, columns)
                present = parquet.schema_arrow.names
                table = parquet.read(
                    columns=None if columns is None else [column for column in columns if column in present],
                    use_threads=parquet.metadata.num_rows > _FEW_ROWS,
                )
                table.validate(full=True)
                check(name, table, columns, imported=self._imported)
            except (OSError, pa.ArrowException) as error:
                raise PartBroken(path, f"cannot be read: {self.named(error)}", part) from error
            except WrongTable as error:
                raise PartBroken(path, str(error), part) from error
            yield table.replace_schema_metadata(None) if name == RUNS else table

    def broken(self, error: PartBroken) -> StoreError:
        """Return the error for a part of the tables that is lost."""
        return StoreError(
            f"{self.shown}: {'' if self.published else 'tables/'}{error}",
            advice=_advice(self.path, self.shown, "the tables were made elsewhere: get these results from their source again"),
        )

    def named(self, error: Exception) -> str:
        """Return the text of an error, with files named from the folder on."""
        return str(error).replace(f"{self.path}/", "")

    def as_it_stands(self) -> Store:
        """Return the results without runs that the study no longer asks for, since its settings or replicates were changed.
        Results without planned runs are left as they are."""
        return self.of_runs(set(PlannedRuns.of(self.planned).ids)) if self.planned else self

    def of_runs(self, ids: Container[str]) -> Store:
        """Return the results with these runs only, without testbeds that no run or plan names any more."""
        records, planned = Records.of(self.records), PlannedRuns.of(self.planned)
        kept = records.where(ids.__contains__)
        left_out = len(records) - len(kept)
        if not left_out:
            return self
        asked = {str(levels["testbed"]) for levels in planned.levels.distinct() if "testbed" in levels}
        asked |= {testbed_named(settings) for settings in kept.settings.distinct()}
        cells = {*planned.cells.distinct(), *kept.cells.distinct()}
        testbeds = tuple(name for name in self.outline.testbeds if name in asked) or self.outline.testbeds
        return replace(
            self,
            records=kept,
            outline=replace(self.outline, testbeds=testbeds),
            link_checks=tuple(check for check in self.link_checks if check.cell in cells),
            other_settings=self.other_settings + left_out,
        )

    def missing(self) -> tuple[Planned, ...]:
        """Return planned runs that have no record."""
        made = set(Records.of(self.records).ids)
        return tuple(run for run in self.planned if run.id not in made)


def _folder(path: Path, shown: Path) -> Source:
    if path.is_file():
        raise StoreError(f"{path} is not a complete archive of results", advice="get it again, or give a results folder")
    if not path.is_dir():
        raise StoreError(f"{path}: no such folder", advice="give the results folder that `twinbed run` named")
    tree = Tree(path)
    if not tree.entries("runs") and tree.kind("study.json") is None:
        raise StoreError(
            f"{shown} has no runs and no study.json: it is not a results folder",
            advice="give the results folder that `twinbed run` named",
        )
    return FolderSource(tree)


def _published(address: Address) -> Source:
    from twinbed.results.bucket.source import BucketSource

    return BucketSource(address)


def _advice(path: Path, shown: Path, text: str) -> str:
    """Return the advice for a folder; the reader cannot fix an archive or published results."""
    if isinstance(path, Address):
        return "publish it again to another prefix"
    return text if path == shown else "get the archive again, or have the results archived again"


def _study(source: Source, path: Path, shown: Path) -> StudyDocument:
    file = shown / "study.json"
    advice = _advice(path, shown, "`twinbed run` writes it again from the study file")
    try:
        return study_document(parsed(source.read("study.json")))
    except FileNotFoundError:
        return {}
    except (OSError, *WRONG) as error:
        raise StoreError(f"{file} cannot be read: {why(error)}", advice=advice) from error


def _outline(source: Source, path: Path, shown: Path, study: StudyDocument, records: Records) -> Outline:
    factors = study.get("factors")
    testbeds = list(study.get("testbeds") or (factors.get("testbed") if isinstance(factors, dict) else None) or ())
    testbeds += sorted({testbed_named(settings) for settings in records.settings.distinct()} - set(testbeds))
    written = study.get("source") or ""
    with contextlib.suppress(FileNotFoundError):
        written = source.read("study.yaml").decode(errors="replace")
    defaults = Outline("", (), None)
    return Outline(
        name=study.get("study") or path.name,
        testbeds=tuple(testbeds),
        reference=study.get("reference") or (testbeds[0] if testbeds else None),
        margin=study.get("margin", defaults.margin),
        confidence=study.get("confidence", defaults.confidence),
        seed=study.get("seed"),
        source=written,
        data=study,
        interim=_interim(source, path, shown, study),
    )


def _interim(source: Source, path: Path, shown: Path, study: StudyDocument) -> InterimAnalyses | None:
    """Return the interim analyses of a study that runs until it is decided."""
    until = study.get("replicates")
    if not isinstance(until, dict):
        return None
    try:
        try:
            taken = source.read(INTERIM_FILE)
        except FileNotFoundError:
            return InterimAnalyses(value_of(until, "least", integer), value_of(until, "most", integer))
        return InterimAnalyses.from_json(document(parsed(taken)))
    except (OSError, *WRONG) as error:
        raise StoreError(
            f"{shown / INTERIM_FILE} cannot be read: {why(error)}",
            advice=_advice(path, shown, "delete it; `twinbed run` makes the interim analyses again"),
        ) from error


def _left_out(source: Source, records: Records) -> Iterator[Caution]:
    """Yield machines of a fleet that the controller left out after they had made runs. The file may be a stranger's."""
    try:
        machines = value_of(document(parsed(source.read(FLEET))), "machines", named(document))
        left_out = {name: value_of(machine, "left out", text) for name, machine in machines.items() if "left out" in machine}
    except FileNotFoundError:
        return
    except (NotPlain, OSError) as error:
        yield Caution(Kind.UNREADABLE, f"{FLEET}: {type(error).__name__}: {without(error, FLEET)}")
        return
    except WRONG as error:
        yield Caution(Kind.UNREADABLE, f"{FLEET}: {why(error)}")
        return
    made = Counter(records.machines.listed())
    for name, reason in left_out.items():
        if made[name]:
            yield Caution(Kind.MACHINE_APART, f"{name}, which made {made[name]} of {len(records)} runs: {reason}")


def testbed_of(record: Record) -> str:
    """Return the name of a run's testbed, whether or not it is a factor of the study."""
    return testbed_named(record.settings)


def _planned(study: StudyDocument) -> PlannedRuns:
    """Return the runs of study.json, which was checked when it was read."""
    return PlannedRuns.of(
        [
            Planned(run["id"], run["cell"], run["levels"], run["replicate"], run["block"], run["position"])
            for run in study.get("runs") or ()
        ]
    )


def _link_checks(source: Source, path: Path, cautions: list[Caution]) -> tuple[LinkCheck, ...]:
    """Return the link checks; one that cannot be read is left out, with a caution. Cautions name files from the results folder
    on, so that the page is the same wherever the folder is."""
    checks = []
    for name in source.link_checks():
        try:
            checks.append(LinkCheck.from_json(document(parsed(source.read(name)))))
        except WRONG as error:
            cautions.append(Caution(Kind.UNREADABLE, f"{name}: {why(error)}; this link check is left out"))
        except (NotPlain, OSError) as error:
            problem = f"{name}: {type(error).__name__}: {without(error, path / name)}"
            cautions.append(Caution(Kind.UNREADABLE, f"{problem}; this link check is left out"))
    return tuple(checks)
