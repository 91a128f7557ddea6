"""Extracts tables from artifacts: reads every run that is new or changed, and writes Parquet below ``tables``.

Repeating it does nothing.  An interruption loses the batches in hand.  Failed runs get a row among the runs, and no values. A
batch of runs is a task for an executor, and makes a part of the tables. Batches follow from the runs alone, so that the parts
are the same whatever reads them.  Large artifacts are read by several threads, since the compiled readers work outside Python's
lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.contracts.installed import builtin, refuse_lack, state
from twinbed.contracts.plugins import AnyWorkload
from twinbed.executor import Executor, Here
from twinbed.model.caution import Caution, Kind
from twinbed.model.columns import Records
from twinbed.model.run import Status
from twinbed.results.extract.key import code_key, package_key, run_key, sizes
from twinbed.results.extract.rows import (
    Extraction,
    KeptRows,
    Measuring,
    Outcome,
    Readers,
    RunRows,
    extractions,
    of_plugins,
    read_run,
    refused_settings,
)
from twinbed.results.keep.names import KEPT, ROWS
from twinbed.results.listed import RUNS, PartBroken, committed
from twinbed.results.store import Store, StoreError
from twinbed.tree import Tree

if TYPE_CHECKING:
    from twinbed.model.record import Record

_LOG = logging.getLogger(__name__)

BATCH_RUNS = range(100, 2001)
"""Smaller batches are not worth a worker of their own; larger ones are much to lose, and to hold."""
BATCHES = 32
"""The number of batches, if their sizes allow it: there is work for several workers, and parts stay few."""
BATCH_BYTES = 2**28
"""The most bytes of artifacts in a batch: large runs make many batches."""
THREADS_FROM_BYTES = 32 * 2**20
"""A batch with fewer bytes of artifacts is read faster by one thread."""


@dataclass(frozen=True, slots=True)
class _Job:
    folder: Path
    record: Record
    key: str
    sizes: Mapping[str, int | None]

    kept: bool = False
    """True if its rows were made before and its artifacts are gone."""

    @property
    def bytes(self) -> int:
        return sum(size or 0 for size in self.sizes.values())

    def rows(self, of_run: Sequence[Extraction], outcomes: Sequence[Outcome]) -> RunRows | KeptRows:
        if self.kept:
            from twinbed.results.extract.kept import kept_rows

            return kept_rows(self.folder, self.record, self.key)
        return read_run(self.folder, self.record, self.key, self.sizes, of_run, outcomes)


@dataclass(frozen=True, slots=True)
class _Batch:
    jobs: Sequence[_Job]
    plugins: Readers
    packages: Mapping[str, str]
    """The packages of plugins that were not built in, which the worker needs too."""

    @classmethod
    def of(cls, jobs: Sequence[_Job], plugins: Readers) -> _Batch:
        used = {plugin for job in jobs for plugin in job.record.plugins}
        return cls(jobs, plugins, {plugin: package for plugin in used if (package := state(plugin)[0])})


def extract(
    results: Path,
    workloads: Mapping[str, AnyWorkload],
    accompanying: Mapping[str, Measuring],
    on_progress: Callable[[int, int], None] | None = None,
    shown: Path | None = None,
    executor: Executor | None = None,
) -> Store:
    """Bring the tables of a results folder up to date and return the folder, opened. Raises StoreError for other folders.

    Plugins are given by name: ``workloads`` and ``accompanying`` (instruments, background loads). Function ``on_progress`` is
    called with runs read and runs to read.  Path ``shown`` is the archive that ``results`` was unpacked from, if any; an
    archive without artifacts keeps its tables.  An ``executor`` reads the artifacts (None: this process): its workers must see
    ``results`` at the same path.
    """
    store = Store.open(results, shown)
    _LOG.info("opened %s: %s runs", store.shown, f"{len(store.records):,}")
    if store.frozen:
        if not store.published:
            _all_there(store)
        return store
    store = _understood(store, Readers(workloads, accompanying))
    tree = store.tree
    code = code_key([*builtin(workloads).values(), *builtin(accompanying).values()])
    jobs = {job.record.id: job for job in _jobs(store, code)}

    def update(broken: str = "") -> None:
        try:
            with _locked(tree) as tables:
                if broken:
                    tables.remove(f"{RUNS}/{broken}")
                _update(tables, jobs, Readers(workloads, accompanying), executor or Here(), on_progress)
        except OSError as error:
            raise StoreError(
                f"{store.shown / 'tables'} cannot be written: {store.named(error)}",
                advice="what was written stays; make room or give write access, then try again",
            ) from error

    if not _current(tree, jobs):
        update()
    return replace(store, make_again=update)


def _all_there(store: Store) -> None:
    """Check that tables that cannot be made again hold every run. Raises StoreError."""
    from twinbed.results.extract.parts import keys_of

    known: set[str] = set()
    try:
        if store.tree.kind("tables") is not None:
            with store.tree.inside("tables") as tables:
                for part in committed(tables):
                    known |= keys_of(tables, part).keys()
    except PartBroken as error:
        raise store.broken(error) from error
    if missing := [run for run in Records.of(store.records).ids if run not in known]:
        raise store.broken(PartBroken(RUNS, f"has no row of run {missing[0]}: part of it is lost"))


def _understood(store: Store, plugins: Readers) -> Store:
    """Leave out runs whose settings a plugin refuses, such as those of another version, each with a caution."""
    faults: dict[str, str | None] = {}
    strange: dict[str, str] = {}
    for record in store.records:
        given = of_plugins(record.settings)
        key = repr(given)  # alike of all runs of a cell
        if key not in faults:
            faults[key] = refused_settings(given, plugins)
        if fault := faults[key]:
            strange[record.id] = fault
    if not strange:
        return store
    cautions = tuple(
        Caution(Kind.UNREADABLE, f"runs/{run}/run.json: {fault}; this run is left out", run) for run, fault in strange.items()
    )
    kept = store.of_runs({run for run in Records.of(store.records).ids if run not in strange})
    return replace(kept, other_settings=store.other_settings, cautions=(*store.cautions, *cautions))


def _update(
    tables: Tree,
    jobs: Mapping[str, _Job],
    plugins: Readers,
    executor: Executor,
    on_progress: Callable[[int, int], None] | None,
) -> None:
    from twinbed.results.extract.parts import part_from, write_part

    todo = _todo(tables, jobs)
    batches = [_Batch.of(batch, plugins) for batch in _batches(todo)]
    # A single one is read where it is: no worker need be started for it.
    made = executor.map(_read, batches) if len(batches) > 1 else map(_read, batches)
    done = 0
    _LOG.info("read the artifacts of %s runs", f"{len(todo):,}")
    for batch, part in zip(batches, made, strict=True):
        write_part(tables, part_from(part, {job.record.id: job.key for job in batch.jobs}))
        done += len(batch.jobs)
        if on_progress is not None:
            on_progress(done, len(todo))


def refuse_strange(run: Path) -> None:
    """Refuse a run with a link, which may lead to any file of this machine, or a named pipe, which has no end. The ``run`` is a
    folder below ``runs`` of results that may be a stranger's. Readers of artifacts, compiled ones too, are given paths: this is
    called before any of them. Raises NotPlain."""
    for _ in Tree(run.parents[1]).files(f"{run.parent.name}/{run.name}"):
        pass


def rows_of(folder: Path, record: Record, plugins: Readers) -> RunRows:
    """Return the rows of a run's artifacts, read here and now. Raises NotPlain for links or the like among them."""
    refuse_strange(folder)
    of_run = extractions(record, plugins)
    sizes_bytes = sizes(str(folder), [artifact["path"] for artifact in record.artifacts])
    return read_run(
        folder, record, "", sizes_bytes, of_run, [partial(extraction.read, folder / "artifacts") for extraction in of_run]
    )


@contextlib.contextmanager
def _locked(tree: Tree) -> Iterator[Tree]:
    """Lock the tables for one writer: another would take uncommitted parts for leftovers."""
    tree.make("tables")
    with tree.inside("tables") as tables:
        lock = tables.lock(".lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield tables
        finally:
            os.close(lock)


def _current(tree: Tree, jobs: Mapping[str, _Job]) -> bool:
    """Return whether the tables hold exactly the existing runs, so that nothing need be written, nor may be."""
    if tree.kind("tables") is None or not tree.entries("tables/runs"):
        return not jobs
    from twinbed.results.extract.parts import read_keys

    with tree.inside("tables") as tables:
        parts = read_keys(tables)
    return {run: key for keys in parts.values() for run, key in keys.items()} == {run: job.key for run, job in jobs.items()}


def _of_packages(plugins: Iterable[str]) -> str:
    """Return the part of a run's key for plugins of packages: their code, and whether it can be used."""
    states = {plugin: state(plugin) for plugin in plugins}
    return "".join(f" {plugin} {loads} {package_key(module)}" for plugin, (_, module, loads) in sorted(states.items()))


def _jobs(store: Store, code: str) -> Iterator[_Job]:
    for record in store.records:
        folder = store.path / "runs" / record.id
        kept = record.status is Status.COMPLETE and os.path.lexists(f"{folder}/{KEPT}")
        names = (
            (KEPT, ROWS) if kept else ([*(artifact["path"] for artifact in record.artifacts), "passport.json", "applied.json"])
        )
        sizes_bytes = sizes(str(folder), names)
        key = run_key(store.digests[record.id], sizes_bytes, KEPT if kept else code + _of_packages(record.plugins))
        yield _Job(folder, record, key, sizes_bytes, kept)


def _todo(tables: Tree, jobs: Mapping[str, _Job]) -> list[_Job]:
    """Return runs without true rows; remove rows that are no longer true."""
    from twinbed.results.extract.parts import prune, read_keys, remove_orphans

    remove_orphans(tables)
    have: set[str] = set()
    for part, keys in read_keys(tables).items():
        true = {run for run, key in keys.items() if run in jobs and jobs[run].key == key} - have
        if len(true) < len(keys) or not keys:
            prune(tables, part, true)
        have |= true
    return [job for run, job in jobs.items() if run not in have]


def _batches(jobs: Sequence[_Job]) -> Iterator[list[_Job]]:
    most = min(max(-(-len(jobs) // BATCHES), BATCH_RUNS.start), BATCH_RUNS.stop - 1)
    batch: list[_Job] = []
    held = 0
    for job in jobs:
        if batch and (len(batch) == most or held + job.bytes > BATCH_BYTES):
            yield batch
            batch, held = [], 0
        batch.append(job)
        held += job.bytes
    if batch:
        yield batch


def _read(batch: _Batch) -> bytes:
    from twinbed.results.extract.parts import packed_part, part_of

    refuse_lack(batch.packages, f"the worker on {platform.node()}")
    for job in batch.jobs:
        refuse_strange(job.folder)
    return packed_part(part_of(list(_rows(batch.jobs, batch.plugins))))


def _rows(jobs: Sequence[_Job], plugins: Readers) -> Iterator[RunRows | KeptRows]:
    """Read the rows of each run. If there is much to read, each plugin's files are read separately, so that one large run keeps
    several cores busy."""
    planned = [(job, job.folder / "artifacts", () if job.kept else extractions(job.record, plugins)) for job in jobs]
    if sum(job.bytes for job in jobs) < THREADS_FROM_BYTES:
        for job, artifacts, of_run in planned:
            yield job.rows(of_run, [partial(extraction.read, artifacts) for extraction in of_run])
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        begun = [[pool.submit(extraction.read, artifacts).result for extraction in of_run] for _, artifacts, of_run in planned]
        try:
            for (job, _, of_run), outcomes in zip(planned, begun, strict=True):
                yield job.rows(of_run, outcomes)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
