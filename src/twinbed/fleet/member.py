"""The tasks of a fleet's machine, in a dask worker on it: each function is a task.

A machine makes one run at a time, in its own folder of results below its cache. A run stays there until the controller has it,
so a run made while the controller or the scheduler died is not made again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from twinbed import registry
from twinbed.contracts.installed import PluginError, refuse_lack
from twinbed.contracts.site import Installed
from twinbed.fleet.words import Asked, Fetched, File, LeftOut, Made, Needed, Offered, Ordered, Wanted
from twinbed.hosts import owned
from twinbed.hosts.cache import cache_root
from twinbed.hosts.resources import allow_descriptors
from twinbed.image import Image, build, find, probe_path
from twinbed.lab import added, needs, preflight, resources
from twinbed.lab.study import Event, PhaseBegan, make
from twinbed.model.image import NO_IMAGE, Added
from twinbed.model.run import Phase
from twinbed.results.folder import Folder
from twinbed.study.run import Run

FORGOTTEN_S = 7 * 86400.0
_images: dict[tuple[str, Added], Image] = {}
"""Results, and what is added to the image, to the image of their runs."""
_stopping: set[str] = set()
"""Results whose present run is given up at the end of its phase."""


class _Stopped(Exception):
    """A run was given up."""


def name() -> str:
    """Return this machine's name."""
    return platform.node() or "unnamed"


def hold(needed: Needed) -> str:
    """Check that this machine has the packages that the study needs, and return its name. Raises LeftOut."""
    try:
        refuse_lack(needed.plugins, "it")
    except PluginError as error:
        raise LeftOut(error.message, advice=error.advice) from None
    return name()


def prepare(asked: Asked) -> Offered:
    """Check everything that the study needs. Raises LeftOut."""
    _stopping.discard(asked.results)
    _forget_images(asked.results)
    for run in asked.cells:
        _known(run)
    try:
        images = [find() or build(), *added.built(asked.cells, registry.PLUGINS, _silent).values()] if asked.image else []
        digest = "+".join(image.digest for image in images)
        allow_descriptors(resources.descriptors(asked.cells, registry.PLUGINS))
        _home()
        with _spool(asked.results).locked():
            checks = [
                *needs.checks(asked.cells, registry.PLUGINS, builds=False),
                preflight.disk_space(_spool(asked.results).path, asked.bytes, True),
            ]
    except Exception as error:  # noqa: BLE001 - after any error the machine is of no use, and the reason is shown
        raise LeftOut(f"{type(error).__name__}: {error}") from None
    if problems := [check for check in checks if check.required and not check.works]:
        raise LeftOut(
            "; ".join(f"{check.what}: {check.found}" + (f" ({check.mend})" if check.mend else "") for check in problems)
        )
    return Offered(name(), digest, _facts())


def _known(run: Run) -> None:
    """Raise LeftOut for a run with plugins that this twinbed lacks."""
    plugins = registry.PLUGINS
    kinds = {
        f"driver {run.testbed.kind}": run.testbed.kind in plugins.drivers,
        f"workload {run.workload.kind}": run.workload.kind in plugins.workloads,
        **{f"{plugin.kind}": plugin.kind in plugins.accompanying for plugin in run.accompanying()},
    }
    if missing := [kind for kind, is_known in kinds.items() if not is_known]:
        raise LeftOut(f"it lacks {', '.join(missing)}")


def _facts() -> dict[str, str | int | None]:
    """Return the facts that distinguish machines of a fleet."""
    cpus = Path("/proc/cpuinfo").read_text(errors="replace")
    memory = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    model = re.search(r"model name\s*: (.*)", cpus)
    return {
        "kernel": platform.release(),
        "cpu": model[1] if model else None,
        "cpus": len(os.sched_getaffinity(0)),
        "memory bytes": int(memory[1]) * 1024 if memory else None,
    }


def make_run(ordered: Ordered) -> Made:
    """Make a run unless it exists here; no other run is made on this machine meanwhile. Raises LeftOut."""
    run, spool = ordered.run, _spool(ordered.results)
    with _alone(), spool.locked():
        if spool.status(run.id) is None:
            driver = registry.PLUGINS.drivers[run.testbed.kind]
            image = NO_IMAGE if driver.in_process else _image(ordered.results, run.workload.params.added())
            if image is None:
                raise LeftOut("its image is gone")

            def hear(event: Event) -> None:
                # The testbed is taken down in any case: a run is given up between phases.
                if isinstance(event, PhaseBegan) and event.phase is not Phase.DOWN and ordered.results in _stopping:
                    raise _Stopped

            try:
                make(
                    run,
                    registry.PLUGINS,
                    spool,
                    Installed(probe_path(), image, {run.workload.params.added(): image}),
                    hear,
                    machine=name(),
                )
            except _Stopped:
                raise LeftOut("the controller gave it up") from None
        return _made(spool, run.id, run.cell)


def _image(results: str, added: Added) -> Image | None:
    """Find the image and check its files, once for all runs of a study."""
    if (results, added) not in _images and (image := find(added=added)) is not None:
        _images[results, added] = image
    return _images.get((results, added))


def _forget_images(results: str) -> None:
    for key in [key for key in _images if key[0] == results]:
        del _images[key]


def _silent(_: str) -> None:
    """Print nothing: a member has no terminal."""


def _made(spool: Folder, run: str, cell: str) -> Made:
    record = spool.record(run)
    assert record is not None
    folder = spool.runs / run
    files = {
        str(path.relative_to(folder)): File(path.stat().st_size, _digest(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    check = spool.links / f"{cell}.json"
    return Made(
        run,
        record.status,
        sum(record.phases.values()),
        None if record.failed_phase is None else Phase(record.failed_phase),
        record.reason,
        files,
        check.read_text() if check.exists() else None,
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def fetch(wanted: Wanted) -> bytes:
    """Return pieces of the files of a run that was made here, one after the other."""
    folder = _spool(wanted.results).runs / wanted.run
    contents = []
    for piece in wanted.pieces:
        with (folder / piece.path).open("rb") as file:
            file.seek(piece.start)
            contents.append(file.read(piece.bytes))
    return b"".join(contents)


def forget(fetched: Fetched) -> None:
    """Remove a run that the controller has."""
    shutil.rmtree(_spool(fetched.results).runs / fetched.run, ignore_errors=True)


def give_up(results: str) -> None:
    """End the present run at the end of its phase. This is no task: it is called while one runs."""
    _stopping.add(results)


def over(results: str) -> None:
    """Remove everything of a study that is over."""
    _forget_images(results)
    shutil.rmtree(_spool(results).path, ignore_errors=True)


def forgotten() -> list[Path]:
    """Return folders with runs that no controller has fetched for a long time: their study was given up."""
    spools = [path for path in _spools().iterdir() if path.is_dir()] if _spools().is_dir() else []
    return sorted(path for path in spools if time.time() - _touched_s(path) > FORGOTTEN_S)


def _touched_s(spool: Path) -> float:
    """Return when a folder was last changed; now if it is being removed, since its study has just ended."""
    try:
        return max(path.stat().st_mtime for path in (spool, *spool.glob("runs"), *spool.glob("runs/*")))
    except FileNotFoundError:
        return time.time()


def _spool(results: str) -> Folder:
    return Folder(_spools() / results)


def _spools() -> Path:
    """Return the folder in which runs stay until the controller has them; it need not exist."""
    return cache_root() / "fleet"


def _home() -> Path:
    """Make that folder, for this user alone."""
    return owned.folder(_spools(), 0o700)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Allow one run at a time on this machine, whoever asks for it. Raises LeftOut."""
    with open(owned.lock_file(_home() / "machine.lock"), "w") as lock:  # noqa: PTH123  (a descriptor)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LeftOut("another study runs on it") from None
        yield
