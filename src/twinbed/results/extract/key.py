"""The key of a run's rows: its ``run.json``, its files' sizes, and the code that reads them.

A run whose key has not changed is not read again.  The code part covers the compiled core and the source of all that extraction
may run: its own, the plugins', and their imports. A changed extractor therefore rebuilds the tables by itself.

The files that code may run: a module, its imports, and theirs in turn.

Imports are read from the source without running it, including those inside functions, without those for type checkers.  Every
command on results needs this, so it looks for import statements line by line; parsing would take twenty times as long.  A line
of a docstring that looks like an import counts as one: it costs a needless file and misses none.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
_WHOLE = ("twinbed.results.extract", "twinbed.imports.formats")
"""Packages that count with all of their modules: extraction, and the plugins that reach it by way of a workload."""


def code_key(plugins: Iterable[object], package: Path | None = None) -> str:
    """Return a hash of the compiled core and of the source that extraction with these plugins may run. Without ``package`` it
    is this program's own hash, made once: a process runs what it has loaded, whatever happens to the files."""
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
    whole = tuple(f"{part}." for part in _WHOLE)
    for module in modules - files.keys():
        files[module] = Path(inspect.getfile(sys.modules[module]))
    return closure({*_WHOLE, *modules, *(name for name in files if name.startswith(whole))}, files)


def package_key(module: str) -> str:
    """Return a hash of the sources of the package that a module of a plugin is in; empty for no module."""
    return _package_key(module.partition(".")[0]) if module else ""


@lru_cache
def _package_key(name: str) -> str:
    spec = importlib.util.find_spec(name)
    origin = Path(spec.origin) if spec is not None and spec.origin else None
    digest = hashlib.sha256()
    if origin is not None and origin.is_file():
        files = source_files(origin.parent) if origin.name == "__init__.py" else {name: origin}
        for path, file in sorted(files.items()):
            digest.update(path.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


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


_NAMES = rb"[ \t]*([\w.]+(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*[\w.]+(?:[ \t]+as[ \t]+\w+)?)*)"
_STATEMENT = re.compile(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*(?:\(([^)]*)\)|" + _NAMES + rb")|import[ \t]+" + _NAMES + rb")", re.M
)
_TYPE_CHECKING = re.compile(rb"^([ \t]*)if TYPE_CHECKING:[^\n]*\n(?:\1[ \t]+[^\n]*\n|[ \t]*\n)*", re.M)
_COMMENT = re.compile(rb"#[^\n]*")


def source_files(package: Path) -> dict[str, Path]:
    """Return module -> its file, of all modules of a package. A folder's module is its ``__init__``."""
    files: dict[str, Path] = {}
    for folder, subfolders, names in os.walk(package):
        subfolders[:] = [subfolder for subfolder in subfolders if subfolder != "__pycache__"]
        parts = (package.name, *Path(folder).relative_to(package).parts)
        for name in names:
            if name.endswith(".py"):
                module = parts if name == "__init__.py" else (*parts, name.removesuffix(".py"))
                files[".".join(module)] = Path(folder, name)
    return files


def closure(roots: Iterable[str], files: Mapping[str, Path]) -> dict[str, bytes]:
    """Return module -> source, of the modules ``roots`` and all ``files`` that their code may import, with the packages around
    each. Raises KeyError for a missing root."""
    sources: dict[str, bytes] = {}
    todo = list(roots)
    while todo:
        module = todo.pop()
        if module not in sources:
            sources[module] = files[module].read_bytes()
            todo.extend(name for name in imported(sources[module]) if name in files)
            parent = module.rpartition(".")[0]
            todo.extend([parent] if parent in files else [])
    return sources


def imported(source: bytes) -> Iterator[str]:
    """Yield what a source's statements import. ``from a import b`` gives both ``a`` and ``a.b``, which may be a module."""
    if b"TYPE_CHECKING" in source:
        source = _TYPE_CHECKING.sub(b"", source)
    for module, in_parentheses, plain, direct in _STATEMENT.findall(source):
        if module:
            yield module.decode()
        names = direct or plain or _COMMENT.sub(b"", in_parentheses)
        for part in names.split(b","):
            name = part.split(b" as ")[0].strip().decode()
            if name:
                yield f"{module.decode()}.{name}" if module else name
