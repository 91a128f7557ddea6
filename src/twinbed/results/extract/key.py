"""What a run's rows depend on, as a short key: its ``run.json``, its files' sizes, and the code that reads them.

A run whose key has not changed is not read again.  The code part covers the source of every plugin in use, of the extraction
and of the compiled core, so that a changed extractor rebuilds the tables by itself.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import twinbed

_PACKAGE = Path(twinbed.__file__).parent


def code_key(plugins: Iterable[Any]) -> str:
    """Hash of twinbed's version, its extraction, model and core, and of the folders that the plugins' source is in."""
    folders = {_PACKAGE / name for name in ("results", "model", "contracts", "metrics", "readers", "imports")}
    folders |= {Path(inspect.getfile(type(plugin))).parent for plugin in plugins}
    files = {file for folder in folders for file in folder.rglob("*.py")} | set(_PACKAGE.glob("_core*"))
    files |= {_PACKAGE / "statistics" / name for name in ("physics.py", "fairness.py")}
    digest = hashlib.blake2b(twinbed.__version__.encode(), digest_size=16)
    for file in sorted(files):
        if file.is_file():
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def sizes(folder: str, names: Iterable[str]) -> dict[str, int | None]:
    """Bytes of each file below a run folder; None where it is not there."""
    found: dict[str, int | None] = {}
    for name in names:
        try:
            found[name] = os.stat(f"{folder}/{name}").st_size  # noqa: PTH116 -- called for every artifact of 10,000 runs
        except OSError:
            found[name] = None
    return found


def run_key(record_digest: str, found: dict[str, int | None], code: str) -> str:
    """The key of one run."""
    text = f"{code}\0{record_digest}\0{sorted(found.items())}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
