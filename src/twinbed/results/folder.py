"""Results on disk: run folders that appear whole or not at all, the log of events, and the lock between writers.

A run folder is written under a temporary name, synced, and renamed.  A killed controller's temporary folder is removed by the
next one, whose lock shows that nobody is writing it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import itertools
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from twinbed.model.error import TwinbedError
from twinbed.model.json import WRONG, document, parsed, text, value_of, why
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.record import Record
from twinbed.model.run import Status
from twinbed.results.bucket.address import address_of
from twinbed.results.contents import share
from twinbed.tree import NotPlain, Tree

HOLDS = (
    ".lock",
    "study.yaml",
    "study.json",
    "looks.json",
    "events.jsonl",
    "fleet.json",
    "frozen.json",
    *(f"report{end}" for end in (".html", ".md", ".tex", ".csv", "-tables.csv")),
    "links/*.json",
    *(f"runs/*/{name}" for name in ("run.json", "passport.json", "applied.json", "kept.json", "rows.zip", "artifacts/*/*")),
    "contents/*",
    "own/*/*",
    "tables/.lock",
    "tables/conclusion.json",
    "tables/*/part-*.parquet",
    "failed/*",
    "pages/*.html",
    "calibrations/*.json",
)
"""All names that twinbed writes in a results folder. Incomplete files are ``.<name>.partial``, incomplete runs
``runs/.unfinished-<id>``."""
_LOCK = ".lock"
_UNFINISHED = ".unfinished-"


class ResultsBusy(TwinbedError):
    """Another twinbed is writing these results."""


class ResultsUnusable(TwinbedError):
    """The folder cannot hold results, or its content is not ours."""


class DiskFull(TwinbedError):
    """No space is left for results; complete runs are safe."""

    exit_code = 3


class NotWritable(TwinbedError):
    """The folder can no longer be written, as when its file system becomes read-only; complete runs are safe."""

    exit_code = 3


@contextlib.contextmanager
def failed_writes_are_clear(folder: Path) -> Iterator[None]:
    """Turn ENOSPC and EDQUOT into DiskFull, and other errors of writing a file of the folder into NotWritable."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO) and _is_in(folder, error):
            raise NotWritable(
                f"{error.filename}: {error.strerror}; complete runs are safe, the unfinished run is not kept",
                advice="make the folder writable, then run the same command again: it continues where it stopped",
            ) from None
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DiskFull(
            f"{folder}: {error.strerror}; complete runs are safe, the unfinished run is not kept",
            advice="free some space, then run the same command again: it continues where it stopped",
        ) from None


def _is_in(folder: Path, error: OSError) -> bool:
    return isinstance(error.filename, str | os.PathLike) and Path(error.filename).absolute().is_relative_to(folder.absolute())


class Folder:
    """A results folder open for writing, by one process at a time."""

    def __init__(self, path: Path) -> None:
        if address := address_of(path):
            raise ResultsUnusable(
                f"{address}: results can only be made in a folder",
                advice=f"make them in a folder, then `twinbed publish FOLDER {address}`",
            )
        self.path = path.absolute()
        self.runs = self.path / "runs"
        self.links = self.path / "links"
        self.tree = Tree(self.path)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock. Raises ResultsBusy with the holder's process id if another process has it. Folders made for it are
        removed again if nothing was written, as when preflight refused the study."""
        made = [folder for folder in (self.runs, *self.runs.parents) if not folder.exists()]
        try:
            with failed_writes_are_clear(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
                self.tree.make(self.runs.name)
                lock = self.tree.lock(_LOCK)
        except OSError as error:
            raise ResultsUnusable(f"{error.filename}: {error.strerror}", advice="name another folder with --output") from None
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(lock, 32).decode(errors="replace").strip() or "unknown"
                raise ResultsBusy(
                    f"{self.path}: another twinbed (process {holder}) is writing these results",
                    advice="wait for it, or give this one a folder of its own with --output",
                ) from None
            if not os.fstat(lock).st_nlink:
                raise ResultsBusy(f"{self.path}: another twinbed has just released these results", advice="try again")
            with failed_writes_are_clear(self.path):
                os.ftruncate(lock, 0)
                os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
                for name in self.tree.entries(self.runs.name):
                    if name.startswith(_UNFINISHED):
                        self.tree.remove(f"{self.runs.name}/{name}")
            try:
                yield
            finally:
                if made and self.tree.entries().keys() == {_LOCK, self.runs.name}:
                    self._give_up(made)
        finally:
            os.close(lock)

    def _give_up(self, made: Sequence[Path]) -> None:
        with contextlib.suppress(OSError):  # one that is not empty stays, with those above it
            self.runs.rmdir()
            self.tree.remove(_LOCK)
            for folder in made[1:]:
                folder.rmdir()

    def status(self, run: str) -> str | None:
        """Return ``complete`` or ``failed``, or None without such a run."""
        record = self.runs / run / "run.json"
        try:
            return value_of(document(parsed(self._read(record))), "status", lambda value: Status(text(value)))
        except FileNotFoundError:
            return None
        except (OSError, *WRONG) as error:
            raise ResultsUnusable(
                f"{record} cannot be read: {why(error)}", advice="move its folder away to make it again"
            ) from None

    def count(self) -> int:
        """Return the number of finished runs, of whatever settings."""
        entries = self.tree.entries(self.runs.name).items()
        names = [name for name, kind in entries if kind == "folder" and not name.startswith(".")]
        return sum(self.tree.kind(f"{self.runs.name}/{name}/run.json") is not None for name in names)

    def unfinished(self, run: str) -> Path:
        """Return the folder of a run while it is incomplete."""
        return self.runs / f"{_UNFINISHED}{run}"

    def begin(self, run: str) -> Path:
        """Make a fresh temporary folder for a run. Nobody else may enter it: until the run is finished its content belongs to
        the run's programs, whatever modes they give their files."""
        folder = self.unfinished(run)
        with failed_writes_are_clear(self.path):
            self.tree.make(self._name(folder), 0o700)
            self.tree.make(self._name(folder / "artifacts"))
        return folder

    def finish(self, folder: Path, record: Record, applied: object, passport: object) -> Path:
        """Write the records next to the artifacts, sync everything, and give the folder its name."""
        with failed_writes_are_clear(self.path):
            for name, content in (("applied.json", applied), ("passport.json", passport), ("run.json", record.to_json())):
                self.tree.write(self._name(folder / name), json.dumps(content, indent=1, sort_keys=True) + "\n")
        return self.adopt(folder, record.id)

    def adopt(self, folder: Path, run: str) -> Path:
        """Sync a complete run, and give its folder its name and the mode of other folders. Files that equal earlier runs' are
        stored once."""
        with failed_writes_are_clear(self.path):
            share(folder, self.path)
            self.tree.open_as(self._name(folder), self._name(folder / "artifacts"))
            self._sync(folder)
            self.put(folder, run)
            self.tree.sync(self.runs.name)
        return self.runs / run

    def put(self, folder: Path, run: str) -> None:
        """Give a complete run its name. Anything else of that name is moved aside."""
        if self.tree.kind(f"{self.runs.name}/{run}") is not None:
            self.set_aside(run)
        self.tree.rename(self._name(folder), f"{self.runs.name}/{run}")

    def record(self, run: str) -> Record | None:
        """Return the record of a run; None without such a run."""
        file = self.runs / run / "run.json"
        try:
            return Record.from_json(document(parsed(self._read(file))))
        except FileNotFoundError:
            return None
        except (OSError, *WRONG) as error:
            raise ResultsUnusable(
                f"{file} cannot be read: {why(error)}", advice="move its folder away to make it again"
            ) from None

    def set_aside(self, run: str) -> None:
        """Move a run out of the way of another try: it is evidence, so it is not removed."""
        self._aside(self.runs / run, run)

    def _aside(self, what: Path, name: str) -> None:
        self.tree.make("failed")
        places = (f"failed/{name}-{number}" for number in itertools.count(1))
        self.tree.rename(self._name(what), next(place for place in places if self.tree.kind(place) is None))

    def discard(self, folder: Path) -> None:
        with contextlib.suppress(NotPlain, OSError):
            self.tree.remove(self._name(folder))

    def link_check(self, cell: str) -> LinkCheck | None:
        """Return the measurements of a cell's links; None if there are none."""
        file = self.links / f"{cell}.json"
        try:
            return LinkCheck.from_json(document(parsed(self._read(file))))
        except FileNotFoundError:
            return None
        except (OSError, *WRONG) as error:
            raise ResultsUnusable(
                f"{file} cannot be read: {why(error)}", advice="move it away to measure the links again"
            ) from None

    def keep_link_check(self, check: LinkCheck, machine: str = "") -> None:
        """Keep a check. ``machine`` is the member of a fleet that measured it: each has links of its own."""
        with failed_writes_are_clear(self.path):
            self.tree.make(self.links.name)
        of = f"{check.cell}@{machine}" if machine else check.cell
        self.write(f"links/{of}.json", json.dumps(check.to_json(), indent=1) + "\n")

    def forget_link_check(self, cell: str) -> None:
        """Move a failed check aside, so that it is made again; another one stays."""
        check = self.link_check(cell)
        if check is not None and check.reason is not None:
            self._aside(self.links / f"{cell}.json", f"link-check-{cell}")

    def write(self, name: str, content: str) -> None:
        """Write a file at once or not at all."""
        with failed_writes_are_clear(self.path):
            self.tree.write(name, content)

    def keep_own(self, files: Mapping[str, bytes]) -> None:
        """Keep the user's own files that runs copy to hosts, below the beginning of their SHA-256: versions stay apart."""
        with failed_writes_are_clear(self.path):
            for name, content in files.items():
                place = f"own/{hashlib.sha256(content).hexdigest()[:16]}"
                if self.tree.kind(f"{place}/{Path(name).name}") is None:
                    self.tree.make(place)
                    self.tree.write(f"{place}/{Path(name).name}", content)

    def log(self, event: Mapping[str, object]) -> None:
        line = json.dumps({"time_s": round(time.time(), 3), **event}) + "\n"
        with failed_writes_are_clear(self.path), self.tree.append("events.jsonl") as log:
            log.write(line.encode())

    def _read(self, file: Path) -> bytes:
        return self.tree.read(self._name(file))

    def _name(self, path: Path) -> str:
        """Return the path below this folder."""
        return path.relative_to(self.path).as_posix()

    def _sync(self, folder: Path) -> None:
        """Sync everything below a folder to the disk."""
        name = self._name(folder)
        for below, status in [*self.tree.all_below(name, folders=True)]:
            if stat.S_ISDIR(status.st_mode):
                self.tree.sync(f"{name}/{below}")
            else:
                with self.tree.open(f"{name}/{below}") as file:
                    os.fdatasync(file.fileno())
        self.tree.sync(name)
