"""A Tree reaches what is below a folder and nothing else: what is not plain is refused by name, and stays as it is."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from twinbed.model.error import TwinbedError
from twinbed.tree import MOST_DEPTH, NotPlain, Tree

SECRET = b"the secret of another file\n"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_bytes(SECRET)
    (tmp_path / "outside" / "folder").mkdir()
    (tmp_path / "outside" / "folder" / "file").write_bytes(SECRET)
    return tmp_path / "outside"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "results").mkdir()
    return Tree(tmp_path / "results")


def _socket(path: Path) -> None:
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


KINDS: dict[str, Callable[[Path, Path], None]] = {
    "symbolic link": lambda path, outside: path.symlink_to(outside / "file"),
    "symbolic link to a folder": lambda path, outside: path.symlink_to(outside / "folder"),
    "symbolic link to nothing": lambda path, outside: path.symlink_to(outside / "new"),
    "named pipe": lambda path, outside: os.mkfifo(path),
    "socket": lambda path, outside: _socket(path),
    "folder": lambda path, outside: (path / "inner").mkdir(parents=True),
}
USES: dict[str, Callable[[Tree, str], object]] = {
    "open": lambda tree, name: tree.open(name),
    "read": lambda tree, name: tree.read(name),
    "append": lambda tree, name: tree.append(name),
    "lock": lambda tree, name: tree.lock(name),
    "link": lambda tree, name: tree.link(name, tree, "linked"),
}
FOLDER_USES: dict[str, Callable[[Tree, str], object]] = {
    "entries": lambda tree, name: tree.entries(name),
    "files": lambda tree, name: list(tree.files(name)),
    "make": lambda tree, name: tree.make(name),
    "make below": lambda tree, name: tree.make(f"{name}/new"),
    "inside": lambda tree, name: tree.inside(name).__enter__(),
    "read": lambda tree, name: tree.read(f"{name}/file"),
    "kind": lambda tree, name: tree.kind(f"{name}/file"),
    "create": lambda tree, name: tree.create(f"{name}/file"),
    "write": lambda tree, name: tree.write(f"{name}/file", b"x"),
    "append": lambda tree, name: tree.append(f"{name}/file"),
    "lock": lambda tree, name: tree.lock(f"{name}/file"),
    "rename": lambda tree, name: tree.rename(f"{name}/file", "file"),
    "remove": lambda tree, name: tree.remove(f"{name}/file"),
    "sync": lambda tree, name: tree.sync(name),
}


def everything(folder: Path) -> Iterator[tuple[str, int, bytes]]:
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        yield str(path), about.st_mode, path.read_bytes() if stat.S_ISREG(about.st_mode) else b""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("use", USES)
def test_what_is_no_file_is_refused_and_named(kind: str, use: str, tree: Tree, outside: Path) -> None:
    KINDS[kind](tree.path / "name", outside)
    before = list(everything(outside.parent))
    with pytest.raises(NotPlain) as refused:
        USES[use](tree, "name")
    assert f"{tree.path}/name is a {kind.split(' to ')[0]}, where a file belongs" in refused.value.message
    assert list(everything(outside.parent)) == before


@pytest.mark.parametrize("kind", ["symbolic link to a folder", "symbolic link", "named pipe", "file"])
@pytest.mark.parametrize("use", FOLDER_USES)
def test_what_is_no_folder_is_refused_and_named(kind: str, use: str, tree: Tree, outside: Path) -> None:
    if kind == "file":
        (tree.path / "name").write_bytes(b"plain")
    else:
        KINDS[kind](tree.path / "name", outside)
    before = list(everything(outside.parent))
    with pytest.raises(NotPlain, match=rf"results/name is a {kind.split(' to ')[0]}, where a folder belongs"):
        FOLDER_USES[use](tree, "name")
    assert list(everything(outside.parent)) == before


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "folder"])
@pytest.mark.parametrize("name", ["name", ".name.partial"])
def test_what_is_written_is_a_file_of_its_own(kind: str, name: str, tree: Tree, outside: Path) -> None:
    KINDS[kind](tree.path / name, outside)
    before = list(everything(outside))
    tree.write("name", "written\n", sync=True)
    with tree.create("created") as file:
        file.write(b"created\n")
    assert (tree.read("name"), tree.read("created")) == (b"written\n", b"created\n")
    assert tree.entries() == {"created": "file", "name": "file"}
    assert list(everything(outside)) == before


@pytest.mark.parametrize("name", ["name", ".name.partial"])
def test_a_folder_is_never_written_over(name: str, tree: Tree, outside: Path) -> None:
    (tree.path / name / "inner").mkdir(parents=True)
    with pytest.raises(NotPlain, match="is a folder, where a file belongs"):
        tree.write("name", b"x")
    with pytest.raises(NotPlain, match="is a folder, where a file belongs"):
        tree.create(name)
    assert (tree.path / name / "inner").is_dir()


@pytest.mark.parametrize("name", ["..", "../x", "a/../x", "/etc/passwd", "a//b", ".", "a/.", "a\0b", "a/"])
def test_names_lead_nowhere_else(name: str, tree: Tree) -> None:
    for use in (*USES.values(), *FOLDER_USES.values(), lambda tree, name: tree.write(name, b"")):
        with pytest.raises(NotPlain):
            use(tree, name)
    assert not list(tree.path.iterdir())


def test_a_file_with_other_names_is_not_appended_to(tree: Tree, outside: Path) -> None:
    (tree.path / "name").hardlink_to(outside / "file")
    for use in (tree.append, tree.lock):
        with pytest.raises(NotPlain, match="has other names elsewhere"):
            use("name")
    assert tree.read("name") == (outside / "file").read_bytes() == SECRET
    tree.write("name", b"new")
    assert (outside / "file").read_bytes() == SECRET


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_a_file_of_a_third_user_is_not_appended_to(tree: Tree) -> None:
    for name, owner, folder_owner in (("third", 1234, 0), ("theirs", 1234, 1234), ("ours", 0, 1234)):
        (tree.path / name).write_bytes(b"")
        os.chown(tree.path / name, owner, owner)
        os.chown(tree.path, folder_owner, folder_owner)
        if name == "third":
            with pytest.raises(NotPlain, match="belongs to user 1234"):
                tree.append(name)
        else:
            tree.append(name).close()


def test_removing_follows_no_link(tree: Tree, outside: Path) -> None:
    (tree.path / "folder" / "inner").mkdir(parents=True)
    (tree.path / "folder" / "inner" / "link").symlink_to(outside / "folder")
    (tree.path / "link").symlink_to(outside / "folder")
    before = list(everything(outside))
    for name in ("folder", "link", "missing", "missing/below"):
        tree.remove(name)
    assert tree.entries() == {}
    assert list(everything(outside)) == before


def test_files_below_a_folder_are_listed_in_order(tree: Tree, outside: Path) -> None:
    tree.make("run/b/c")
    for name in ("run/z", "run/b/c/y", "run/b/x"):
        tree.write(name, name)
    assert [(name, about.st_size) for name, about in tree.files("run")] == [("b/c/y", 9), ("b/x", 7), ("z", 5)]
    (tree.path / "run" / "b" / "link").symlink_to(outside / "file")
    with pytest.raises(NotPlain, match="results/run/b/link is a symbolic link, where a file or folder belongs"):
        list(tree.files("run"))
    with pytest.raises(FileNotFoundError):
        list(tree.files("missing"))
    assert [name for name, _ in tree.all_below("run")] == ["b/c/y", "b/link", "b/x", "z"]


def test_folders_without_end_are_not_walked(tree: Tree) -> None:
    tree.make("/".join(["d"] * MOST_DEPTH))
    assert list(tree.files("d")) == []
    tree.make("/".join(["d"] * (MOST_DEPTH + 2)))
    with pytest.raises(NotPlain, match=f"is a folder within {MOST_DEPTH} others"):
        list(tree.files("d"))


def test_more_than_the_limit_is_not_read(tree: Tree) -> None:
    tree.write("name", b"12345")
    assert tree.read("name", most=5) == b"12345"
    with pytest.raises(NotPlain, match="has more than 4 bytes"):
        tree.read("name", most=4)
    with (tree.path / "sparse").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(NotPlain, match="has more than"):
        tree.read("sparse")


def test_the_root_may_be_reached_by_a_link(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tree.path)
    by_link = Tree(tmp_path / "link")
    by_link.make("runs/a")
    by_link.write("runs/a/run.json", "{}")
    with by_link.append("events.jsonl") as log:
        log.write(b"1\n")
    assert tree.read("runs/a/run.json") == b"{}"
    assert tree.read("events.jsonl") == b"1\n"


def test_what_is_held_open_stays_the_same_folder(tree: Tree, outside: Path) -> None:
    tree.make("runs")
    tree.write("runs/name", b"ours")
    with tree.inside("runs") as runs:
        (tree.path / "runs").rename(tree.path / "before")
        (tree.path / "runs").symlink_to(outside)
        assert runs.read("name") == b"ours"
        assert runs.entries() == {"name": "file"}
        assert runs.path == tree.path / "runs"


def test_two_that_write_the_same_never_mix(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def overtaken(descriptor: int) -> None:
        fsync(descriptor)
        with tree.create(".name.partial") as file:
            file.write(b"half of anoth")

    monkeypatch.setattr(os, "fsync", overtaken)
    with pytest.raises(FileExistsError, match="another process writes it"):
        tree.write("name", b"whole", sync=True)
    assert tree.kind("name") is None


def test_a_write_that_fails_leaves_nothing(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write("name", b"before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        tree.write("name", b"after", sync=True)
    assert tree.read("name") == b"before"
    assert tree.entries() == {"name": "file"}


def test_errors_name_the_whole_path(tree: Tree) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        tree.read("runs/a/run.json")
    assert missing.value.filename == str(tree.path / "runs")
    with pytest.raises(FileNotFoundError) as gone:
        tree.rename("one", "other")
    assert gone.value.filename == str(tree.path / "other")


def test_the_error_is_a_commands_own(tree: Tree) -> None:
    """A handler of OSErrors does not take it for a file that cannot be read."""
    (tree.path / "name").symlink_to("/dev/null")
    with pytest.raises(NotPlain) as caught:
        tree.read("name")
    assert isinstance(caught.value, TwinbedError) and not isinstance(caught.value, OSError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.advice, again.path) == (str(caught.value), caught.value.advice, tree.path / "name")


def test_folders_deeper_than_any_path_are_removed(tmp_path: Path) -> None:
    (top := tmp_path / "top" / "deep").mkdir(parents=True)
    folder = os.open(top, os.O_RDONLY)
    for _ in range(5000):
        os.mkdir("f" * 100, dir_fd=folder)
        inner = os.open("f" * 100, os.O_RDONLY, dir_fd=folder)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=inner))
        os.fchmod(folder, 0)
        os.close(folder)
        folder = inner
    os.close(folder)
    Tree(tmp_path).remove("top/deep")
    assert list((tmp_path / "top").iterdir()) == []
