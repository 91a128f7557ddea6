"""Files that runs have in common are kept once, and nothing is taken for the same that is not."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from twinbed.results import contents
from twinbed.results.contents import forget, share


def of_run(results: Path, name: str, **files: bytes) -> Path:
    run = results / "runs" / name
    (run / "artifacts").mkdir(parents=True)
    for file, content in files.items():
        (run / "artifacts" / file).write_bytes(content)
    return run


def inodes(*files: Path) -> set[int]:
    return {file.stat().st_ino for file in files}


def test_the_same_bytes_are_one_file(tmp_path: Path) -> None:
    one = of_run(tmp_path, "one", a=b"same", b=b"own", empty=b"")
    other = of_run(tmp_path, "other", c=b"same", d=b"other", empty=b"")
    assert (share(one, tmp_path), share(other, tmp_path)) == (0, 4)
    assert len(inodes(one / "artifacts/a", other / "artifacts/c")) == 1
    assert (other / "artifacts/c").read_bytes() == b"same"
    assert len(inodes(one / "artifacts/empty", other / "artifacts/empty")) == 2
    assert share(other, tmp_path) == 0, "the same again does nothing"
    assert sorted(path.name for path in (other / "artifacts").iterdir()) == ["c", "d", "empty"]


def test_within_one_run(tmp_path: Path) -> None:
    one = of_run(tmp_path, "one", a=b"same", b=b"same")
    assert share(one, tmp_path) == 4 and len(inodes(one / "artifacts/a", one / "artifacts/b")) == 1


def test_what_a_crash_left_of_a_file_is_not_taken_for_it(tmp_path: Path) -> None:
    share(of_run(tmp_path, "one", a=b"same"), tmp_path)
    (content,) = (tmp_path / "contents").iterdir()
    content.write_bytes(b"")  # as of a machine that went down before the file was synced
    other = of_run(tmp_path, "other", a=b"same")
    assert share(other, tmp_path) == 0
    assert (other / "artifacts/a").read_bytes() == content.read_bytes() == b"same"


def test_files_that_others_may_read_otherwise_are_not_the_same(tmp_path: Path) -> None:
    one, other = of_run(tmp_path, "one", a=b"same"), of_run(tmp_path, "other", a=b"same")
    (one / "artifacts/a").chmod(0o600)
    assert share(one, tmp_path) == share(other, tmp_path) == 0


def test_large_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MOST_BYTES", 3)
    for name in ("one", "other"):
        assert share(of_run(tmp_path, name, a=b"same", b=b"abc"), tmp_path) == (3 if name == "other" else 0)


def test_without_hard_links_there_are_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    for name in ("one", "other"):
        run = of_run(tmp_path, name, a=b"same")
        assert share(run, tmp_path) == 0
        assert [path.name for path in (run / "artifacts").iterdir()] == ["a"]
        assert (run / "artifacts/a").read_bytes() == b"same"


def test_links_are_not_followed(tmp_path: Path) -> None:
    run = of_run(tmp_path, "one")
    (tmp_path / "secret").write_text("x")
    (run / "artifacts/a").symlink_to(tmp_path / "secret")
    assert share(run, tmp_path) == 0 and not any((tmp_path / "contents").iterdir())


def test_what_no_run_has_any_more_is_forgotten(tmp_path: Path) -> None:
    one, other = of_run(tmp_path, "one", a=b"same", b=b"own"), of_run(tmp_path, "other", a=b"same")
    share(one, tmp_path)
    share(other, tmp_path)
    for name in ("a", "b"):
        (one / "artifacts" / name).unlink()
    forget(tmp_path)
    (left,) = (tmp_path / "contents").iterdir()
    assert left.read_bytes() == b"same"
