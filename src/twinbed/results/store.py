"""Opens results, a folder's or published ones: the study's outline, planned runs, run records, and the extracted tables.

Knows no plugin, and writes nothing.  Of a folder it reads ``study.json``, ``looks.json``, ``study.yaml``,
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
from twinbed.model.study_document import study_document
from twinbed.model.tables import Outline, Planned, StudyDocument
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
"""Starting threads takes longer than to read so few."""

FLEET = "fleet.json"
"""A file of results that a fleet made: who made them, and who was left out."""
FROZEN = "frozen.json"
"""A file in results whose artifacts were left out of an archive: their tables are not to be made anew."""


class StoreError(TwinbedError):
    """The folder cannot be read as results."""


@dataclass(frozen=True)
class Store:
    """An opened results folder."""

    path: Path
    """The folder, or the address of what was published."""
    shown: Path
    """As the user knows it: where it was unpacked from an archive, the archive."""
    source: Source
    outline: Outline
    planned: Sequence[Planned]
    records: Sequence[Record]
    """In the order of the plan."""
    digests_of: Callable[[], Mapping[str, str]]
    cautions: tuple[Caution, ...]
    link_checks: tuple[LinkCheck, ...] = ()
    other_settings: int = 0
    """Runs in the folder that ``records`` leaves out: the study as it stands does not ask for them."""
    make_again: Callable[[str], None] | None = None
    """Makes a part of the tables again from artifacts; None where they are to be taken as they are."""

    @classmethod
    def open(cls, path: Path, shown: Path | None = None) -> Store:
        """``path`` is a folder, or the address of what was published. ``shown`` is the archive that it was unpacked from, if it
        was, for messages to name.

        Raises StoreError where ``path`` is not a results folder or its study.json cannot be read.
        """
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
        """Run -> the hash of its ``run.json``."""
        return self.digests_of()

    @cached_property
    def _imported(self) -> bool:
        """Whether any run was measured elsewhere, by a program that may know less than twinbed's own."""
        return any(settings["testbed"].get("kind") == IMPORTED for settings in Records.of(self.records).settings.distinct())

    @property
    def published(self) -> bool:
        """Whether there is no folder: what was published has tables, but no artifacts to read."""
        return isinstance(self.path, Address)

    @property
    def frozen(self) -> bool:
        """Whether the tables are to be taken as they are, since what they were made from is not there."""
        return self.published or self.tree.kind(FROZEN) is not None

    @property
    def tree(self) -> Tree:
        """The folder, for whoever reads or writes a file in it."""
        return Tree(self.path)

    def names(self) -> tuple[str, ...]:
        """Names of the tables that there are."""
        return tuple(self.source.tables())

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all committed parts of a table, one below the other; an empty table without columns where there are none.

        A part that is lost, was changed or is not what its readers take it for is made again from the artifacts. Raises
        StoreError, which names the part and the column, where there are none, or that does not help."""
        import pyarrow as pa

        try:
            parts = self._mended(name, columns)
            whole = pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})
            if name == RUNS:
                check_distinct(whole)
        except (pa.ArrowException, WrongTable) as error:
            raise self.broken(PartBroken(name, self.named(error))) from error
        _LOG.info("read the table %s of %s: %s rows", name, self.shown, f"{whole.num_rows:,}")
        return whole

    def parts(self, name: str) -> Iterator[pa.Table]:
        """Yield the parts of a table, one in memory at a time. Raises as ``table``."""
        self._mended(name, ["run"])
        try:
            yield from self._parts(name, None)
        except PartBroken as error:
            raise self.broken(error) from error

    def _mended(self, name: str, columns: Sequence[str] | None) -> list[pa.Table]:
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
                there = parquet.schema_arrow.names
                table = parquet.read(
                    columns=None if columns is None else [each for each in columns if each in there],
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
        """Return the error that says that a part of the tables is not to be had."""
        return StoreError(
            f"{self.shown}: {'' if self.published else 'tables/'}{error}",
            advice=_mend(self.path, self.shown, "the tables were made elsewhere: get these results again from where they come"),
        )

    def named(self, error: Exception) -> str:
        """What an error says, files named from the folder on."""
        return str(error).replace(f"{self.path}/", "")

    def as_it_stands(self) -> Store:
        """The results without the runs that the study no longer asks for, since settings or replicates were changed after they
        were made. Results that name no planned runs are left as they are."""
        return self.of_runs(set(PlannedRuns.of(self.planned).ids)) if self.planned else self

    def of_runs(self, ids: Container[str]) -> Store:
        """The results with these runs only; testbeds that no run or plan names any more go too."""
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
        """Planned runs that have no record."""
        made = set(Records.of(self.records).ids)
        return tuple(run for run in self.planned if run.id not in made)


def _folder(path: Path, shown: Path) -> Source:
    if path.is_file():
        raise StoreError(f"{path} is no archive, or not all of one", advice="get it again, or give a results folder")
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


def _mend(path: Path, shown: Path, text: str) -> str:
    """The advice for a folder; what was unpacked from an archive, or published, is not the reader's to mend."""
    if isinstance(path, Address):
        return "publish it again to another prefix"
    return text if path == shown else "get the archive again, or have the results archived anew"


def _study(source: Source, path: Path, shown: Path) -> StudyDocument:
    file = shown / "study.json"
    advice = _mend(path, shown, "`twinbed run` writes it anew from the study file")
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
    """The interim analyses of a study that goes on until it is decided."""
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
            advice=_mend(path, shown, "delete it; `twinbed run` takes the looks again"),
        ) from error


def _left_out(source: Source, records: Records) -> Iterator[Caution]:
    """Machines of a fleet that the controller left out after they had made runs. The file may be a stranger's."""
    try:
        machines = value_of(document(parsed(source.read(FLEET))), "machines", named(document))
        left_out = {name: value_of(about, "left out", text) for name, about in machines.items() if "left out" in about}
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
    """The name of a run's testbed, whether or not it is a factor of the study."""
    return testbed_named(record.settings)


def _planned(study: StudyDocument) -> PlannedRuns:
    """The runs of study.json, which was checked when it was read."""
    return PlannedRuns.of(
        [
            Planned(run["id"], run["cell"], run["levels"], run["replicate"], run["block"], run["position"])
            for run in study.get("runs") or ()
        ]
    )


def _link_checks(source: Source, path: Path, cautions: list[Caution]) -> tuple[LinkCheck, ...]:
    """One that cannot be read is left out, with a caution, which names it from the results on: wherever they lie, their page is
    the same."""
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
