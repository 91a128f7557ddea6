"""The import rules hold, each of them is seen to be broken when it is, and no files import each other in a circle."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from configparser import ConfigParser
from pathlib import Path

import pytest

from sources import PACKAGE, nodes, parsed

REPOSITORY = Path(__file__).parents[2]
COMMAND = (sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache")

ROOMS = "rooms import lower rooms only"
PLANTED = [
    ("model", "from twinbed.hosts import process", ROOMS),
    ("statistics", "from twinbed.model import units", ROOMS),
    ("results", "from twinbed.cli import image", ROOMS),
    ("hosts", "from twinbed import image", ROOMS),
    ("linkcheck", "from twinbed import lab", ROOMS),
    ("render", "from twinbed import analyses", ROOMS),
    ("render", "from twinbed.workloads import planted", "only the registry knows the plugins"),
    ("cli", "def f():\n    from twinbed.testbeds import fake", "only the registry knows the plugins"),
    ("analyses", "from twinbed.lab import watch", "only commands and members of fleets start the lab"),
    ("instruments", "from twinbed.hosts import agent", "plugins that plan and parse, and analyses, know no hosts"),
    ("imports", "from twinbed import links", "only testbeds, the link check and the lab know links and the image"),
    ("workloads", "from twinbed import results", "plugins and analyses are handed tables, and open no results"),
    ("testbeds", "from twinbed import study", "only what plans, runs or shows studies knows them"),
    ("metrics", "from twinbed import statistics", "contracts, metrics and what runs things compute no statistics"),
    ("render", "from twinbed import published", "printed tables are for the registry and commands"),
    ("testbeds", "from twinbed.testbeds import planted_sibling", "testbeds do not import each other"),
    ("workloads", "from twinbed.workloads import planted_sibling", "workloads do not import each other"),
    ("backgrounds", "from twinbed.backgrounds import planted_sibling", "backgrounds do not import each other"),
    ("instruments", "from twinbed.instruments import planted_sibling", "instruments do not import each other"),
    ("imports/formats", "from twinbed.imports.formats import planted_sibling", "formats do not import each other"),
    ("analyses", "from twinbed.analyses import planted_sibling", "analyses do not import each other"),
    ("workloads", "import subprocess", "only hosts start processes"),
    ("lab", "def f():\n    from subprocess import run", "only hosts start processes"),
]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the checker on the package in ``folder``, with this repository's rules."""
    return subprocess.run(
        [*COMMAND, "--config", str(REPOSITORY / ".importlinter")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def copy(folder: Path) -> Path:
    return shutil.copytree(PACKAGE, folder / "twinbed", ignore=shutil.ignore_patterns("__pycache__", "bin", "*.so"))


def test_the_rules_hold() -> None:
    done = lint(REPOSITORY / "src")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the checker says of a copy in which every rule is broken."""
    folder = tmp_path_factory.mktemp("broken")
    package = copy(folder)
    for number, (room, line, _) in enumerate(PLANTED):
        (package / room / "planted_sibling.py").write_text("")
        (package / room / f"breach_{number}.py").write_text(line + "\n")
    done = lint(folder)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("number", range(len(PLANTED)))
def test_a_broken_rule_is_found(broken: str, number: int) -> None:
    room, _, rule = PLANTED[number]
    kept_or_broken, _, breaches = broken.partition("Broken contracts")
    assert f"{rule} BROKEN" in kept_or_broken
    sections = re.split(r"\n([^\n]+)\n-+\n", breaches)
    of_the_rule = dict(zip(sections[1::2], sections[2::2], strict=True))[rule]
    assert f"twinbed.{room.replace('/', '.')}.breach_{number}" in of_the_rule


def test_every_rule_is_broken_once() -> None:
    rules = ConfigParser()
    rules.read(REPOSITORY / ".importlinter")
    assert {rule for _, _, rule in PLANTED} == {rules[section]["name"] for section in rules.sections() if ":" in section}


@pytest.mark.parametrize("path", ["planted/__init__.py", "planted.py"])
def test_a_room_that_no_rule_names_is_found(tmp_path: Path, path: str) -> None:
    planted = copy(tmp_path) / path
    planted.parent.mkdir(exist_ok=True)
    planted.write_text("")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{ROOMS} BROKEN" in done.stdout
    assert "twinbed.planted" in done.stdout


def test_no_files_import_each_other_in_a_circle() -> None:
    """Imports inside functions count, those for type checkers alone do not."""
    nodes()
    assert not set(circles(imports(PACKAGE)))


def test_a_circle_is_found(tmp_path: Path) -> None:
    package = tmp_path / "twinbed"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "apart.py").write_text("import twinbed.planted_one\n")
    (package / "planted_one.py").write_text("from twinbed import planted_two\n")
    (package / "planted_two.py").write_text("def f():\n    from twinbed.planted_three import a\n")
    (package / "planted_three.py").write_text("if True:\n    import twinbed.planted_one\n")
    found = set(circles(imports(package)))
    assert found == {frozenset(f"twinbed.planted_{name}" for name in ("one", "two", "three"))}


def imports(package: Path) -> dict[str, set[str]]:
    """Module -> modules of the package that it imports by its own statements."""
    files = {}
    for file in package.rglob("*.py"):
        parts = file.relative_to(package.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return {module: {name for name in imported(parsed(file), files.keys()) if name != module} for module, file in files.items()}


def imported(node: ast.AST, modules: Collection[str]) -> Iterator[str]:
    """``from a import b`` is an import of ``a.b`` where that is a module, else of ``a``."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        for child in node.orelse:
            yield from imported(child, modules)
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            if name in modules:
                yield name
            elif node.module in modules and name != "twinbed._core":
                yield str(node.module)
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):  # which hold no statements
            yield from imported(child, modules)


def circles(graph: Mapping[str, set[str]]) -> Iterator[frozenset[str]]:
    """Strongly connected components of two modules or more: what is reached from a module and reaches it."""
    reached = {module: reach(graph, module) for module in graph}
    for module in graph:
        circle = frozenset(other for other in reached[module] if module in reached[other])
        if circle and module == min(circle):
            yield circle


def reach(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """Modules that imports lead to from ``start``; itself too, where they lead back."""
    modules: set[str] = set()
    todo = [start]
    while todo:
        for module in graph[todo.pop()] - modules:
            modules.add(module)
            todo.append(module)
    return modules
