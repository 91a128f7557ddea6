"""``twinbed setup``: what is missing is said, and with --yes the distribution's own program is told to install it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from twinbed.cli import main


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any program, on which the test says who one is."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("twinbed.hosts.packages._SYSTEM_FOLDERS", str(tmp_path))
    monkeypatch.setattr("twinbed.hosts.packages._USUAL_FOLDERS", str(tmp_path))
    monkeypatch.setattr("twinbed.hosts.process._path", lambda: f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "fedora"})
    return tmp_path


def stand_in(bare: Path, name: str, script: str) -> None:
    (bare / name).write_text(f"#!/bin/sh\n{script}\n")
    (bare / name).chmod(0o755)


def test_what_is_missing_is_named_with_the_command(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(bare, "tcpdump", "")
    assert main.run(["setup", "container", "remote"]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("container  lacks ip, tc, ethtool")
    assert lines[1].startswith("remote     lacks ssh")
    assert lines[-1] == ("fix: twinbed setup container remote --yes, or dnf install ethtool iproute iproute-tc openssh-clients")


def test_with_yes_it_is_installed(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(bare, "dnf", f'echo "$@" >>{bare}/asked; touch {bare}/ssh; chmod +x {bare}/ssh')
    assert main.run(["setup", "--yes", "remote"]) == 0
    assert (bare / "asked").read_text().split() == ["install", "-y", "--setopt=install_weak_deps=False", "openssh-clients"]
    assert main.run(["setup", "remote"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:2] == ["remote", "ok"]


def test_debians_lists_are_fetched_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "ubuntu", "ID_LIKE": "debian"})
    stand_in(bare, "apt-get", f'echo "$DEBIAN_FRONTEND $@" >>{bare}/asked; touch {bare}/ssh; chmod +x {bare}/ssh')
    assert main.run(["setup", "--yes", "remote"]) == 0
    update, install = (bare / "asked").read_text().splitlines()
    assert update.endswith("update")
    assert install.startswith("noninteractive install -y --no-install-recommends")
    assert install.endswith(" openssh-client")


def test_what_does_not_come_is_said(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(bare, "dnf", "true")
    assert main.run(["setup", "--yes", "remote"]) == 3
    assert "still missing: ssh" in capsys.readouterr().err
    stand_in(bare, "dnf", "echo no space left >&2; exit 1")
    assert main.run(["setup", "--yes", "remote"]) != 0
    assert "no space left" in capsys.readouterr().err


def test_without_root_nothing_is_started(
    bare: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(bare, "dnf", f"touch {bare}/asked")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main.run(["setup", "--yes", "remote"]) == 3
    assert "sudo dnf install openssh-clients" in capsys.readouterr().err
    assert not (bare / "asked").exists()


def test_elsewhere_debians_names_are_told(
    bare: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "arch"})
    assert main.run(["setup", "remote"]) == 2
    assert "on Debian: apt-get install openssh-client" in capsys.readouterr().err
