"""The files that code may run: a module, its imports, and theirs in turn.

Imports are read from the source without running it, including those inside functions, without those for type checkers.  Every
command on results needs this, so it looks for import statements line by line; parsing would take twenty times as long.  A line
of a docstring that looks like an import counts as one: it costs a needless file and misses none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

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
        subfolders[:] = [each for each in subfolders if each != "__pycache__"]
        parts = (package.name, *Path(folder).relative_to(package).parts)
        for name in names:
            if name.endswith(".py"):
                module = parts if name == "__init__.py" else (*parts, name.removesuffix(".py"))
                files[".".join(module)] = Path(folder, name)
    return files


def closure(roots: Iterable[str], files: Mapping[str, Path]) -> dict[str, bytes]:
    """Return module -> source, of the modules ``roots`` and all ``files`` that their code may import, with the packages around
    each.

    Raises KeyError for a missing root.
    """
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
        for each in names.split(b","):
            name = each.split(b" as ")[0].strip().decode()
            if name:
                yield f"{module.decode()}.{name}" if module else name
