"""Rooms that work below folders of results open, list and change files there by a ``Tree`` alone (``twinbed.tree``)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

import pytest

from sources import nodes

ROOMS = ("analyses", "api", "cli", "exporting", "fleet", "lab", "observations", "report", "results")
FILES = ("imports/build.py", "registry.py", "render/output.py")
OTHERS: dict[str, tuple[str, set[str]]] = {
    "analyses/calibrate/command.py": ("makes the folder above the file that the user names", {"file.parent.mkdir"}),
    "analyses/calibrate/saved.py": ("reads the file that the user names", {"file.read_bytes"}),
    "cli/conclusion.py": ("reads this program's own source", {"file.read_bytes", "os.walk"}),
    "cli/export.py": (
        "writes into a folder that it has just made",
        {"made.glob"},
    ),
    "cli/help.py": ("lays out help, by click's own method", {"formatter.write_text"}),
    "cli/next_step.py": (
        "looks for studies and results in the folder that the user is in",
        {"(results / 'runs').iterdir", "file.open", "folder.glob", "part.glob"},
    ),
    "cli/imports.py": ("edits the manifest that the user names", {"open"}),
    "cli/init.py": ("writes the study that the user names", {"file.open"}),
    "cli/main.py": ("opens /dev/null", {"os.open"}),
    "cli/studies.py": (
        "reads shipped studies and their files, and writes the copy that the user names",
        {"file.read_text", "source.read_bytes", "target.open", "target.parent.mkdir", "target.read_bytes"},
    ),
    "cli/studyfile.py": ("reads the study that the user names", {"path.open"}),
    "cli/sweep.py": ("removes members' own folders, in this user's cache", {"shutil.rmtree"}),
    "cli/volume.py": ("opens /dev/null", {"Path(os.devnull).open"}),
    "exporting/figures.py": (
        "writes into a folder that the export has just made",
        {"(folder / f'{name}{suffix}').write_bytes"},
    ),
    "exporting/flent.py": (
        "writes into a folder that the export has just made",
        {"(folder / f'{name}.flent.gz').write_bytes"},
    ),
    "exporting/folder.py": ("makes the folder that the user names", {"folder.mkdir"}),
    "exporting/reimport.py": (
        "writes into a folder that the export has just made",
        {"(folder / MANIFEST).write_text", "(folder / name).mkdir", "file.open"},
    ),
    "fleet/arrival.py": (
        "writes into a run's folder that it has just made",
        {"(folder / 'run.json').read_bytes", "(folder / path).open", "path.open", "path.parent.mkdir"},
    ),
    "fleet/member.py": (
        "works in the member's own folder, in this user's cache",
        {
            "(folder / piece.path).open",
            "Path('/proc/cpuinfo').read_text",
            "Path('/proc/meminfo').read_text",
            "_spools().iterdir",
            "open",
            "check.read_text",
            "folder.rglob",
            "path.open",
            "shutil.rmtree",
            "spool.glob",
        },
    ),
    "imports/build.py": (
        "copies files that the user imports into a run's folder that it has just made",
        {"os.link", "os.open", "where.parent.mkdir"},
    ),
    "lab/matrix.py": ("reads what a check has just collected", {"file.read_bytes", "site.artifacts.glob"}),
    "lab/preflight.py": ("looks for programs and free space", {"path.read_text", "restricted.read_text"}),
    "lab/suite.py": ("writes a file for a format into a folder that it was given for that", {"path.write_bytes"}),
    "observations/source.py": ("reads the table that the user names", {"pa.input_stream", "source.open"}),
    "render/output.py": ("writes the file, device or pipe that the user names", {"file.write_text", "output.open"}),
    "results/archive/unpack.py": (
        "unpacks into a folder of its own",
        {"partial.mkdir", "partial.rename", "shutil.rmtree", "target.open", "target.parent.mkdir", "tempfile.gettempdir"},
    ),
    "results/bucket/keeper.py": (
        "makes the folder that the user names, and reads a temporary file of its own",
        {"content.open", "self._tree.path.mkdir"},
    ),
    "results/bucket/objects.py": ("puts a temporary file of its own", {"file.open"}),
    "results/bucket/publish.py": (
        "packs into a temporary file of its own",
        {"pa.OSFile", "tarfile.open", "tempfile.NamedTemporaryFile"},
    ),
    "results/extract/kernel.py": (
        "reads artifacts after refuse_strange has walked them",
        {"clock.read_bytes", "log.read_text"},
    ),
    "results/extract/key.py": (
        "reads this program's own source, and sizes of artifacts",
        {"file.read_bytes", "files[module].read_bytes", "os.stat", "os.walk", "package.glob"},
    ),
    "results/extract/rows.py": ("reads artifacts after refuse_strange has walked them", {"file.read_bytes"}),
    "results/folder.py": (
        "makes and gives up the folder that the user names",
        {"folder.rmdir", "self.path.mkdir", "self.runs.rmdir"},
    ),
    "results/keep/missing.py": ("looks for the file that the user names", {"run.parent.glob"}),
    "results/merge/write.py": (
        "makes the folder above the one that the user names",
        {"folder.iterdir", "folder.parent.mkdir", "os.utime", "shutil.copyfileobj"},
    ),
    "results/parquet.py": (
        "opens a temporary file of its own, and asks the kernel for memory",
        {"file.read_text", "pa.OSFile"},
    ),
}
"""Files that open something else than what is below results: what, and by which calls."""
METHODS = {
    *("read_text", "write_text", "read_bytes", "write_bytes", "glob", "rglob", "iterdir", "unlink", "rmdir", "mkdir"),
    *("touch", "symlink_to", "hardlink_to", "chmod", "rmtree"),
}
ONE_ARGUMENT = {"rename", "replace"}
"""Methods of a Path; those of a Tree and of a text have two."""
MODULES = {
    "os": re.compile(
        r"open|walk|fwalk|listdir|scandir|stat|lstat|link|symlink|rename|replace|remove|unlink|rmdir|mkdir|makedirs|truncate|chmod|chown|utime"
    ),
    "shutil": re.compile(r"rmtree|copy\w*|move|make_archive|unpack_archive|chown"),
    "tempfile": re.compile(r".*"),
    "io": re.compile(r"open|FileIO"),
    "pq": re.compile(r"read_table|read_metadata|read_schema|write_to_dataset"),
    "pa": re.compile(r"OSFile|memory_map|input_stream|output_stream"),
}
MODE = re.compile(r"[rwaxbt+]{1,3}")


def opened(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and call, of every call that opens, lists or changes a file by its path."""
    for node in nodes:
        if isinstance(node, ast.Call) and _by_path(node):
            yield node.lineno, ast.unparse(node.func)


def _by_path(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "open"
    if not isinstance(function, ast.Attribute):
        return False
    name = function.attr
    if isinstance(function.value, ast.Name) and function.value.id in MODULES:
        return MODULES[function.value.id].fullmatch(name) is not None
    if name == "open":
        first = call.args[0] if call.args else None
        is_mode = isinstance(first, ast.Constant) and isinstance(first.value, str) and MODE.fullmatch(first.value)
        return not call.args or bool(is_mode) or any(each.arg in ("mode", "encoding") for each in call.keywords)
    return name in METHODS or (name in ONE_ARGUMENT and len(call.args) == 1 and not call.keywords)


def test_what_is_below_results_is_reached_by_a_tree() -> None:
    found = {name: list(opened(each)) for name, each in nodes().items() if name in FILES or name.split("/")[0] in ROOMS}
    assert found.keys() >= {*FILES} and {name.split("/")[0] for name in found} >= {*ROOMS}
    allowed = {name: calls for name, (_, calls) in OTHERS.items()}
    by_path = [
        f"{name}:{line}: {call}" for name, calls in found.items() for line, call in calls if call not in allowed.get(name, ())
    ]
    assert not by_path, "open it by a Tree (twinbed.tree), or say in OTHERS what it opens:\n" + "\n".join(by_path)
    unused = {name: calls - {call for _, call in found[name]} for name, calls in allowed.items()}
    assert not any(unused.values()), f"they are not called any more: {unused}"


@pytest.mark.parametrize(
    "line",
    [
        "open(results / 'study.json')",
        "(results / 'study.json').open()",
        "(results / 'study.json').open('rb')",
        "file.open(encoding='utf-8')",
        "file.read_text()",
        "file.write_bytes(b'')",
        "folder.glob('*')",
        "[*folder.iterdir()]",
        "partial.replace(file)",
        "partial.rename(file)",
        "file.unlink(missing_ok=True)",
        "folder.mkdir()",
        "os.open(file, os.O_RDONLY)",
        "os.scandir(folder)",
        "os.link(one, other)",
        "shutil.rmtree(folder)",
        "shutil.copy2(one, other)",
        "pq.read_table(file)",
        "pa.OSFile(str(file))",
    ],
)
def test_each_way_around_it_is_seen(line: str) -> None:
    assert list(opened(ast.walk(ast.parse(line))))


@pytest.mark.parametrize(
    "line",
    [
        "tree.open(name)",
        "tree.read('study.json')",
        "tree.rename(one, other)",
        "text.replace('a', 'b')",
        "replace(store, path=path)",
        "folder.tree.write(name, text)",
        "os.fsync(file)",
        "shutil.which('tc')",
        "pq.ParquetFile(tree.open(name))",
    ],
)
def test_what_a_tree_does_is_none(line: str) -> None:
    assert not list(opened(ast.walk(ast.parse(line))))
