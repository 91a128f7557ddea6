"""A stand-in for minimega with real guests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from minimega.guests import Containers, Machines, Made
from minimega.standin import StandIn, standing_in
from twinbed.hosts.lab import open_lab
from twinbed.image import Image
from twinbed.image import minimega as recipe


@pytest.fixture
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short: the path of a socket has at most 107 bytes."""
    return tmp_path_factory.mktemp("mm")


@pytest.fixture
def server(base: Path) -> Iterator[StandIn]:
    """Without anything in its guests."""
    with standing_in(base) as server:
        yield server


@pytest.fixture
def real(base: Path, image: Image, probe: Path, tmp_path: Path) -> Iterator[StandIn]:
    """With containers as guests."""
    (tmp_path / "lab").mkdir()
    with open_lab(probe, tmp_path / "lab") as lab, standing_in(base, Containers(lab, probe, image)) as server:
        yield server


@pytest.fixture
def userspace(base: Path, image: Image, probe: Path, tmp_path: Path) -> Iterator[StandIn]:
    """With containers as guests on Open vSwitch's userspace datapath."""
    (tmp_path / "lab").mkdir()
    with open_lab(probe, tmp_path / "lab") as lab, standing_in(base, Containers(lab, probe, image, base / "ovs")) as server:
        yield server


@pytest.fixture
def machines(base: Path, image: Image, probe: Path, tmp_path: Path) -> Iterator[StandIn]:
    """With virtual machines as guests."""
    (tmp_path / "lab").mkdir()
    with open_lab(probe, tmp_path / "lab") as lab, standing_in(base, Machines(lab, probe, image)) as server:
        yield server


CLIENT = b"#!/bin/sh\nexec /usr/bin/twinbed-probe agent --port cc\n"
"""What stands for miniccc: the stand-in for minimega speaks to an agent."""


@pytest.fixture
def files(image: Image, tmp_path: Path) -> recipe.Made:
    """The kernel and initrd that are made for minimega."""
    return recipe.make(image, tmp_path / "files", CLIENT)


@pytest.fixture
def made(base: Path, image: Image, probe: Path, tmp_path: Path, files: recipe.Made) -> Iterator[StandIn]:
    """With virtual machines, of which the server boots from these files."""
    (tmp_path / "lab").mkdir()
    with open_lab(probe, tmp_path / "lab") as lab, standing_in(base, Made(lab, probe, image, files)) as server:
        yield server
