"""Few images with added software: the least recently used go with their bases and keys, but none that a process uses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from twinbed.image import cache, room
from twinbed.model.image import Added


@pytest.fixture(autouse=True)
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TWINBED_CACHE", str(tmp_path))
    monkeypatch.setattr(room, "_HELD", {})
    for name in ("images", "bases", "current", "archives", "tmp"):
        (tmp_path / name).mkdir()
    return tmp_path


def made(top: Path, name: str, age_s: int, layer: str) -> Path:
    """An image with its base, as last used some time ago."""
    for kind, digest in (("bases", f"b-{name}"), ("images", name)):
        folder = top / kind / digest
        folder.mkdir()
        (folder / "manifest.json").write_text(json.dumps({"format": 2, "base": f"b-{name}", "layer": layer}))
        os.utime(folder / "manifest.json", (1e9 - age_s, 1e9 - age_s))
        (top / "current" / f"key-{kind}-{name}").symlink_to(f"../{kind}/{digest}")
    (top / "archives" / f"{name}.zst").touch()
    return top / "images" / name


def left(top: Path) -> set[str]:
    return {path.name for path in (top / "images").iterdir()}


def test_the_least_recently_used_go_with_all_that_is_theirs(top: Path) -> None:
    for age, name in enumerate(("new", "old", "older")):
        made(top, name, age, "l")
    made(top, "shared", 100, "")
    said: list[str] = []
    room.make(said.append, most=1)
    assert left(top) == {"new", "shared"}
    assert {path.name for path in (top / "bases").iterdir()} == {"b-new", "b-shared"}
    assert {path.name for path in (top / "current").iterdir()} == {
        f"key-{kind}-{name}" for kind in ("images", "bases") for name in ("new", "shared")
    }
    assert {path.name for path in (top / "archives").iterdir()} == {"new.zst", "shared.zst"}
    assert list((top / "tmp").iterdir()) == []
    assert len(said) == 2


def test_use_is_noted(top: Path) -> None:
    for age, name in enumerate(("new", "old")):
        made(top, name, age, "l")
    room.hold(top / "images/old")
    room._HELD.clear()
    room.make(lambda _: None, most=1)
    assert "old" in left(top)


HOLD = """
import sys
from pathlib import Path
from twinbed.image import room
room.hold(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_an_image_that_a_process_uses_stays_until_its_end(top: Path) -> None:
    folder = made(top, "used", 0, "l")
    process = subprocess.Popen([sys.executable, "-c", HOLD, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    room.make(lambda _: None, most=0)
    assert left(top) == {"used"}
    process.kill()
    process.communicate()
    room.make(lambda _: None, most=0)
    assert left(top) == set()


def test_what_a_kill_leaves_is_removed_by_the_next_build(top: Path) -> None:
    (top / "tmp/removed-x/rootfs").mkdir(parents=True)
    with cache.building(lambda _: None) as work:
        assert list((top / "tmp").iterdir()) == [work]


def test_keys_are_of_what_is_added_alone() -> None:
    one = Added(("a", "b"), "oci-archive:/x", "sha256:1")
    assert one.key == Added(("b", "a", "a"), "folder", "sha256:1").key
    assert len({one.key, Added(("a",)).key, Added(("a", "b")).key, Added((), "x", "sha256:1").key}) == 4
    assert not Added()
    assert str(one) == "packages: a, b; image: oci-archive:/x"
