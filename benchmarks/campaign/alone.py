"""What is in namespaces of one's own (``tests/alone.py``), and twinbed in a child of this process.

Children are forked: all is imported once, which a fresh interpreter takes seconds for. This process itself reads no results
and runs no study, so that each child begins with the state of a program that has just been imported.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from twinbed.hosts import cgroups, scratch

_GONE_S = 15.0
"""How long the dead may take to be gone."""


def take_temporary(folder: Path) -> None:
    """Whatever is made in a temporary place is made in a folder of this campaign's, and is found there if it stays."""
    own = folder / "temporary"
    own.mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(own)


def forked(call: Callable[[], object], said: Path) -> int:
    """The process id of a child that makes the call, and exits with what it returns; its words go to ``said``."""
    sys.stdout.flush()
    sys.stderr.flush()
    if child := os.fork():
        return child
    code: object = 70
    try:
        os.setsid()
        # A campaign in the background may have been started with these ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        words = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for target, source in ((0, nothing), (1, nothing), (2, words)):
            os.dup2(source, target)
        code = call()
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            sys.stderr.write(f"{code}\n")
            code = 1
    except Exception:  # noqa: BLE001 - whatever it is, this child must not go on as its parent
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stderr.flush()
        os._exit(int(code or 0))  # type: ignore[call-overload]


def ready(child_call: Callable[[], object], said: Path) -> None:
    """Imports what the call imports in a child, so that no later child has to."""
    names = said.with_name("modules.json")

    def call() -> None:
        with contextlib.suppress(SystemExit):
            child_call()
        names.write_text(json.dumps(sorted(sys.modules)))

    ended(forked(call, said), 600.0)
    for name in json.loads(names.read_text()):
        if name.partition(".")[0] != "__main__":
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def ended(child: int, limit_s: float) -> int | None:
    """Its exit code, negative for a signal; None where it is still there after so long."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None


def command(*words: str) -> Callable[[], None]:
    """``twinbed`` with these words."""

    def call() -> None:
        from twinbed.cli.main import main

        sys.argv = ["twinbed", *words]
        main()

    return call


def processes() -> dict[int, str]:
    """Process id -> command line, of all here."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if line:  # the dead have none
                found[int(process.name)] = line
    return found


def remains() -> set[str]:
    """What a lab or a command leaves: processes, mounts, scratch folders, control groups."""
    found = {f"process {number} {line[:200]}" for number, line in processes().items()}
    found |= {f"mount {line}" for line in Path("/proc/self/mounts").read_text().splitlines()}
    folders = (scratch.root(), scratch.root(large=True), Path(tempfile.gettempdir()))
    found |= {f"folder {path}" for folder in folders for path in folder.iterdir()}
    for root in cgroups.roots():
        found |= {f"control group {path}" for path in root.glob(f"{scratch.PREFIX}*")}
    return found


def left(before: set[str]) -> set[str]:
    """What was not there before and does not go."""
    deadline = time.monotonic() + _GONE_S
    stays = remains() - before
    while stays and time.monotonic() < deadline:
        time.sleep(0.05)
        stays &= remains()
    return stays
