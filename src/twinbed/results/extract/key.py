"""The key of a run's rows: its ``run.json``, its files' sizes, and the code that reads them.

A run whose key has not changed is not read again.  The code part covers the compiled core and the source of all that extraction
may run: its own, the plugins', and their imports. A changed extractor therefore rebuilds the tables by itself.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from twinbed.results.extract.closure import closure, source_files

_PACKAGE = Path(__file__).parents[2]
_WHOLE = ("twinbed.results.extract", "twinbed.imports.formats")
"""Packages that count with all of their modules: extraction, and the plugins that reach it by way of a workload."""


def code_key(plugins: Iterable[object], package: Path | None = None) -> str:
    """Return a hash of the compiled core and of the source that extraction with these plugins may run.

    Without ``package`` it is this program's own hash, made once: a process runs what it has loaded, whatever happens to the
    files.
    """
    modules = _modules(plugins)
    return _own_key(modules) if package is None else _key(modules, package)


def code(plugins: Iterable[object], package: Path = _PACKAGE) -> dict[str, bytes]:
    """Return module -> source, of all that extraction with these plugins may run."""
    return _code(_modules(plugins), package)


def _modules(plugins: Iterable[object]) -> frozenset[str]:
    return frozenset(type(plugin).__module__ for plugin in plugins)


@lru_cache
def _own_key(modules: frozenset[str]) -> str:
    return _key(modules, _PACKAGE)


def _key(modules: frozenset[str], package: Path) -> str:
    digest = hashlib.sha256()  # Twice as fast as BLAKE2 on machines that compute it in hardware.
    for name, source in sorted(_code(modules, package).items()):
        digest.update(name.encode() + b"\0" + source + b"\0")
    for file in sorted(package.glob("_core*.so")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _code(modules: frozenset[str], package: Path) -> dict[str, bytes]:
    files = source_files(package)
    whole = tuple(f"{each}." for each in _WHOLE)
    for module in modules - files.keys():
        files[module] = Path(inspect.getfile(sys.modules[module]))
    return closure({*_WHOLE, *modules, *(name for name in files if name.startswith(whole))}, files)


def sizes(folder: str, names: Iterable[str]) -> dict[str, int | None]:
    """Return the bytes of each file below a run folder; None if it is missing."""
    sizes_bytes: dict[str, int | None] = {}
    for name in names:
        try:
            sizes_bytes[name] = os.stat(f"{folder}/{name}").st_size  # noqa: PTH116 -- called for every artifact of 10,000 runs
        except OSError:
            sizes_bytes[name] = None
    return sizes_bytes


def run_key(record_digest: str, sizes_bytes: dict[str, int | None], code: str) -> str:
    """Return the key of one run."""
    text = f"{code}\0{record_digest}\0{sorted(sizes_bytes.items())}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
