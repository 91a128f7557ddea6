"""The kernel modules that are needed, and their loading order, from the dependencies that each module lists."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


def listed(tree: Path) -> list[str]:
    """Return the sorted paths of all modules in a folder, without the suffix of xz that newer kernels use."""
    return sorted(path.relative_to(tree).as_posix().removesuffix(".xz") for path in tree.rglob("*.ko*"))


def needs(tree: Path, wanted: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the paths that each of the wanted modules needs, and each of these in turn.

    Only these modules are decompressed, for a guest's first program to load; the many others stay as they are."""
    by_name = {module_name(path): path for path in listed(tree)}
    needed: dict[str, tuple[str, ...]] = {}
    todo = list(wanted)
    while todo:
        path = todo.pop()
        if path in needed:
            continue
        packed = tree / f"{path}.xz"
        if packed.exists():
            (tree / path).write_bytes(lzma.decompress(packed.read_bytes()))
            packed.unlink()
        asks_for = _asks_for((tree / path).read_bytes())
        if missing := sorted(asks_for - by_name.keys()):
            raise LookupError(f"the kernel has no module {', '.join(missing)}, which {module_name(path)} needs")
        needed[path] = tuple(by_name[name] for name in sorted(asks_for))
        todo += needed[path]
    return needed


def named(paths: Iterable[str], names: Iterable[str], built_in: Iterable[str] = ()) -> list[str]:
    """Return the paths of the modules with these names, without those that are ``built_in`` (paths). Raises LookupError with
    the names that the kernel lacks."""
    by_name, inside = {module_name(path): path for path in paths}, {module_name(path) for path in built_in}
    wanted = [name.replace("-", "_") for name in names]
    missing = [name for name in wanted if name not in by_name and name not in inside]
    if missing:
        raise LookupError(f"the kernel has no module {', '.join(missing)}")
    return [by_name[name] for name in wanted if name in by_name]


def names(tree: Path) -> set[str]:
    """Return the names of all modules of this folder's kernel, loadable or built in."""
    built_in = (tree / "modules.builtin").read_text().split()
    return {module_name(path) for path in (*listed(tree), *built_in)}


def needed_by(contents: Mapping[str, bytes]) -> dict[str, list[str]]:
    """Return, for each module, the names of the modules that need it, itself first. ``contents``: file name to content."""
    needs = {module_name(file): _asks_for(content) for file, content in contents.items()}
    users = {name: [name] for name in needs}
    for name in needs:
        todo, seen = [name], {name}
        while todo:
            for needed in needs[todo.pop()] & needs.keys() - seen:
                seen.add(needed)
                todo.append(needed)
                users[needed].append(name)
    return users


def matching(paths: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the paths that match a pattern; * stays within a folder, ** crosses any number of folders."""
    regexes = [re.compile(_regex(pattern)) for pattern in patterns]
    return [path for path in paths if any(regex.fullmatch(path) for regex in regexes)]


def loading_order(needs: Mapping[str, Sequence[str]], paths: Iterable[str]) -> list[str]:
    """Sort the paths and all that they need, each once and after everything it needs."""
    ordered: dict[str, None] = {}

    def visit(path: str, asked_by: tuple[str, ...]) -> None:
        if path in asked_by:
            raise ValueError(f"modules depend on each other: {' '.join((*asked_by, path))}")
        for needed in needs[path]:
            if needed not in ordered:
                visit(needed, (*asked_by, path))
        ordered[path] = None

    for path in paths:
        visit(path, ())
    return list(ordered)


def module_name(path: str) -> str:
    """Return a module's name in the kernel, which takes - and _ as the same."""
    return PurePosixPath(path).name.partition(".ko")[0].replace("-", "_")


def _asks_for(content: bytes) -> set[str]:
    """Return the names in a module's list of dependencies (`modinfo -F depends`)."""
    match = _DEPENDS.search(content)
    return {name.replace("-", "_") for name in match[1].decode(errors="replace").split(",") if name} if match else set()


def _regex(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*\*/", "(?:[^/]+/)*").replace(r"\*", "[^/]*")
