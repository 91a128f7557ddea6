"""Saved guests: of which guest one is, whole or not at all, saved once for all who want it, removed by nobody who uses it."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from twinbed.hosts.error import HostError
from twinbed.image import Image
from twinbed.links.layout import Nic, layout
from twinbed.model.topology import Topology
from twinbed.testbeds.qemu import driver, snapshot
from twinbed.testbeds.qemu.driver import GuestMaker
from twinbed.testbeds.qemu.settings import QemuSettings
from twinbed.testbeds.qemu.snapshot import Model, held

IMAGE = Image("0", Path("/i/root"), Path("/i/disk"), "erofs", Path("/i/vmlinux"), Path("/i/initramfs"), "6.1", {})
NICS = layout(Topology()).nics
LIMIT_S = 60.0


def model_of(image: Image = IMAGE, nics: Sequence[Nic] = NICS["client"], **settings: object) -> Model:
    return Model.of(QemuSettings.model_validate(settings), "tcg", image, nics, vhost=False, tsc_khz=2_594_906)


MODEL = model_of()


@pytest.fixture(autouse=True)
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders in which a guest was saved: by two files that are as short as a test wants them."""
    folders: list[Path] = []

    def save(folder: Path, *_: object) -> str:
        folders.append(folder)
        (folder / "memory").write_bytes(b"memory")
        (folder / "state").write_bytes(b"state")
        return "7.2.22"

    monkeypatch.setenv("TWINBED_CACHE", str(tmp_path))
    monkeypatch.setattr(snapshot, "_boot_and_save", save)
    return folders


def resumed(model: Model = MODEL) -> Path:
    with held(model, Path("/probe"), LIMIT_S) as found:
        assert found.kept().memory.read_bytes() == b"memory"
        return found.folder


def test_a_guest_is_saved_once(saved: list[Path]) -> None:
    assert resumed() == resumed()
    assert len(saved) == 1
    assert [path.name for path in resumed().parent.glob("*.new")] == []


def test_the_key_is_all_that_a_guest_s_state_depends_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    others = [
        model_of(dataclasses.replace(IMAGE, digest="1")),
        model_of(dataclasses.replace(IMAGE, kernel=Path("/i/other"))),
        model_of(nics=layout(Topology(routers=1)).nics["router"]),
        *(
            model_of(**{name: value})
            for name, value in {
                "nic": "e1000",
                "nic_features": "csum=off",
                "machine": "pc",
                "cpu": "Haswell",
                "vcpus": 2,
                "memory": "256MiB",
            }.items()
        ),
        model_of(vcpus=2, queues=2),
        dataclasses.replace(MODEL, accelerator="kvm"),
        dataclasses.replace(MODEL, vhost=True),
    ]
    keys = {model.key() for model in (MODEL, *others)}
    assert len(keys) == 1 + len(others)
    program = tmp_path / "qemu"
    program.write_text("8.0")
    monkeypatch.setattr(snapshot.shutil, "which", lambda _: str(program))
    of_another_qemu = MODEL.key()
    (tmp_path / "boot_id").write_text("another")
    monkeypatch.setattr(snapshot, "_BOOT", tmp_path / "boot_id")
    assert len({*keys, of_another_qemu, MODEL.key()}) == len(keys) + 2


def test_what_a_guest_is_given_once_it_is_resumed_is_no_part_of_the_key() -> None:
    same = [
        model_of(nics=NICS["server"]),
        model_of(offload="off"),
        model_of(congestion_control="reno"),
        model_of(boot="snapshot"),
    ]
    measured_again = dataclasses.replace(MODEL, tsc_khz=MODEL.tsc_khz + 1)
    assert {model.key() for model in (*same, measured_again)} == {MODEL.key()}


@pytest.mark.parametrize("nic", ["vmxnet3", "ne2k_pci"])
def test_a_card_that_keeps_its_first_address_is_saved_with_it(nic: str) -> None:
    one, other = (model_of(nics=NICS[host], nic=nic) for host in ("client", "server"))
    assert (one.macs, other.macs) == (("02:00:0a:4d:00:01",), ("02:00:0a:4d:00:02",))
    assert one.key() != other.key()


@pytest.mark.parametrize("name", ["memory", "state"])
def test_a_file_that_was_written_to_is_not_resumed(name: str, saved: list[Path]) -> None:
    path = resumed() / name
    before = path.stat()
    path.chmod(0o600)
    path.write_bytes(b"x" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    resumed()
    assert len(saved) == 2


def test_a_machine_whose_counter_has_another_frequency_saves_again(saved: list[Path]) -> None:
    resumed()
    resumed(dataclasses.replace(MODEL, tsc_khz=round(MODEL.tsc_khz * 1.001)))
    assert len(saved) == 2


def test_nothing_that_failed_is_kept(monkeypatch: pytest.MonkeyPatch, saved: list[Path], tmp_path: Path) -> None:
    def fail(folder: Path, *_: object) -> str:
        (folder / "memory").write_bytes(b"half")
        raise HostError("QEMU ended")

    with monkeypatch.context() as failing:
        failing.setattr(snapshot, "_boot_and_save", fail)
        with pytest.raises(HostError, match="QEMU ended"):
            resumed()
    assert [path.suffix for path in (tmp_path / "snapshots").iterdir()] == [".lock"]
    resumed()
    assert len(saved) == 1


def test_two_at_once_save_one(monkeypatch: pytest.MonkeyPatch, saved: list[Path]) -> None:
    """One is held up while it saves, until the other waits for it."""
    save, waits = snapshot._boot_and_save, threading.Event()

    def slowly(*arguments: object) -> str:
        assert waits.wait(LIMIT_S)
        return save(*arguments)  # type: ignore[arg-type]

    def sleep(_: float) -> None:
        waits.set()

    monkeypatch.setattr(snapshot, "_boot_and_save", slowly)
    monkeypatch.setattr(snapshot.time, "sleep", sleep)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(resumed())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert len(found) == 2 and len(set(found)) == 1 and len(saved) == 1


def test_who_waits_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that is stopped while it saves keeps its lock."""
    top = resumed().parent
    holder = [sys.executable, "-c", HOLDS, str(top / f"{MODEL.key()}.lock")]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        with pytest.raises(HostError, match=r"another command has held its lock for 0\.1 s"), held(MODEL, Path("/probe"), 0.1):
            pytest.fail("it was resumed")
        process.kill()
    resumed()


HOLDS = """
import fcntl, sys
lock = open(sys.argv[1])
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_what_was_used_longest_ago_is_removed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = resumed(), resumed(model_of(vcpus=2))
    each_bytes = 512 * sum(path.stat().st_blocks for path in first.iterdir())
    monkeypatch.setattr(snapshot, "MOST_BYTES", 2 * each_bytes)
    resumed(MODEL)
    third = resumed(model_of(vcpus=3))
    assert (first.exists(), second.exists(), third.exists()) == (True, False, True)
    assert not second.with_suffix(".lock").exists()


def test_nothing_that_is_used_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MOST_BYTES", 0)
    with held(MODEL, Path("/probe"), LIMIT_S) as used:
        other = resumed(model_of(vcpus=2))
        assert used.folder.exists() and other.exists()
    resumed(model_of(vcpus=3))
    assert not used.folder.exists() and not other.exists()


def test_what_an_earlier_boot_of_the_machine_left_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    top = tmp_path / "snapshots"
    for name in ("old", "old.new"):
        (top / name).mkdir(parents=True)
        (top / name / "memory").write_bytes(b"x")
    (top / "old.lock").touch()
    os.utime(top / "old.lock", (1, 1))
    resumed()
    assert not [*top.glob("old*")]


def test_a_removed_lock_is_nobody_s(monkeypatch: pytest.MonkeyPatch, saved: list[Path]) -> None:
    """Who opened it just before it was removed takes the one that there is now."""
    resumed()
    take, removed = snapshot._take, []

    def remove_first(lock: int, *arguments: object) -> None:
        take(lock, *arguments)  # type: ignore[arg-type]
        if not removed:
            removed.append(lock)
            (saved[0].parent / f"{MODEL.key()}.lock").unlink()

    monkeypatch.setattr(snapshot, "_take", remove_first)
    with held(MODEL, Path("/probe"), LIMIT_S) as found:
        assert found.folder.with_suffix(".lock").exists()


def maker(boot: str) -> GuestMaker:
    made = object.__new__(GuestMaker)
    made.settings = QemuSettings.model_validate({"boot": boot})
    made.accelerator, made._image, made._vhost = "tcg", IMAGE, False
    return made


def cannot(*_: object) -> None:
    raise HostError("no room\n    for it")


def test_who_asks_for_a_snapshot_gets_one_or_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "held", cannot)
    with pytest.raises(HostError, match="boot: snapshot, but a guest cannot resume here: no room for it"):
        maker("snapshot")._resumed(lambda **_: pytest.fail("booted"), Path("/probe"), NICS["client"])  # type: ignore[arg-type]


def test_who_does_not_ask_gets_a_guest_that_boots_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "held", cannot)
    monkeypatch.setattr(driver, "DEFAULT_BOOT", "snapshot")
    made = maker("auto")
    assert made._resumes
    assert made._resumed(lambda: "booted", Path("/probe"), NICS["client"]) == ("booted", "fresh: no room for it")  # type: ignore[arg-type,comparison-overlap]


@pytest.mark.parametrize(
    ("boot", "default", "resumes"), [("auto", "fresh", False), ("auto", "snapshot", True), ("fresh", "snapshot", False)]
)
def test_the_default_is_for_those_who_do_not_ask(
    boot: str, default: str, resumes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "DEFAULT_BOOT", default)
    assert maker(boot)._resumes is resumes


def test_runs_of_studies_that_do_not_ask_keep_their_names() -> None:
    """A run's id is the hash of its settings."""
    assert "boot" not in QemuSettings().model_dump(mode="json")
    assert QemuSettings(boot="fresh").model_dump(mode="json")["boot"] == "fresh"
