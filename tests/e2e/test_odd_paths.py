"""Paths may hold what programs part their options by: colons, commas, spaces, quotes, backslashes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import site_in

from twinbed.contracts.plugins import AnyDriver
from twinbed.hosts import scratch
from twinbed.image import Image
from twinbed.model.topology import Topology
from twinbed.testbeds.container import container
from twinbed.testbeds.qemu import qemu

ODD = 'a:b,c=d "e" \\f'


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Scratch folders are here too; a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix=ODD) as name:
        (Path(name) / "run").mkdir(mode=0o700)
        monkeypatch.setattr(scratch, "_path", lambda **_: Path(name) / "run")
        yield Path(name)


@pytest.mark.parametrize("driver", [container, qemu], ids=lambda driver: driver.name)
def test_hosts_come_up_and_leave_their_artifacts(driver: AnyDriver, odd: Path, image: Image, probe: Path) -> None:
    (odd / "image").symlink_to(image.rootfs.parent)
    there = odd / "image"
    moved = replace(
        image,
        rootfs=there / "rootfs",
        disk=there / image.disk.name,
        kernel=there / "vmlinux",
        initramfs=there / "initramfs.cpio",
    )
    site = site_in(odd, "test", moved, probe)
    kept = odd / "kept"
    kept.mkdir()
    with driver.up(driver.params(), Topology(), site) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        client = bed.hosts["client"]
        client.write(f"{client.artifacts}/said", b"hello")
        client.collect(kept)
        assert ((client.shared or kept) / "said").read_bytes() == b"hello"
