"""What tests of real testbeds share: the image, the probe, a site for a run, and a check of what a lab leaves behind."""

from __future__ import annotations

import gc
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from execnet import XSpec
from hypothesis import settings

from alone import IN_MEMORY
from costs import SHOWN, Costs
from lanes import Lanes, order
from twinbed.contracts.site import Site
from twinbed.hosts import cgroups, scratch
from twinbed.image import Image, build, find, probe_path
from twinbed.testbeds.qemu import driver

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
os.sync = lambda: None

# A guest that boots takes three times the CPU time of one that resumes. Tests of booting ask for it (`boot: fresh`), and
# programs that tests start have the default of all users.
driver.DEFAULT_BOOT = "snapshot"

# What is collected stays to the end: nothing is gained by looking through it again and again.
gc.disable()

# By default an example may take 200 ms, which on a busy machine says nothing.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", type=int, default=SHOWN, help="how many files and tests to list by what they cost")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let programs that tests start be interrupted: a shell that starts tests in the background makes them ignore Ctrl-C, and
    nohup SIGHUP. At the end, print what tests cost. A worker's folders of tests are in memory."""
    config.pluginmanager.register(Costs())
    if hasattr(config, "workerinput") and IN_MEMORY in os.environ:
        config.option.basetemp = str(Path(os.environ[IN_MEMORY], "pytest"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_finish() -> None:
    """Collect garbage from now on, but seldom: with the usual thresholds it took a tenth of the CPU time."""
    gc.freeze()
    gc.set_threshold(200_000, 20, 50)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=order)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    return Lanes(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs: list[XSpec]) -> None:
    """Start workers in namespaces of their own: no test sees, sweeps or waits for what another one makes."""
    if os.geteuid() == 0:
        alone = shlex.join([sys.executable, str(Path(__file__).with_name("alone.py"))])
        specs[:] = [XSpec(f"{spec}//python={alone}") for spec in specs]


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
    """Everything that a lab could leave on this machine, or in the namespaces of this worker: processes, namespaces, mounts,
    devices, control groups, folders."""
    remains = {f"folder {path}" for root in (scratch.root(), scratch.root(large=True)) for path in root.glob("twinbed-*")}
    remains |= {f"cgroup {path}" for root in cgroups.roots() for path in root.glob("twinbed-*")}
    remains |= {f"device {path.name}" for path in Path("/sys/class/net").iterdir()}
    remains |= {f"mount {line}" for line in Path("/proc/self/mounts").read_text().splitlines()}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            spaces = [f"namespace {(process / 'ns' / kind).readlink()}" for kind in ("net", "pid", "mnt")]
        except OSError:
            continue
        if "twinbed-probe lab" in command:
            remains.add(f"process {process.name} {command.strip()}")
        remains.update(spaces)
    return remains


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
