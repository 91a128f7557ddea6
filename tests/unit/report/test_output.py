"""A text that is written to a file: whole or not at all, and never in the place of a device."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from twinbed.render.output import write


def test_a_file_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("old")
    write("new", file)
    assert file.read_text() == "new" and list(tmp_path.iterdir()) == [file]


@pytest.mark.privileged
def test_a_device_stays_one(tmp_path: Path) -> None:
    """As root, a rename would put a file in the place of /dev/null."""
    device = tmp_path / "null"
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    write("text", device)
    assert stat.S_ISCHR(device.stat().st_mode)


def test_a_pipe_gets_the_text(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write, args=("text", pipe))
    writer.start()
    assert pipe.read_text() == "text"
    writer.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_is_replaced_and_what_it_leads_to_is_left_alone(tmp_path: Path) -> None:
    """Results may be a stranger's."""
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "page.html").symlink_to(tmp_path / "elsewhere")
    write("new", tmp_path / "page.html")
    assert (tmp_path / "elsewhere").read_text() == "mine"
    assert (tmp_path / "page.html").read_text() == "new" and not (tmp_path / "page.html").is_symlink()
