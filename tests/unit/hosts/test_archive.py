"""The image as one file for other hosts."""

from __future__ import annotations

import dataclasses
import tarfile
from pathlib import Path

import pytest

from twinbed.hosts.install import COMPLETE, archive
from twinbed.model.image import NO_IMAGE


def test_what_a_killed_command_had_begun_goes_and_the_archive_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINBED_CACHE", str(tmp_path / "cache"))
    rootfs = tmp_path / "rootfs"
    (rootfs / "bin").mkdir(parents=True)
    (rootfs / "bin/true").write_text("#!/bin/sh\n")
    begun = tmp_path / "cache/archives/partial-xyz"
    begun.mkdir(parents=True)
    (begun / "plain").write_bytes(b"half")
    image = dataclasses.replace(NO_IMAGE, digest="abc", rootfs=rootfs)
    made = archive(image, "tar")
    with tarfile.open(made) as members:
        assert [member.name for member in members][-1] == COMPLETE
        assert "./bin/true" in members.getnames()
    assert sorted(path.name for path in made.parent.iterdir()) == ["abc.tar", "lock"]
    before = made.stat().st_mtime_ns
    assert archive(image, "tar") == made
    assert made.stat().st_mtime_ns == before
