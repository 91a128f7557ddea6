"""Which files of a folder count, and what hostile folders cannot do."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from twinbed.imports.layout.names import level_key, natural, shown
from twinbed.imports.layout.run_key import ImportRefused
from twinbed.imports.layout.walk import walk


def test_files_are_found_in_natural_order(tmp_path: Path) -> None:
    for name in ("b/10.txt", "b/9.txt", "a.txt", "results/x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "older" / "runs").mkdir(parents=True)
    (tmp_path / "older" / "study.json").touch()
    entries, (older,) = walk(tmp_path, without=[tmp_path / "results"])
    assert (older.path, older.reason) == ("older", "holds results of twinbed; add them with `twinbed merge`")
    assert [entry.path for entry in entries] == ["a.txt", "b/9.txt", "b/10.txt"]
    assert [entry.bytes for entry in entries] == [5, 7, 8]


def test_what_is_no_file_is_named_and_never_opened(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_text("secret")
    (inside / "real").write_text("x")
    (inside / "link").symlink_to("real")
    (inside / "out").symlink_to(tmp_path / "secret")
    (inside / "loop").symlink_to(".")
    (inside / "nowhere").symlink_to("nowhere")
    (inside / ".hidden").write_text("x")
    os.mkfifo(inside / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(inside / "socket"))
    entries, left = walk(inside)
    assert [entry.path for entry in entries] == ["link", "real"]
    reasons = {each.path: each.reason for each in left}
    assert reasons == {
        ".hidden": "is hidden",
        "fifo": "is not a regular file",
        "loop": "is a link to a folder",
        "nowhere": reasons["nowhere"],
        "out": "is a link that leads out of the folder",
        "socket": "is not a regular file",
    }
    assert "Too many levels" in reasons["nowhere"]


def test_more_files_than_are_allowed_are_refused_with_the_number(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number}").touch()
    with pytest.raises(ImportRefused, match="more than 10 files and folders"):
        walk(tmp_path, most=10)
    with pytest.raises(ImportRefused, match="No such file"):
        walk(tmp_path / "none")


def test_names_that_are_no_text_are_shown_escaped(tmp_path: Path) -> None:
    (Path(os.fsdecode(bytes(tmp_path) + b"/\xff\x1b[31m\nb"))).touch()
    ((entry,), _) = walk(tmp_path)
    assert shown(entry.path) == r"\xff\x1b[31m\nb"
    assert shown("grün\u202e") == r"grün\u202e"
    assert sorted(["run10", "run9", "run"], key=natural) == ["run", "run9", "run10"]


def test_levels_are_in_the_order_of_their_size() -> None:
    for ordered in (
        [9, 10, 10.5, "500B", "9kB", "10kB", "1MiB", "auto", None],
        ["100mbit", "1gbit", "10gbit"],
        ["20us", "5ms", "1s", "2m"],
        ["9", "10", "100", "auto"],
        ["run9", "run10"],
    ):
        assert sorted(sorted(ordered, key=str), key=level_key) == ordered
