"""What tests of real testbeds share: the image, the probe, a site for a run, and a check of what a lab leaves behind."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from twinbed.contracts.site import Site
from twinbed.hosts import cgroups, scratch
from twinbed.hosts.scratch import PREFIX
from twinbed.image import Image, build, find, probe_path

# Three workers and the programs that they start share the processors: threads of the linear algebra's own wait for each other
# by turning in circles, which takes more time than they save. It reads this when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Hundreds of programs are started here: without compiled modules, each would compile two seconds long.
BYTECODE = Path(__file__).parents[1] / ".pytest_cache" / "bytecode"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(BYTECODE)
sys.dont_write_bytecode = False

# No test outlives a power failure, and results that are on no disk yet are read like others: disks are not waited for, and only
# asked for the file. Programs that tests start wait for theirs.
for call in ("fsync", "fdatasync"):
    setattr(os, call, os.fstat)

# What is collected stays to the end: nothing is gained by looking through it again and again.
gc.disable()

# By default an example may take 200 ms, which on a busy machine says nothing.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")


def pytest_configure() -> None:
    """A shell that starts tests in the background ignores Ctrl-C for them, nohup SIGHUP, and so would every program that they
    start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


GROUPS = ("endings", "networks", "machines")
"""Tests that make labs, in three workers at most: what is killed, breaks, is swept or runs alone; hosts and networks of every
kind; and machines of their own, with the contracts. They begin first, as they take longest, and each group in turn, as what a
lab leaves behind can hardly be told while others of the same worker come and go."""
FOLDERS = {"contract": "machines", "e2e": "endings", "fleet": "machines", "remote": "machines", "minimega": "machines"}
FILES = {
    # What it leaves for a sweep is on this machine: another's sweep would remove it first.
    "tests/minimega/test_sweep.py": "endings",
    **dict.fromkeys(
        (
            f"tests/e2e/test_{name}.py"
            for name in (
                "background",
                "container_limits",
                "guests",
                "latency",
                "link_check",
                "nics",
                "parameters",
                "read_back",
                "report_browser",
                "several_machines",
                "switches",
                "switches_of_a_guest",
                "syscalls",
                "tcp_kinds",
                "traffic",
            )
        ),
        "networks",
    ),
}
"""Those of a folder that are in another group than the rest of it."""


def group(nodeid: str) -> str:
    """The name of a test's group; its file, where it makes no lab."""
    file = nodeid.partition("::")[0]
    return FILES.get(file) or FOLDERS.get(file.split("/")[1], file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: place for place, name in enumerate(GROUPS)}
    items.sort(key=lambda item: order.get(group(item.nodeid), len(order)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """A group is one worker's, from its first test to its last."""
    config.option.loadscopereorder = False
    return _InGroups(config, log)


class _InGroups(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


@pytest.fixture(scope="session")
def image() -> Image:
    return find() or build()


@pytest.fixture(scope="session")
def probe() -> Path:
    return probe_path()


@pytest.fixture
def site(tmp_path: Path, image: Image, probe: Path) -> Callable[..., Site]:
    """A site for a run, with its artifacts in the test's own folder; runs of other names have folders of their own."""

    return lambda run="test": site_in(tmp_path if run == "test" else tmp_path / run, run, image, probe)


def site_in(folder: Path, run: str, image: Image, probe: Path) -> Site:
    return Site(run, probe, image, folder / "artifacts", tuple(sorted(os.sched_getaffinity(0))))


STAYS_S = 60.0


def lab_remains() -> set[str]:
    """Everything on this machine that a lab could leave: processes, namespaces, mounts, devices, control groups, folders."""
    others = _of_other_workers()
    theirs, locked = _labs_of(others), _locked_by(others)
    roots = (scratch.root(), scratch.root(large=True))
    folders = [path for root in roots for path in root.glob("twinbed-*") if path.name not in theirs]
    folders = [path for path in folders if _inode(path / "lock") not in locked]
    every = [path for root in cgroups.roots() for path in root.glob("twinbed-*")]
    groups = [path for path in every if path.name.removesuffix(cgroups.AWAKE) not in theirs]
    remains = {f"folder {path}" for path in folders} | {f"cgroup {path}" for path in groups}
    remains |= {f"device {path.name}" for path in Path("/sys/class/net").iterdir()}
    remains |= {f"mount {line}" for line in Path("/proc/self/mounts").read_text().splitlines()}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            spaces = [f"namespace {(process / 'ns' / kind).readlink()}" for kind in ("net", "pid", "mnt")]
        except OSError:
            continue
        if int(process.name) in others:
            continue
        if "twinbed-probe lab" in command:
            remains.add(f"process {process.name} {command.strip()}")
        remains.update(spaces)
    return remains


def _of_other_workers() -> set[int]:
    """Processes that descend from another worker of these tests. They are its own affair, unless it has left them alone."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return set()
    children: dict[int, list[int]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(process.name))
    descendants = set()
    waiting = [worker for worker in children.get(os.getppid(), []) if worker != os.getpid()]
    while waiting:
        descendants.add(waiting[-1])
        waiting += children.get(waiting.pop(), [])
    return descendants


def _labs_of(processes: set[int]) -> set[str]:
    """The names of labs that the processes hold: their command lines have `lab ... --id ID`."""
    names = set()
    for process in processes:
        with contextlib.suppress(OSError):
            words = (Path("/proc") / str(process) / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if "lab" in words and "--id" in words:
                names.add(f"{PREFIX}{words[words.index('--id') + 1]}")
    return names


def _locked_by(processes: set[int]) -> set[int]:
    """The inodes of files that the processes have locked."""
    rows = [line.split() for line in Path("/proc/locks").read_text().splitlines() if "->" not in line]
    return {int(row[5].rpartition(":")[2]) for row in rows if int(row[4]) in processes}


def _inode(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return path.stat().st_ino
    return None


@pytest.fixture
def leaves_nothing() -> Iterator[None]:
    """Fails when the test left anything of a lab on this machine."""
    before = lab_remains()
    yield
    assert stays(before) == set()


def stays(before: set[str]) -> set[str]:
    """What was not there before and does not go away soon; other tests have namespaces for a moment."""
    deadline = time.monotonic() + STAYS_S
    left = lab_remains() - before
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left &= lab_remains()
    return left
