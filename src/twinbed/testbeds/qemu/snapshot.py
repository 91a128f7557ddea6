"""Guests that booted once and were saved, from which others are resumed.

The cache's folder ``snapshots`` holds

    <key>/        memory state manifest.json
    <key>.new/    what is being saved; of no use where its maker was killed
    <key>.lock    held by one who saves or removes, or shared by those who resume

The key is a hash of all that a guest's state depends on: QEMU and its whole command line, the image, the user, and this boot of
the machine.  So nothing has to reach the disk, and what a machine that crashed has left is of another key.  A guest is saved
before it has a name, a key or an address, and before anything but its own start has drawn random numbers.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.contracts.place import MACHINE
from twinbed.hosts import cache, scratch
from twinbed.hosts.agent import Running
from twinbed.hosts.error import HostError, LimitExceeded
from twinbed.hosts.lab import open_lab
from twinbed.hosts.own_ids import first_id
from twinbed.hosts.owned import is_own, lock_file
from twinbed.image import Image
from twinbed.links import bridge
from twinbed.links.layout import DEVICES, SWITCH, Nic
from twinbed.model.json import number, text
from twinbed.model.nic import NIC_MODELS
from twinbed.testbeds.qemu import memory, monitor
from twinbed.testbeds.qemu.command_line import Kept, Sockets, command_line
from twinbed.testbeds.qemu.settings import QemuSettings

FOLDER = "snapshots"
MOST_BYTES = 4 * 2**30
"""Of all snapshots together. Those that were used longest ago are removed first; one takes some 100 MB of the disk."""
_NAME = "guest"
_MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
"""That no guest of a lab has: those of a lab end in an IPv4 address."""
_MTU = 1500
_MANIFEST = "manifest.json"
_FILES = ("memory", "state")
_TSC_TOLERANCE = 1e-4
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Model:
    """What a guest is, but for what is its own."""

    settings: QemuSettings
    accelerator: str
    image: Image
    vhost: bool
    macs: tuple[str, ...]
    """Of its NICs."""
    tsc_khz: int

    @classmethod
    def of(
        cls, settings: QemuSettings, accelerator: str, image: Image, nics: Sequence[Nic], *, vhost: bool, tsc_khz: int
    ) -> Model:
        """What guests with these NICs have in common: not the addresses of their NICs, as far as those can be changed."""
        own = NIC_MODELS[settings.nic].filters_by_first_address
        macs = tuple(nic.mac if own else placeholder for nic, placeholder in zip(nics, _MACS, strict=False))
        return cls(settings, accelerator, image, vhost, macs, tsc_khz)

    def key(self) -> str:
        # The counter's frequency is measured, and so never quite the same.
        line = self.command_line(Sockets(Path("agent"), Path("monitor"), Path("console")), Path("memory"), None, tsc_khz=0)
        return memory.place(cache.cache_root() / FOLDER, self.image, *line).stem

    def command_line(self, sockets: Sockets, file: Path, user: int | None, *, tsc_khz: int) -> tuple[str, ...]:
        """Of the guest that is to be saved."""
        return command_line(
            *(_NAME, self.settings, self.accelerator, self.image, sockets, self.placeholders(), self.vhost),
            tsc_khz=tsc_khz,
            key="",
            user=user,
            kept=Kept(file, resumes=False, macs=self.macs),
        )

    def placeholders(self) -> Sequence[Nic]:
        """NICs in the places of a guest's own."""
        return [
            Nic(_NAME, device, f"p.{_NAME}.{number}", SWITCH, MACHINE, f"10.0.0.{number + 1}/24")
            for number, device in enumerate(DEVICES[: len(self.macs)])
        ]


@dataclass(frozen=True, slots=True)
class Snapshot:
    folder: Path
    version: str
    """QEMU's that saved it."""
    macs: tuple[str, ...]

    def kept(self) -> Kept:
        return Kept(self.folder / "memory", resumes=True, macs=self.macs)

    @property
    def state(self) -> Path:
        return self.folder / "state"


@contextlib.contextmanager
def held(model: Model, probe: Path, limit_s: float) -> Iterator[Snapshot]:
    """The snapshot of a model, saved where there is none; nobody removes it while the block runs.

    ``limit_s`` is for the guest that is saved to boot, and for another command to save it. Raises HostError or OSError."""
    top, key = cache.folder(FOLDER, mode=0o700), model.key()
    with _locked(top, key, limit_s) as lock:
        snapshot = _found(top / key, model)
        while snapshot is None:
            _take(lock, fcntl.LOCK_EX, key, limit_s)  # Whoever had it meanwhile may have saved what is wanted.
            if _found(top / key, model) is None:
                _save(top / key, model, probe, limit_s)
                _sweep(top, key)
            _take(lock, fcntl.LOCK_SH, key, limit_s)
            snapshot = _found(top / key, model)
        os.utime(lock)
        yield snapshot


def _found(folder: Path, model: Model) -> Snapshot | None:
    """A whole snapshot that is as it was saved."""
    manifest = cache.recall(folder / _MANIFEST) if is_own(folder, stat.S_IFDIR) else None
    try:
        if manifest is None or manifest["files"] != _state(folder):
            return None
        measured = number(manifest["tsc_khz"])
        same_clock = abs(measured - model.tsc_khz) <= _TSC_TOLERANCE * measured
        return Snapshot(folder, text(manifest["qemu"]), model.macs) if same_clock else None
    except (OSError, KeyError, TypeError, ValueError):
        return None


def _state(folder: Path) -> list[list[int]]:
    """What changes with any write to a file, also by whoever once had it open."""
    found = [(folder / name).lstat() for name in _FILES]
    return [[each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns] for each in found]


def _save(final: Path, model: Model, probe: Path, limit_s: float) -> None:
    """Save a guest in a folder of another name, which gets its own once it is whole."""
    folder = final.with_suffix(".new")
    _remove(folder, final)
    folder.mkdir(mode=0o700)
    try:
        version = _boot_and_save(folder, model, probe, limit_s)
        for name in _FILES:
            (folder / name).chmod(0o400)
        cache.keep(folder / _MANIFEST, {"files": _state(folder), "qemu": version, "tsc_khz": model.tsc_khz})
        folder.rename(final)
    finally:
        _remove(folder)


def _boot_and_save(folder: Path, model: Model, probe: Path, limit_s: float) -> str:
    """Boot a guest in a lab of its own, and save it when its agent waits for somebody to come. Return QEMU's version."""
    file = folder / "memory"
    with file.open("xb") as stream:
        stream.truncate(model.settings.megabytes() * 2**20)
    with scratch.folder() as evidence, open_lab(probe, evidence) as lab:
        sockets = Sockets(lab.scratch / "guest.sock", lab.scratch / "guest.qmp", evidence / "console.txt")
        taps = [bridge.tap(nic, _MTU, model.settings.queues) for nic in model.placeholders()]
        lab.machine.run(["ip", "-batch", "-"], stdin="".join(taps).encode())
        line = model.command_line(sockets, file, first_id(lab.id, _NAME), tsc_khz=model.tsc_khz)
        process = lab.machine.start(line)
        _await(sockets.monitor, process, limit_s)
        version = monitor.save(sockets.monitor, _NAME, folder / "state", limit_s=limit_s)
        process.wait(limit_s)
        return version


def _await(path: Path, process: Running, limit_s: float) -> None:
    """Wait until QEMU has made its monitor's socket."""
    deadline = time.monotonic() + limit_s
    while not path.exists():
        if process.ended:
            raise HostError(f"QEMU ended: {bytes(process.stderr).decode(errors='replace').strip()}")
        if time.monotonic() > deadline:
            raise LimitExceeded(f"QEMU has no monitor after {limit_s:g} s")
        time.sleep(_POLL_S)


@contextlib.contextmanager
def _locked(top: Path, key: str, limit_s: float) -> Iterator[int]:
    """The lock of a key, shared. A file that was removed meanwhile is nobody's lock."""
    with contextlib.ExitStack() as stack:
        while True:
            lock = lock_file(top / f"{key}.lock")
            stack.callback(os.close, lock)
            _take(lock, fcntl.LOCK_SH, key, limit_s)
            if os.fstat(lock).st_nlink:
                break
        yield lock


def _take(lock: int, how: int, key: str, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while True:
        try:
            return fcntl.flock(lock, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LimitExceeded(f"snapshot {key}: another command has kept it for {limit_s:g} s") from None
            time.sleep(_POLL_S)


def _sweep(top: Path, own: str) -> None:
    """Remove what is of no use any more or too much, but nothing that somebody uses."""
    locks = sorted(top.glob("*.lock"), key=lambda path: path.lstat().st_mtime, reverse=True)
    kept_bytes = _bytes(top / own)
    for path in locks:
        if path.stem == own:
            continue
        kept_bytes += (size := _bytes(path.with_suffix("")))
        if size and kept_bytes <= MOST_BYTES and path.lstat().st_mtime > _booted_s():
            continue
        lock = lock_file(path)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(path.with_suffix(""), path.with_suffix(".new"))
            path.unlink(missing_ok=True)
            kept_bytes -= size
        os.close(lock)


def _booted_s() -> float:
    """When this machine started: a snapshot that was used before is of another boot."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def _bytes(folder: Path) -> int:
    """What it takes of the disk."""
    with contextlib.suppress(OSError):
        return 512 * sum(path.lstat().st_blocks for path in folder.iterdir())
    return 0


def _remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
