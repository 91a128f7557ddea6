"""The initramfs archive, read back by GNU cpio and checked against the format's definition."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinbed.image import initramfs


def test_a_header_has_the_fields_of_the_kernels_definition() -> None:
    """buffer-format.rst: magic, then c_ino c_mode c_uid c_gid c_nlink c_mtime c_filesize c_maj c_min c_rmaj c_rmin
    c_namesize c_chksum, each eight hexadecimal digits; name and data are padded to four bytes."""
    archive = initramfs.archive([initramfs.file("init", b"hello", 0o755)])
    expected = (
        b"070701"
        + b"00000001"
        + b"000081ED"
        + b"00000000" * 2
        + b"00000001"
        + b"00000000"
        + b"00000005"
        + b"00000000" * 4
        + b"00000005"
        + b"00000000"
    )
    assert archive.startswith(expected + b"init\0" + b"\0" + b"hello" + b"\0\0\0")
    assert len(expected) == 110
    assert archive.endswith(b"TRAILER!!!\0\0\0\0")


def unpacked(archive: bytes, folder: Path) -> None:
    subprocess.run(["cpio", "-idm", "--quiet", "--no-absolute-filenames"], input=archive, cwd=folder, check=True)


def listed(archive: bytes) -> list[str]:
    done = subprocess.run(["cpio", "-t", "--quiet"], input=archive, capture_output=True, text=False, check=True)
    return done.stdout.decode().splitlines()


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_cpio_lists_every_entry_whatever_its_length(contents: list[bytes]) -> None:
    entries = [initramfs.file("x" * (number + 1), content) for number, content in enumerate(contents)]
    assert listed(initramfs.archive(entries)) == [entry.path for entry in entries]


def test_cpio_unpacks_what_was_put_in(tmp_path: Path) -> None:
    modules = [("virtio.ko", b"\x7fELF one", False), ("e1000.ko", b"\x7fELF two!", True)]
    unpacked(initramfs.guest(b"#!probe", modules, "erofs"), tmp_path)
    assert (tmp_path / "init").read_bytes() == b"#!probe"
    assert stat.S_IMODE((tmp_path / "init").stat().st_mode) == 0o755
    assert (tmp_path / "modules.list").read_text() == "/modules/virtio.ko\n/modules/e1000.ko optional e1000\n"
    assert (tmp_path / "rootfs.type").read_text() == "erofs\n"
    assert (tmp_path / "modules/virtio.ko").read_bytes() == b"\x7fELF one"
    assert (tmp_path / "modules/e1000.ko").read_bytes() == b"\x7fELF two!"
    assert all((tmp_path / name).is_dir() for name in ("proc", "sys", "dev"))
    console = (tmp_path / "dev/console").stat()
    assert stat.S_ISCHR(console.st_mode)
    assert console.st_rdev == 5 << 8 | 1


def test_an_optional_module_is_listed_with_those_that_need_it(tmp_path: Path) -> None:
    """What a module depends on is in its .modinfo (`modinfo -F depends`), by names, with commas between."""
    depends = {"dca": b"", "i2c-algo-bit": b"", "igb": b"i2c-algo-bit,dca", "e1000": b"", "on-igb": b"igb"}
    modules = [(f"{name}.ko", b"\x7fELF\0depends=" + of + b"\0name=x\0", True) for name, of in depends.items()]
    unpacked(initramfs.guest(b"", [("virtio.ko", b"\x7fELF", False), *modules], "erofs"), tmp_path)
    listed = [line.split() for line in (tmp_path / "modules.list").read_text().splitlines()]
    assert {Path(path).stem: set(of[1].split(",")) for path, *of in listed if of} == {
        "dca": {"dca", "igb", "on_igb"},
        "i2c-algo-bit": {"i2c_algo_bit", "igb", "on_igb"},
        "igb": {"igb", "on_igb"},
        "e1000": {"e1000"},
        "on-igb": {"on_igb"},
    }


def test_two_modules_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="module names must be unique"):
        initramfs.guest(b"", [("a.ko", b"", False), ("a.ko", b"", True)], "erofs")
