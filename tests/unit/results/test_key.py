"""The key of tables follows every file that extraction may run, and no other."""

from __future__ import annotations

import ast
import functools
import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import twinbed
from sources import parsed
from twinbed.registry import PLUGINS
from twinbed.results.extract import key as closure_of
from twinbed.results.extract.key import closure, code, code_key, imported, source_files

PACKAGE = Path(twinbed.__file__).parent
EXTRACTING = [*PLUGINS.read.values(), *PLUGINS.accompanying.values()]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "twinbed"
    return shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__", "bin", "*.so"))


def test_an_edit_of_any_file_that_extraction_runs_changes_the_key(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is the hash of all of them; one of each package is edited."""
    # Of hundreds of files one is another than the last time.
    monkeypatch.setattr(closure_of, "imported", functools.cache(lambda source: tuple(imported(source))))
    before = code_key(EXTRACTING, copy)
    part_of_it = code(EXTRACTING, copy)
    assert {"twinbed.statistics.two_clocks", "twinbed.readers.latency.clocks"} <= part_of_it.keys()
    files = source_files(copy)
    assert code_key(EXTRACTING, copy) == hashed(part_of_it, copy), "of nothing but the sources, whole, and the core"
    for module, source in {module.rpartition(".")[0]: (module, source) for module, source in part_of_it.items()}.values():
        file = files[module]
        file.write_bytes(source + b"# edited\n")
        assert code_key(EXTRACTING, copy) != before, module
        file.write_bytes(source)
    assert code_key(EXTRACTING, copy) == before


def hashed(sources: dict[str, bytes], package: Path) -> str:
    core = {file.name: file.read_bytes() for file in package.glob("_core*.so")}
    parts = [f"{name}\0".encode() + content + b"\0" for each in (sources, core) for name, content in sorted(each.items())]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_edits_of_all_other_files_leave_the_key(copy: Path) -> None:
    before = code_key(EXTRACTING, copy)
    part_of_it = code(EXTRACTING, copy)
    others = {module: file for module, file in source_files(copy).items() if module not in part_of_it}
    assert {"twinbed.registry", "twinbed.analyses.compare", "twinbed.statistics.anova"} <= others.keys()
    for file in others.values():
        file.write_bytes(file.read_bytes() + b"# edited\n")
    assert code_key(EXTRACTING, copy) == before


def test_this_program_has_the_key_of_its_files() -> None:
    assert code_key(EXTRACTING) == code_key(EXTRACTING) == code_key(EXTRACTING, PACKAGE)
    assert code_key(EXTRACTING[:1]) != code_key(EXTRACTING)


def test_all_of_the_formats_are_part_of_it() -> None:
    formats = {type(each).__module__ for each in PLUGINS.formats.values()}
    assert formats <= code(EXTRACTING).keys()


def test_what_extraction_never_runs_is_no_part_of_it() -> None:
    rooms = {module.split(".")[1] for module in code(EXTRACTING) if "." in module}
    assert not rooms & {"analyses", "cli", "design", "hosts", "image", "lab", "links", "registry", "render", "testbeds"}


def test_another_core_is_another_key(copy: Path) -> None:
    before = code_key(EXTRACTING, copy)
    core = copy / "_core.abi3.so"
    core.write_bytes(b"another")
    assert code_key(EXTRACTING, copy) != before
    core.unlink()


def test_a_plugin_from_elsewhere_counts_with_its_file() -> None:
    class Planted:
        """Stands for a plugin of another distribution."""

    assert code([Planted()])[__name__] == Path(__file__).read_bytes()


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("import a.b", {"a.b"}),
        ("import a.b as c, d", {"a.b", "d"}),
        ("from a import b as c, d", {"a", "a.b", "a.d"}),
        ("from a.b import (\n    c,  # why\n    d as e,\n)\n", {"a.b", "a.b.c", "a.b.d"}),
        ("def f():\n    from a import b\n", {"a", "a.b"}),
        ("if TYPE_CHECKING:\n    import a\n\n    from b import c\nimport d\n", {"d"}),
        ("def f():\n    if TYPE_CHECKING:\n        import a\n    import b\n", {"b"}),
        ("important = 1\nfromage = 2\n", set()),
    ],
)
def test_imports_are_found(source: str, modules: set[str]) -> None:
    assert set(imported(source.encode())) == modules


def test_imports_are_found_as_a_parser_finds_them() -> None:
    files = source_files(PACKAGE)
    for module, file in files.items():
        by_parser = set(by_statements(parsed(file))) & files.keys()
        assert by_parser <= set(imported(file.read_bytes())), module


def by_statements(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        for child in node.orelse:
            yield from by_statements(child)
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0 and node.module is not None, "a relative import would not be found"
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):  # which hold no statements
            yield from by_statements(child)


def test_a_root_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        closure(["twinbed.moved.away"], source_files(PACKAGE))
