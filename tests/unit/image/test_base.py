"""What the base builder reads from dpkg and apt, and what it says when mmdebstrap fails."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from twinbed.image import base, build
from twinbed.image.failure import ImageFailed

STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Multi-Arch: same
Version: 2.36-9+deb12u14
Description: GNU C Library: Shared libraries
 Contains: the standard libraries
Version-like: no

Package: gone
Status: deinstall ok config-files
Version: 1

Package: nginx-light
Status: install ok installed
Version: 1.22.1-9
"""


def test_only_installed_packages_count() -> None:
    assert base.installed(STATUS) == {"libc6": "2.36-9+deb12u14", "nginx-light": "1.22.1-9"}


def test_sources_of_other_origins_are_left_alone() -> None:
    """Lines as `apt-get indextargets` prints them, with and without downloaded lists."""
    targets = """\
/etc/apt/sources.list.d/debian.sources:1|bookworm|bookworm|main
/etc/apt/sources.list.d/debian.sources:1|bookworm-updates|bookworm-updates|main
/etc/apt/sources.list.d/mirror.list:3|oldstable|bookworm|main
/etc/apt/sources.list.d/docker.list:1|bookworm|bookworm|stable
/etc/apt/sources.list.d/pgdg.sources:1|bookworm-pgdg|bookworm-pgdg|main
/etc/apt/sources.list.d/node.sources:1|nodistro|nodistro|main
/etc/apt/sources.list:2|bookworm-security||main
"""
    assert base.source_files(targets, "bookworm") == [
        Path("/etc/apt/sources.list.d/debian.sources"),
        Path("/etc/apt/sources.list.d/mirror.list"),
        Path("/etc/apt/sources.list"),
    ]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose namespaces are made by nobody and whose mmdebstrap is the test's."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("TWINBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("twinbed.image.assembly.probe_path", lambda: Path("/bin/true"))
    stand_in(folder, "apt-get", "echo '/etc/apt/sources.list:1|bookworm|bookworm|main'")
    stand_in(folder, "apt-config", "echo 'Acquire::http::Proxy \"x\";'")
    for wrapper in ("setpriv", "unshare"):
        stand_in(folder, wrapper, 'while [ "$1" != mmdebstrap ]; do shift; done; exec "$@"')
    for other in ("mkfs.erofs", "dpkg-deb"):
        stand_in(folder, other, "exit 1")
    return folder


def stand_in(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("Err:1 bookworm InRelease\n  Temporary failure resolving 'mirror'", "apt cannot reach its servers"),
        ("E: Unable to locate package irtt", "lack a package"),
        ("cp: error writing 'x': No space left on device", "free some space"),
        ("unshare: cannot change root filesystem propagation: Invalid argument", "mount --bind"),
        ("E: something never seen", "fix the problem, then twinbed image build"),
    ],
)
def test_a_failed_mmdebstrap_is_explained_and_leaves_its_log(tools: Path, said: str, advice: str) -> None:
    (tools / "said").write_text(said + "\n")
    stand_in(tools, "mmdebstrap", f"cat {tools}/said >&2; exit 100")
    with pytest.raises(ImageFailed) as failure:
        build()
    log = tools.parent / "cache/build.log"
    assert str(log) in failure.value.message
    assert said.splitlines()[-1] in failure.value.message
    assert advice in failure.value.advice
    assert said in log.read_text()
    assert list((tools.parent / "cache/tmp").iterdir()) == []


@pytest.mark.parametrize("offered", ["noble|noble", "trixie|stable", "bookworm|oldstable"])
def test_a_machine_of_another_release_leaves_the_servers_to_mmdebstrap(tools: Path, offered: str) -> None:
    stand_in(tools, "apt-get", f"echo '/etc/apt/sources.list:1|{offered}|main'")
    stand_in(tools, "mmdebstrap", f'printf "%s\\n" "$@" >{tools.parent}/asked; exit 1')
    lines: list[str] = []
    with pytest.raises(ImageFailed):
        build(say=lines.append)
    asked = (tools.parent / "asked").read_text().splitlines()
    of_this_release = offered.startswith("bookworm")
    assert asked[asked.index("bookworm") + 2 :] == (["/etc/apt/sources.list"] if of_this_release else [])
    assert any("Debian's own servers" in line for line in lines) is not of_this_release
    # mmdebstrap's choice of keys needs gpg, which Ubuntu's base system lacks.
    assert ("--keyring=/usr/share/keyrings/debian-archive-keyring.gpg" in asked) is not of_this_release


def test_only_how_to_reach_servers_is_taken_from_apts_settings(tools: Path) -> None:
    dump = 'Acquire::http::Proxy "p";\nAcquire::Languages "none";\nAcquire::Check-Date "false";\n'
    (tools / "dump").write_text(dump)
    stand_in(tools, "apt-config", f"cat {tools}/dump")
    kept = tools.parent / "kept"
    stand_in(tools, "mmdebstrap", f'for a; do case $a in --aptopt=*) cp "${{a#--aptopt=}}" {kept};; esac; done; exit 1')
    with pytest.raises(ImageFailed):
        build()
    assert kept.read_text().splitlines()[:2] == ['Acquire::http::Proxy "p";', 'Acquire::Check-Date "false";']


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give capabilities")
def test_no_file_of_an_image_has_other_rights_than_its_users(tmp_path: Path) -> None:
    """cap_net_raw=ep, as ping has it, in the kernel's struct vfs_cap_data, revision 2."""
    modes = {"su": 0o4755, "expiry": 0o2755, "ping": 0o755}
    for name, mode in modes.items():
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(mode)
    os.setxattr(tmp_path / "ping", base.CAPABILITIES, bytes.fromhex("0100000200200000000000000000000000000000"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    (tmp_path / "to-su").symlink_to("su")
    base.take_privileges(tmp_path)
    assert {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in modes} == dict.fromkeys(modes, 0o755)
    assert stat.S_IMODE((tmp_path / "tmp").stat().st_mode) == 0o1777
    assert os.listxattr(tmp_path / "ping") == []
