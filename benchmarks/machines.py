"""A dask scheduler, and machines of a fleet on this one: each a worker with a host name, processes and a cache of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from twinbed.hosts.cache import cache_root
from twinbed.image import build, find

ROOT = Path(__file__).parents[1]
LIMIT_S = 120.0


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass
class Fleet:
    folder: Path
    port: int = field(default_factory=_free_port)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    logged: int = 0
    """How much the scheduler had logged when it was started last."""

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def _start(self, name: str, argv: list[str], **environment: str) -> None:
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                argv, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": paths, **environment}, start_new_session=True
            )

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def scheduler(self) -> None:
        """Starts it; a killed one again, at the same address."""
        self.logged = len(self.log("scheduler")) if (self.folder / "scheduler.log").exists() else 0
        dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
        self._start("scheduler", [*dask, "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"])
        wait_until(lambda: "Scheduler at:" in self.log("scheduler")[self.logged :])

    def machine(self, name: str, *, lab: bool = True, image: bool = True, preload: Path | None = None) -> None:
        """``name``: the machine's; its worker is the first of its processes, so that all of them end with it. ``image``:
        whether it has this machine's image for containers and guests. ``preload``: a module that makes it another machine than
        it would be."""
        cache = self.folder / f"cache-{name}"
        cache.mkdir(exist_ok=True)
        mounts = ""
        if image:
            find() or build()
            # Mounted, not linked: one more link changes a file's state, and the image would be checked anew by all.
            for part in ("bases", "images", "current", "checked"):
                (cache / part).mkdir(exist_ok=True)
                mounts += shlex.join(["mount", "--bind", str(cache_root() / part), str(cache / part)]) + " && "
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--host", "127.0.0.1", "--no-dashboard"]
        worker += ["--nthreads", "1", "--no-nanny", "--local-directory", str(cache), *(["--resources", "lab=1"] if lab else [])]
        worker += ["--preload", str(preload)] if preload else []
        alone = ["unshare", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child"]
        named = ["sh", "-c", f'hostname "$0" && {mounts}exec "$@"', name, *worker]
        self._start(name, [*alone, *named], TWINBED_CACHE=str(cache))

    def registered(self) -> int:
        """How many machines have come to the scheduler since it was started last."""
        return self.log("scheduler")[self.logged :].count("Register worker addr")

    def wait_for(self, machines: int) -> None:
        """Until so many have come."""
        wait_until(lambda: self.registered() >= machines)

    def kill(self, name: str) -> None:
        """As when its power fails."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def end(self) -> None:
        for name in list(self.processes):
            self.kill(name)


@contextlib.contextmanager
def meanwhile(condition: Callable[[], bool], action: Callable[[], None]) -> Iterator[None]:
    """Once the condition holds, the action, while the test waits for something else."""

    def act() -> None:
        wait_until(condition)
        action()

    thread = threading.Thread(target=act)
    thread.start()
    yield
    thread.join()


def wait_until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def events(results: Path) -> list[dict[str, object]]:
    """What the study has said so far."""
    try:
        return [json.loads(line) for line in (results / "events.jsonl").read_text().splitlines()]
    except (FileNotFoundError, ValueError):
        return []


def made(results: Path, machine: str | None = None) -> list[str]:
    """Ids of the runs that were fetched from a machine, or from all, as often as they were."""
    return [str(each["run"]) for each in events(results) if "status" in each and machine in (None, each["machine"])]
