"""Root with the cache of another user, who tries what a real one can: refused, and nothing of root's is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from twinbed.hosts import owned
from twinbed.hosts.cache import OF_ROOT, cache_root, keep, recall
from twinbed.hosts.error import HostError
from twinbed.image import cache

pytestmark = pytest.mark.privileged

USER = 61234
"""No account has it."""
AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs", "--bounding-set=-all")
PLANTED = {
    "an empty cache": "mkdir cache",
    "tmp to a folder of root's": "mkdir cache; ln -s $ROOTS cache/tmp",
    "lock to a file of root's": "mkdir cache; ln -s $ROOTS/secret cache/lock",
    "build.log to a file of root's": "mkdir cache; ln -s $ROOTS/secret cache/build.log",
    "current to a folder of root's": "mkdir cache; ln -s $ROOTS cache/current",
    "an image to a folder of root's": "mkdir -p cache/images; ln -s $ROOTS cache/images/d1",
    "the cache to a folder of root's": "ln -s $ROOTS cache",
    "nothing": "true",
}
"""What a user does in the home folder before root comes, as sh has it."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for path in (tmp_path, *tmp_path.parents):
        path.chmod(0o755)
        if path.name.startswith("pytest-of"):
            break
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, USER, USER)
    return home


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[Path]:
    """A folder of root's, which is found as it was."""
    roots = tmp_path / "roots"
    (roots / "tmp" / "kept").mkdir(parents=True)
    (roots / "secret").write_text("kept")
    yield roots
    assert sorted(str(path.relative_to(roots)) for path in roots.rglob("*")) == ["secret", "tmp", "tmp/kept"]
    assert (roots / "secret").read_text() == "kept"


def build(top: Path) -> subprocess.CompletedProcess[str]:
    """As root, what was advised until this was found."""
    argv = [sys.executable, "-m", "twinbed.image"]
    environment = {**os.environ, "TWINBED_CACHE": str(top)}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_root_does_not_build_in_a_user_s_cache(planted: str, home: Path, roots: Path) -> None:
    environment = {**os.environ, "ROOTS": str(roots)}
    subprocess.run([*AS_USER, "sh", "-ec", planted], cwd=home, env=environment, check=True)
    before = sorted(home.rglob("*"))
    done = build(home / "cache")
    assert done.returncode != 0
    why, advice = done.stderr.splitlines()
    assert f"{home} belongs to user {USER}, who can change it, not to user 0" in why
    assert advice.strip().startswith(f"env -u TWINBED_CACHE {sys.executable} -m twinbed.image ") and str(OF_ROOT) in advice
    assert sorted(home.rglob("*")) == before, "not even a lock is made"


def test_a_cache_that_is_swapped_again_and_again_is_refused_unless_it_is_root_s(
    home: Path, roots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder like /tmp, where a user may swap what is the user's own. ``roots`` finds nothing swept or written."""
    top = home / "cache"
    os.chown(home, 0, 0)
    home.chmod(0o1777)
    swap = f"while :; do rm -rf cache; mkdir cache; rmdir cache; ln -s {roots} cache; done"
    monkeypatch.setenv("TWINBED_CACHE", str(top))
    refused = 0
    with subprocess.Popen([*AS_USER, "sh", "-c", swap], cwd=home, stderr=subprocess.DEVNULL) as user:
        for _ in range(500):
            try:
                with cache.building(lambda _: None):
                    assert top.lstat().st_uid == 0 and not top.is_symlink(), "made between two swaps, which ends them"
                shutil.rmtree(top)
            except (HostError, cache.ImageFailed):
                refused += 1
        user.kill()
    assert refused


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of root's own."""
    top = tmp_path / "own"
    monkeypatch.setenv("TWINBED_CACHE", str(top))
    return top


def published(top: Path) -> Path:
    with cache.building(lambda _: None) as work:
        (work / "image").mkdir()
        return cache.publish(work / "image", "images", "key", {"digest": "d1"})


def _give_away(top: Path) -> None:
    os.chown(top / "images/d1", USER, USER)


def _open_up(top: Path) -> None:
    (top / "images/d1").chmod(0o775)


def _lead_away(top: Path) -> None:
    (top / "current/key").unlink()
    (top / "current/key").symlink_to(top / "images/d1")


def _lead_up(top: Path) -> None:
    (top / "current/key").unlink()
    (top / "current/key").symlink_to("../images/..")


def _link_image(top: Path) -> None:
    (top / "images/d1").rename(top / "elsewhere")
    (top / "images/d1").symlink_to(top / "elsewhere")


def _link_current(top: Path) -> None:
    (top / "current").rename(top / "elsewhere")
    (top / "current").symlink_to(top / "elsewhere")


def _link_images(top: Path) -> None:
    (top / "images").rename(top / "elsewhere")
    (top / "images").symlink_to(top / "elsewhere")


@pytest.mark.parametrize(
    "change",
    [_give_away, _open_up, _lead_away, _lead_up, _link_image, _link_current, _link_images],
    ids=lambda each: each.__name__,
)
def test_only_a_finished_folder_of_root_s_is_an_image(own: Path, change: Callable[[Path], None]) -> None:
    final = published(own)
    assert cache.current("key") == final
    change(own)
    assert cache.current("key") is None


@pytest.mark.parametrize("name", ["tmp", "images", "bases", "current", "checked"])
def test_no_folder_of_the_cache_is_a_link(name: str, own: Path, roots: Path) -> None:
    own.mkdir()
    (own / name).symlink_to(roots)
    with pytest.raises(HostError, match=f"{name} must be a folder, not a link or a file"), cache.building(lambda _: None):
        pass


def test_no_lock_and_no_note_is_written_through_a_link(own: Path, roots: Path) -> None:
    published(own)
    (own / "lock").unlink()
    (own / "lock").symlink_to(roots / "secret")
    with pytest.raises(cache.ImageFailed, match="lock: cannot be written"), cache.building(lambda _: None):
        pass
    note = own / "nics" / "one.json"
    keep(note, {"works": True})
    note.unlink()
    note.symlink_to(roots / "secret")
    note.with_suffix(f".{os.getpid()}").symlink_to(roots / "secret")
    assert recall(note) is None
    keep(note, {"works": False})
    assert recall(note) == {"works": False} and not note.is_symlink()


def test_what_lies_in_tmp_is_removed_but_not_what_links_there_lead_to(own: Path, roots: Path) -> None:
    published(own)
    (own / "tmp/link").symlink_to(roots)
    (own / "tmp/file").touch()
    with cache.building(lambda _: None) as work:
        assert list((own / "tmp").iterdir()) == [work]


def test_a_place_that_others_may_write_is_refused_with_the_command(own: Path) -> None:
    own.mkdir()
    own.chmod(0o775)
    with pytest.raises(HostError, match=f"other users can write to {own}"):
        cache_root()
    with pytest.raises(HostError, match="other users can write") as caught:
        owned.owned(own)
    assert caught.value.advice == f"chmod go-w {own}"
    own.chmod(0o1777)
    with pytest.raises(HostError, match="other users can write"):
        cache_root()
    assert owned.owned(own / "not there yet") == own / "not there yet", "as in /tmp, whoever makes it owns it"


def test_links_of_root_s_on_the_way_are_followed_and_those_of_others_are_not(own: Path, home: Path, tmp_path: Path) -> None:
    own.mkdir()
    (tmp_path / "link").symlink_to("own")
    assert owned.owned(tmp_path / "link" / "images") == own / "images"
    os.chown(tmp_path / "link", USER, USER, follow_symlinks=False)
    with pytest.raises(HostError, match=f"link belongs to user {USER}"):
        owned.owned(tmp_path / "link" / "images")
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(HostError, match="too many links"):
        owned.owned(tmp_path / "round")
