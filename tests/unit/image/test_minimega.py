"""The kernel and initrd for minimega's guests, read back by GNU cpio; that such a guest boots is seen in tests/minimega."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from twinbed.cli.image import image as command
from twinbed.image import cache, minimega
from twinbed.image.failure import ImageFailed
from twinbed.image.probe import MOUNTED_AT
from twinbed.model.image import Image

ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00" + bytes(44)


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Image:
    """A root file system with a file of each kind, and two modules."""
    monkeypatch.setenv("TWINBED_CACHE", str(tmp_path / "cache"))
    with cache.building(lambda _: None) as work:
        modules = work / "base" / "modules"
        modules.mkdir(parents=True)
        order = [{"name": "virtio.ko", "optional": False}, {"name": "e1000.ko", "optional": True}]
        (modules / "modules.json").write_text(json.dumps(order))
        for item in order:
            (modules / str(item["name"])).write_bytes(str(item["name"]).encode())
        cache.publish(modules.parent, "bases", "base", {"digest": "b"})

        rootfs = work / "image" / "rootfs"
        probe = rootfs / MOUNTED_AT.lstrip("/")
        probe.parent.mkdir(parents=True)
        probe.write_bytes(b"the probe")
        (rootfs / "etc").mkdir()
        (rootfs / "etc" / "x").write_text("y")
        (rootfs / "bin").symlink_to("usr/bin")
        (rootfs.parent / "vmlinux").write_bytes(b"a kernel")
        folder = cache.publish(rootfs.parent, "images", "image", {"digest": "abc", "base": "b"})
    return Image("abc", folder / "rootfs", folder / "disk", "erofs", folder / "vmlinux", folder / "initramfs.cpio", "6.1", {})


def unpacked(initrd: Path, folder: Path) -> Path:
    folder.mkdir()
    archive = gzip.decompress(initrd.read_bytes())
    subprocess.run(["cpio", "-idm", "--quiet", "--no-absolute-filenames"], input=archive, cwd=folder, check=True)
    return folder


def test_the_initrd_is_the_root_file_system_with_what_starts_the_client(image: Image, tmp_path: Path) -> None:
    made = minimega.make(image, tmp_path / "out", ELF)
    assert made.kernel.read_bytes() == b"a kernel"
    root = unpacked(made.initrd, tmp_path / "root")
    assert (root / "etc/x").read_text() == "y"
    assert (root / "bin").readlink() == Path("usr/bin")
    assert (root / "init").read_bytes() == b"the probe" and os.access(root / "init", os.X_OK)
    assert (root / "miniccc").read_bytes() == ELF and os.access(root / "miniccc", os.X_OK)
    assert (root / "modules.list").read_text() == "/boot-modules/virtio.ko\n/boot-modules/e1000.ko optional\n"
    assert (root / "boot-modules/e1000.ko").read_bytes() == b"e1000.ko"
    assert (root / "etc/twinbed-image").read_text() == "abc\n"
    subprocess.run(["sh", "-n", str(root / "start")], check=True)
    assert os.access(root / "start", os.X_OK)
    assert made.megabytes % 64 == 0 and made.megabytes >= 128


def test_the_same_inputs_give_the_same_bytes(image: Image, tmp_path: Path) -> None:
    one, two = (minimega.make(image, tmp_path / name, ELF) for name in ("one", "two"))
    assert one.initrd.read_bytes() == two.initrd.read_bytes()
    assert [path.name for path in sorted((tmp_path / "one").iterdir())] == ["twinbed.initrd", "twinbed.kernel"]


def test_without_the_client_it_says_so(image: Image, tmp_path: Path) -> None:
    made = minimega.make(image, tmp_path / "out", None)
    assert not made.has_client
    assert not (unpacked(made.initrd, tmp_path / "root") / "miniccc").exists()


@pytest.mark.parametrize(
    "content", [b"#!/bin/sh\n", b"MZ" + bytes(100), ELF.replace(b"\x3e", b"\xb7")], ids=["script", "windows", "arm"]
)
def test_what_is_no_client_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "miniccc"
    file.write_bytes(content)
    with pytest.raises(ImageFailed, match="it must be a program for Linux on x86-64"):
        minimega.client(file)
    with pytest.raises(ImageFailed, match="No such file"):
        minimega.client(tmp_path / "none")


def test_a_folder_that_cannot_be_written_is_an_error(image: Image, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ImageFailed, match="file"):
        minimega.make(image, tmp_path / "file" / "folder", None)


def test_the_command_says_what_to_do_with_them(image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinbed.image.build", lambda **_: image)
    (tmp_path / "miniccc").write_bytes(ELF)
    out = tmp_path / "files"
    done = CliRunner().invoke(command, ["minimega", "-o", str(out), "--miniccc", str(tmp_path / "miniccc")])
    assert done.exit_code == 0, done.output
    assert f"initrd: {out / 'twinbed.initrd'}" in done.output
    assert f"vm config kernel {out / 'twinbed.kernel'}" in done.output
    assert "without miniccc" not in done.output
