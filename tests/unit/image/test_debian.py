"""Debian packages that a workload adds: chosen by the real apt from a small repository."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from twinbed.image import debian
from twinbed.image.debian import Apt
from twinbed.image.failure import ImageFailed
from twinbed.image.specification import TWINBED

PACKAGES: Mapping[str, tuple[str, str]] = {
    "alpha": ("1.0", "Depends: beta (>= 2), base"),
    "beta": ("2:2.1-1", ""),
    "base": ("1.1", ""),
    "hater": ("1.0", "Conflicts: base"),
    "provider-one": ("1.0", "Provides: service"),
    "provider-two": ("1.0", "Provides: service"),
    "broken": ("1.0", "Depends: nowhere"),
}
"""Name -> version, and a further field."""
IMAGE = {"base": "1.1"}


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apt:
    repository = tmp_path / "repository"
    repository.mkdir()
    index = []
    for name, (version, more) in PACKAGES.items():
        tree = tmp_path / "trees" / name
        (tree / "DEBIAN").mkdir(parents=True)
        lines = [f"Package: {name}", f"Version: {version}", "Architecture: amd64", "Maintainer: nobody <n@example.org>"]
        about = "\n".join([*lines, *([more] if more else []), "Description: a test\n"])
        (tree / "DEBIAN/control").write_text(about)
        (tree / "DEBIAN/postinst").write_text(f"#!/bin/sh\ntouch {tmp_path}/script-ran\n")
        (tree / "DEBIAN/postinst").chmod(0o755)
        file = repository / f"{name}.deb"
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree, file], check=True, capture_output=True)
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        index.append(f"{about}Filename: ./{name}.deb\nSize: {file.stat().st_size}\nSHA256: {sha256}\n")
    (repository / "Packages").write_text("\n".join(index))
    sources = tmp_path / "own.list"
    sources.write_text(f"deb [trusted=yes] copy:{repository} ./\n")
    monkeypatch.setattr(debian, "source_files", lambda *_: [sources])
    monkeypatch.setattr(debian, "_LISTS", tmp_path / "lists")
    (tmp_path / "lists/partial").mkdir(parents=True)
    rootfs = tmp_path / "rootfs"
    (rootfs / "var/lib/dpkg").mkdir(parents=True)
    status = "Package: base\nStatus: install ok installed\nVersion: 1.1\nArchitecture: amd64\nMaintainer: x\nDescription: x\n"
    (rootfs / "var/lib/dpkg/status").write_text(status)
    made = Apt.of(tmp_path / "apt", rootfs, TWINBED, IMAGE)
    made.run("update")
    return made


def test_dependencies_that_the_image_lacks_are_chosen(apt: Apt) -> None:
    assert apt.choose(["alpha"]) == {"alpha": "1.0", "beta": "2:2.1-1"}
    assert apt.choose(["base"]) == {}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("alhpa", "Debian has no package alhpa"),
        ("betta", "Debian has no package betta: did you mean 'beta'?"),
        ("base-", "Debian has no package base-"),
        ("be.a", "Debian has no package be.a"),
        ("hater", "hater: they exclude base of twinbed's image"),
        ("broken", "apt-get --simulate install beta broken"),
        ("--option=a=b", "is no name of a Debian package"),
        ("beta=1", "is no name of a Debian package"),
        ("service", "Debian has no package service"),
    ],
)
def test_what_cannot_be_had_is_refused_by_its_reason(name: str, reason: str, apt: Apt) -> None:
    """apt itself takes NAME- as a removal, and a name with a dot as a pattern."""
    with pytest.raises(ImageFailed) as error:
        apt.choose(["beta", name])
    assert reason in error.value.message
    assert error.value.advice


def test_files_are_fetched_and_no_script_runs(apt: Apt, tmp_path: Path) -> None:
    said: list[str] = []
    files = apt.fetch(["alpha"], said.append)
    assert [file.name.split("_")[0] for file in files] == ["alpha", "beta"]
    assert said[0].startswith("fetching 2 packages")
    assert not (tmp_path / "script-ran").exists()


def test_a_file_that_differs_from_the_index_is_refused(apt: Apt, tmp_path: Path) -> None:
    file = tmp_path / "repository/beta.deb"
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(ImageFailed, match=r"apt-get --assume-yes .*(size|Hash)"):
        apt.fetch(["beta"], lambda _: None)


def test_apt_without_lists_names_the_command(apt: Apt, tmp_path: Path) -> None:
    for path in (tmp_path / "lists").rglob("*"):
        if path.is_file():
            path.unlink()
    with pytest.raises(ImageFailed) as error:
        apt.choose(["alpha"])
    assert (error.value.message, error.value.advice) == ("apt has no lists of packages on this machine", "apt-get update")


def test_ids_of_users_are_each_ones_own() -> None:
    assert len(set(debian.USERS.values())) == len({number for _, number in debian.USERS.values()}) == len(debian.USERS)


def test_links_of_alternatives_are_made_from_the_scripts_text(tmp_path: Path) -> None:
    for name in ("bin/nc.one", "bin/nc.two", "usr/lib/lapack/liblapack.so.3", "bin/there", "bin/other"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    scripts = [
        "update-alternatives --quiet \\\n  --install /bin/nc nc /bin/nc.one 10 \\\n --slave /x y z\n",
        "\tupdate-alternatives --install /bin/nc nc /bin/nc.two 50\nupdate-alternatives --install /bin/there t /bin/other 9",
        "update-alternatives --install /usr/lib/liblapack.so.3 l /usr/lib/lapack/liblapack.so.3 10",
        "update-alternatives --install /bin/$x x /bin/other 1\nupdate-alternatives --install /bin/gone gone /bin/missing 1",
        "update-alternatives --install /../../out out /bin/other 1",
    ]
    debian._link_alternatives(tmp_path, scripts)
    links = {str(path.relative_to(tmp_path)): str(path.readlink()) for path in tmp_path.rglob("*") if path.is_symlink()}
    assert links == {"bin/nc": "/bin/nc.two", "usr/lib/liblapack.so.3": "/usr/lib/lapack/liblapack.so.3"}


def test_dpkgs_list_has_added_packages_in_place_of_older_ones(tmp_path: Path) -> None:
    status = tmp_path / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.write_text("Package: a\nStatus: install ok installed\nVersion: 1\n\nPackage: b\nStatus: x\nVersion: 1\n")
    (tmp_path / "linked").hardlink_to(status)
    before = status.read_text()
    debian._list(tmp_path, ["Package: b\nVersion: 2\n", "Package: c\nVersion: 3\n"], {"b", "c"})
    from twinbed.image.base import installed

    assert installed(status.read_text()) == {"a": "1", "b": "2", "c": "3"}
    assert (tmp_path / "linked").read_text() == before
