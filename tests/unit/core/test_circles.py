"""No Rust source file depends, over any number of others, on itself.

A file depends on the files that define what its paths name, and on those that the paths lead through. That a module exports its
children's names (`pub use`) makes it depend on none of them: a parent may gather names, it may not own what its children need.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CRATES = ("core", "preload", "probe", "python")

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_STATEMENT = re.compile(
    rf"(?P<public>\bpub(?:\([a-z: ]+\))?\s+)?\buse\s+(?P<tree>[^;]+);|\bmod\s+(?P<module>{_NAME})\s*{{|[{{}}]"
)
_ELSEWHERE = re.compile(rf'#\[path = ""\]\s*(?:pub(?:\([a-z]+\))?\s+)?mod\s+({_NAME});')
_PATH = re.compile(rf"(?<![:\w])(?:{_NAME})(?:::{_NAME})+")
_LITERALS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\\n])'""", re.DOTALL
)

Module = tuple[str, ...]


@dataclass
class File:
    """What the text of one file names, each as a path and the module it is written in."""

    path: Path
    exports: dict[str, Module] = field(default_factory=dict)
    globs: list[Module] = field(default_factory=list)
    aliases: dict[str, Module] = field(default_factory=dict)
    paths: set[Module] = field(default_factory=set)
    elsewhere: set[Module] = field(default_factory=set)


def _leaves(tree: str, prefix: Module = ()) -> Iterator[tuple[Module, str]]:
    """The paths of a `use` tree, each with the name it is bound to."""
    tree = tree.strip()
    if (at := tree.find("{")) >= 0:
        before = tuple(part.strip() for part in tree[:at].split("::") if part.strip())
        inner, depth, start = tree[at + 1 : tree.rindex("}")], 0, 0
        for place, sign in enumerate(inner + ","):
            depth += (sign == "{") - (sign == "}")
            if sign == "," and depth == 0:
                if inner[start:place].strip():
                    yield from _leaves(inner[start:place], prefix + before)
                start = place + 1
        return
    path, _, alias = tree.partition(" as ")
    parts = prefix + tuple(part.strip() for part in path.split("::") if part.strip())
    if parts[-1] == "self":
        parts = parts[:-1]
    yield parts, alias.strip() or parts[-1]


def _absolute(path: Module, module: Module, modules: set[Module], names: dict[str, Module]) -> Module | None:
    """A path from the crate's root; none for what is not of this crate."""
    first, rest = path[0], path[1:]
    if first == "crate":
        return rest
    if first == "self":
        return module + rest
    if first == "super":
        while path and path[0] == "super":
            module, path = module[:-1], path[1:]
        return module + path
    if first in names:
        return names[first] + rest
    return module + path if (*module, first) in modules else None


def _read(path: Path, module: Module, modules: set[Module]) -> File:
    text = _LITERALS.sub(lambda found: "" if found[0].startswith("/") else '""', path.read_text())
    file = File(path)
    file.elsewhere.update((*module, name) for name in _ELSEWHERE.findall(text))
    inline: list[str | None] = []
    pieces: list[tuple[str, Module]] = []
    start = 0
    for found in _STATEMENT.finditer(text):
        here = module + tuple(name for name in inline if name)
        pieces.append((text[start : found.start()], here))
        start = found.end()
        if tree := found["tree"]:
            for leaf, name in _leaves(tree):
                target = _absolute(leaf, here, modules, {})
                if target is None:
                    continue
                if here != module:
                    file.paths.add(target[:-1] if name == "*" else target)
                elif name == "*":
                    file.globs.append(target[:-1])
                elif found["public"]:
                    file.exports[name] = target
                else:
                    file.aliases[name] = target
        elif found["module"]:
            inline.append(found["module"])
        elif found[0] == "{":
            inline.append(None)
        elif inline:
            inline.pop()
    pieces.append((text[start:], module))
    for piece, here in pieces:
        for found in _PATH.finditer(piece):
            target = _absolute(tuple(found[0].split("::")), here, modules, file.aliases)
            if target is not None:
                file.paths.add(target)
    # A module that is only brought in by name counts through what is named of it.
    file.paths.update(target for target in file.aliases.values() if target not in modules)
    return file


def _modules(path: Module, files: dict[Module, File]) -> Iterator[Module]:
    """The modules whose files a path leads through: the one that defines what it names, and those that export it again."""
    module: Module = ()
    seen: set[Module] = set()
    rest = path
    while rest and path not in seen:
        while rest and (*module, rest[0]) in files:
            module, rest = (*module, rest[0]), rest[1:]
        yield module
        seen.add(path)
        if rest and (target := files[module].exports.get(rest[0])):
            path = rest = (*target, *rest[1:])
            module = ()


def _module(path: Path, source: Path) -> Module:
    parts = path.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


def dependencies(source: Path) -> dict[Path, set[Path]]:
    """Of each file of a crate, the other files that define what it names."""
    paths = {_module(path, source): path for path in sorted(source.rglob("*.rs"))}
    files = {module: _read(path, module, set(paths)) for module, path in paths.items()}
    # Modules whose file is another crate's: it depends on nothing here.
    elsewhere = {other for file in files.values() for other in file.elsewhere}
    edges: dict[Path, set[Path]] = {}
    for module, file in files.items():
        file.paths = {path for path in file.paths if not any(path[: len(other)] == other for other in elsewhere)}
        named = file.paths | {glob for glob in file.globs if glob != module}
        needed = {paths[other] for path in named for other in _modules(path, files)}
        edges[file.path.relative_to(source)] = {path.relative_to(source) for path in needed if path != file.path}
    return edges


def circles(edges: dict[Path, set[Path]]) -> list[list[Path]]:
    """The sets of files each of which depends on every other one of its set."""

    def reached(start: Path) -> set[Path]:
        seen: set[Path] = set()
        ahead = [start]
        while ahead:
            for path in edges[ahead.pop()] - seen:
                seen.add(path)
                ahead.append(path)
        return seen

    reach = {path: reached(path) for path in edges}
    sets = {frozenset(other for other in reach[path] if path in reach[other]) for path in edges if path in reach[path]}
    return sorted(sorted(circle) for circle in sets)


@pytest.mark.parametrize("crate", CRATES)
def test_no_circle_of_files(crate: str) -> None:
    found = circles(dependencies(ROOT / "crates" / crate / "src"))
    texts = {" ".join(str(path) for path in circle) for circle in found}
    assert texts == set()


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "lib.rs").write_text("mod a;\nmod b;\npub use a::One;\n")
    (tmp_path / "a.rs").write_text("use crate::b::{self, Two};\npub struct One(Two);\n")
    (tmp_path / "b.rs").write_text("pub struct Two;\nmod tests {\n    use super::*;\n}\n")
    assert circles(dependencies(tmp_path)) == []
    (tmp_path / "b.rs").write_text("// crate::a\npub struct Two(Option<Box<crate::One>>);\n")
    assert circles(dependencies(tmp_path)) == [[Path("a.rs"), Path("b.rs")]]
