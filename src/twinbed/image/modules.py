"""Which kernel modules are needed, and in which order they can be loaded. All functions but those of a folder are pure, over
depmod's modules.dep."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


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
    by_name, inside = {module_name(path): path for path in needs}, {module_name(path) for path in built_in}
    wanted = [name.replace("-", "_") for name in names]
    missing = [name for name in wanted if name not in by_name and name not in inside]
    if missing:
        raise LookupError(f"the kernel has no module {', '.join(missing)}")
    return [by_name[name] for name in wanted if name in by_name]


def drives(tree: Path, name: str) -> bool:
    """Whether the kernel of this folder of modules has the driver ``name``, as a module or built in."""
    listed = (tree / "modules.dep").read_text().splitlines() + (tree / "modules.builtin").read_text().splitlines()
    return name.replace("-", "_") in {module_name(line.partition(":")[0]) for line in listed}


def needed_by(contents: Mapping[str, bytes]) -> dict[str, list[str]]:
    """Name of a module -> names of those that need it, itself first, from what each file (name.ko -> content) says that it
    depends on."""
    needs: dict[str, set[str]] = {}
    for file, content in contents.items():
        said = _DEPENDS.search(content)
        needs[module_name(file)] = {each.replace("-", "_") for each in said[1].decode().split(",")} if said else set()
    found = {name: [name] for name in needs}
    for name in needs:
        todo, seen = [name], {name}
        while todo:
            for needed in needs[todo.pop()] & needs.keys() - seen:
                seen.add(needed)
                todo.append(needed)
                found[needed].append(name)
    return found


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


def module_name(path: str) -> str:
    """As the kernel has it, where - and _ are the same."""
    return PurePosixPath(path).name.partition(".ko")[0].replace("-", "_")


def _regex(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*\*/", "(?:[^/]+/)*").replace(r"\*", "[^/]*")
