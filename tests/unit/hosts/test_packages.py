"""The declaration of system packages: complete, in two distributions' names, and the same wherever it is used."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from twinbed.hosts import packages
from twinbed.hosts.packages import DEBIAN, FEDORA, FOR_USERS, PURPOSES, Distribution, Need, PackagesUnknown
from twinbed.links import openvswitch
from twinbed.registry import PLUGINS
from twinbed.testbeds.qemu.command_line import PROGRAM

REPOSITORY = Path(__file__).parents[3]
UBUNTU = {"ID": "ubuntu", "ID_LIKE": "debian"}


@pytest.mark.parametrize(
    ("release", "whose"),
    [
        ({"ID": "debian"}, DEBIAN),
        (UBUNTU, DEBIAN),
        ({"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, DEBIAN),
        ({"ID": "fedora"}, FEDORA),
        ({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, FEDORA),
        ({"ID": "arch"}, None),
        ({}, None),
    ],
)
def test_a_distribution_is_known_by_itself_or_its_kin(
    release: dict[str, str], whose: Distribution | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    assert packages.distribution() is whose


def test_a_machine_that_does_not_say_what_it_is_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> dict[str, str]:
        raise FileNotFoundError("/etc/os-release")

    monkeypatch.setattr(platform, "freedesktop_os_release", none)
    assert packages.distribution() is None


@pytest.mark.parametrize(
    ("release", "user", "command"),
    [
        (UBUNTU, 0, "apt-get install ethtool iproute2"),
        ({"ID": "fedora"}, 1000, "sudo dnf install ethtool iproute iproute-tc"),
        ({}, 0, "apt-get install ethtool iproute2"),
    ],
)
def test_a_mend_is_a_command_of_this_distribution(
    release: dict[str, str], user: int, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert packages.mend(packages.of_programs("ip", "tc", "ethtool")) == command


def test_what_users_install_has_a_name_in_every_distribution() -> None:
    for purpose in FOR_USERS:
        for whose in (DEBIAN, FEDORA):
            assert packages.names(PURPOSES[purpose], whose)
    with pytest.raises(PackagesUnknown, match="no known package of Fedora has owping"):
        packages.names(PURPOSES["own tools"], FEDORA)


@pytest.mark.skipif(packages.distribution() is not DEBIAN, reason="asks dpkg which package a file is of")
def test_debians_names_are_what_dpkg_says() -> None:
    """Of everything that is installed here, as the packages' own lists of files have it."""
    paths = {need: Path(need.path).resolve() for needs in PURPOSES.values() for need in needs if need.path}
    owners = _owners([each for path in paths.values() for each in (str(path), str(path).removeprefix("/usr"))])
    versions = _versions(set(owners.values()))
    asked = 0
    for need, path in paths.items():
        owner = owners.get(str(path)) or owners.get(str(path).removeprefix("/usr"))
        if owner is None or "nodesource" in versions[owner]:
            continue  # an alternative, a diversion, or not from a package of Debian's
        asked += 1
        assert owner == need.debian or owner in _brought_by(need.debian), (need, owner)
    assert asked >= len(PURPOSES["container"]) + len(PURPOSES["image"])


def _versions(of: Collection[str]) -> dict[str, str]:
    argv = ["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *sorted(of)]
    return dict(line.split() for line in subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines())


def _owners(paths: Sequence[str]) -> dict[str, str]:
    """Path -> its package, asked at once, since dpkg reads the lists of all packages for an answer."""
    done = subprocess.run(["dpkg", "-S", *paths], capture_output=True, text=True, check=False)
    lines = (line.rpartition(": ") for line in done.stdout.splitlines() if not line.startswith("diversion "))
    return {path: packages.split(",")[0].split(":")[0] for packages, _, path in lines}


def _brought_by(package: str) -> list[str]:
    """What it depends on: gcc has cc by way of gcc-12."""
    argv = ["dpkg-query", "-W", "-f", "${Depends}", package]
    return re.findall(r"[a-z0-9][a-z0-9.+-]+", subprocess.run(argv, capture_output=True, text=True, check=False).stdout)


def test_a_file_shows_a_package_as_a_program_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, program = tmp_path / "there", tmp_path / "program"
    there.touch()
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    needs = [Need(str(there), "a"), Need(f"{there}-not", "b"), Need("program", "c"), Need("programme", "d")]
    assert packages.names(packages.lacking(needs)) == ["b", "d"]


def test_what_plugins_and_drivers_start_is_declared() -> None:
    declared = {need.shows for needs in PURPOSES.values() for need in needs}
    asked = {
        program
        for background in PLUGINS.backgrounds.values()
        for params in background.trials.values()
        for program in params.machine_programs()
    }
    assert asked
    assert asked | {PROGRAM} <= declared
    assert {need.shows for need in PURPOSES["openvswitch"]} <= set(openvswitch.PROGRAMS)


def test_nobody_else_names_packages_to_install() -> None:
    """Each "apt-get install" elsewhere would be a second list."""
    allowed = {"hosts/packages.py", "readers/monitor/engines.py"}  # the latter: Suricata, from backports alone
    for path in (REPOSITORY / "src/twinbed").rglob("*.py"):
        name = str(path.relative_to(REPOSITORY / "src/twinbed"))
        found = re.findall(r"(?:apt-get|dnf) install [^{\s]", path.read_text())
        assert name in allowed or set(found) <= {"apt-get install t"}, name  # tar, on a host whose system is not known


def test_setup_asks_this_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As setup.sh calls it: with the standard library alone, on a machine that has hardly a program."""
    (asked,) = re.findall(r"^purposes=\((.*)\)$", (REPOSITORY / "setup.sh").read_text(), re.M)
    (more,) = re.findall(r"purposes\+=\((.*)\)$", (REPOSITORY / "setup.sh").read_text(), re.M)
    purposes = [*asked.split(), *more.split()]
    assert set(FOR_USERS) | {"build", "test"} == set(purposes)
    env = {"PATH": str(tmp_path), "PYTHONPATH": str(REPOSITORY / "src")}
    command = [sys.executable, "-S", "-m", "twinbed.hosts.packages", *purposes]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = packages.lacking(need for purpose in purposes for need in PURPOSES[purpose])
    assert done.stdout.split() == packages.names(missing)
    assert {"ab", "mmdebstrap", PROGRAM} <= {need.shows for need in missing}
