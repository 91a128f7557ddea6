"""Which kernel modules are needed, and in which order they can be loaded. All functions but those of a folder are pure, over
depmod's modules.dep."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath


def decompress(tree: Path) -> None:
    """Modules as a guest's first program loads them: newer kernels come with theirs compressed by xz."""
    for packed in tree.rglob("*.ko.xz"):
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
        packed.unlink()


def dependencies(modules_dep: str) -> dict[str, tuple[str, ...]]:
    """modules.dep(5): each module's path, and the paths of the modules it needs."""
    needs = {}
    for line in modules_dep.splitlines():
        path, colon, rest = line.partition(":")
        if not colon:
            raise ValueError(f"modules.dep: no colon in {line!r}")
        needs[path] = tuple(rest.split())
    return needs


def named(needs: Mapping[str, object], names: Iterable[str], built_in: Iterable[str] = ()) -> list[str]:
    """Paths of the modules of these names, without those that are ``built_in`` (paths); LookupError names those that the kernel
    does not have."""
    by_name, inside = {_name(path): path for path in needs}, {_name(path) for path in built_in}
    wanted = [name.replace("-", "_") for name in names]
    missing = [name for name in wanted if name not in by_name and name not in inside]
    if missing:
        raise LookupError(f"the kernel has no module {', '.join(missing)}")
    return [by_name[name] for name in wanted if name in by_name]


def drives(tree: Path, name: str) -> bool:
    """Whether the kernel of this folder of modules has the driver ``name``, as a module or built in."""
    listed = (tree / "modules.dep").read_text().splitlines() + (tree / "modules.builtin").read_text().splitlines()
    return name.replace("-", "_") in {_name(line.partition(":")[0]) for line in listed}


def matching(needs: Mapping[str, object], patterns: Iterable[str]) -> list[str]:
    """Paths that match a pattern; * stays within a folder, ** goes through any number of them."""
    regexes = [re.compile(_regex(pattern)) for pattern in patterns]
    return [path for path in needs if any(regex.fullmatch(path) for regex in regexes)]


def loading_order(needs: Mapping[str, Sequence[str]], paths: Iterable[str]) -> list[str]:
    """The paths and all that they need, each once and after everything it needs."""
    ordered: dict[str, None] = {}

    def visit(path: str, asked_by: tuple[str, ...]) -> None:
        if path in asked_by:
            raise ValueError(f"modules need each other: {' '.join((*asked_by, path))}")
        for needed in needs[path]:
            if needed not in ordered:
                visit(needed, (*asked_by, path))
        ordered[path] = None

    for path in paths:
        visit(path, ())
    return list(ordered)


def _name(path: str) -> str:
    return PurePosixPath(path).name.partition(".ko")[0].replace("-", "_")


def _regex(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*\*/", "(?:[^/]+/)*").replace(r"\*", "[^/]*")
