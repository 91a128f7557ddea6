"""Guests that booted once and were saved, so that others resume from them.

The cache's folder ``snapshots`` holds

    <key>/        memory state manifest.json
    <key>.new/    a snapshot in the making; useless if its maker was killed
    <key>.lock    held to save or remove, shared to resume

The key is a hash of everything that a guest's state depends on: QEMU and its command line, the image, the user, and this boot
of the machine. So nothing has to reach the disk, and leftovers of a machine that crashed have another key. A guest is saved
before it has a name, a key or an address, and before any program in it has drawn random numbers.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
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
from twinbed.hosts.lab import first_id, open_lab
from twinbed.hosts.owned import is_own, lock_file
from twinbed.image import Image
from twinbed.links import bridge
from twinbed.links.layout import DEVICES, SWITCH, Nic
from twinbed.model.json import number, text
from twinbed.model.nic import NIC_MODELS
from twinbed.testbeds.qemu import monitor
from twinbed.testbeds.qemu.command_line import PROGRAM, Kept, Sockets, command_line
from twinbed.testbeds.qemu.settings import QemuSettings

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def place(folder: Path, image: Image, *subject: str) -> Path:
    """Return the file for what booting a guest has shown: one for each boot of the machine, image, user, QEMU and subject.

    QEMU must be installed."""
    program = shutil.which(PROGRAM) or PROGRAM
    tried = " ".join(
        (_BOOT.read_text().strip(), image.digest, str(os.geteuid()), program, str(Path(program).stat().st_mtime_ns), *subject)
    )
    return folder / f"{hashlib.sha256(tried.encode()).hexdigest()[:16]}.json"


FOLDER = "snapshots"
MOST_BYTES = 4 * 2**30
"""The limit for all snapshots together. The least recently used go first; each takes some 100 MB of the disk."""
_NAME = "guest"
_MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
"""No guest of a lab has these: the addresses in a lab end in an IPv4 address."""
_MTU = 1500
_MANIFEST = "manifest.json"
_FILES = ("memory", "state")
_TSC_TOLERANCE = 1e-4
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Model:
    """A guest without its own name, key and addresses."""

    settings: QemuSettings
    accelerator: str
    image: Image
    vhost: bool
    macs: tuple[str, ...]
    tsc_khz: int

    @classmethod
    def of(
        cls, settings: QemuSettings, accelerator: str, image: Image, nics: Sequence[Nic], *, vhost: bool, tsc_khz: int
    ) -> Model:
        """Describe all guests with these NICs. The NICs' addresses are left out if a guest can change them."""
        own = NIC_MODELS[settings.nic].filters_by_first_address
        macs = tuple(nic.mac if own else placeholder for nic, placeholder in zip(nics, _MACS, strict=False))
        return cls(settings, accelerator, image, vhost, macs, tsc_khz)

    def key(self) -> str:
        # The counter's frequency is measured, and so differs a little each time.
        line = self.command_line(Sockets(Path("agent"), Path("monitor"), Path("console")), Path("memory"), None, tsc_khz=0)
        return place(cache.cache_root() / FOLDER, self.image, *line).stem

    def command_line(self, sockets: Sockets, file: Path, user: int | None, *, tsc_khz: int) -> tuple[str, ...]:
        """Return the command line of the guest that is to be saved."""
        return command_line(
            *(_NAME, self.settings, self.accelerator, self.image, sockets, self.placeholders(), self.vhost),
            tsc_khz=tsc_khz,
            key="",
            user=user,
            kept=Kept(file, resumes=False, macs=self.macs),
        )

    def placeholders(self) -> Sequence[Nic]:
        """Return stand-ins for a guest's NICs."""
        return [
            Nic(_NAME, device, f"p.{_NAME}.{number}", SWITCH, MACHINE, f"10.0.0.{number + 1}/24")
            for number, device in enumerate(DEVICES[: len(self.macs)])
        ]


@dataclass(frozen=True, slots=True)
class Snapshot:
    folder: Path
    version: str
    """The version of the QEMU that saved it."""
    macs: tuple[str, ...]

    def kept(self) -> Kept:
        return Kept(self.folder / "memory", resumes=True, macs=self.macs)

    @property
    def state(self) -> Path:
        return self.folder / "state"


@contextlib.contextmanager
def held(model: Model, probe: Path, limit_s: float) -> Iterator[Snapshot]:
    """Yield the snapshot of a model, saved first if there is none; nobody removes it while the block runs.

    ``limit_s`` limits the boot of the guest to save, and the wait for another command that saves it. Raises HostError or
    OSError."""
    top, key = cache.folder(FOLDER, mode=0o700), model.key()
    with _locked(top, key, limit_s) as lock:
        snapshot = _intact(top / key, model)
        while snapshot is None:
            _take(lock, fcntl.LOCK_EX, key, limit_s)  # Whoever had it meanwhile may have saved this snapshot.
            if _intact(top / key, model) is None:
                _save(top / key, model, probe, limit_s)
                _sweep(top, key)
            _take(lock, fcntl.LOCK_SH, key, limit_s)
            snapshot = _intact(top / key, model)
        os.utime(lock, ns=(time.time_ns(),) * 2)  # the clock that files have by themselves ticks only every few milliseconds
        yield snapshot


def _intact(folder: Path, model: Model) -> Snapshot | None:
    """Return the snapshot in a folder if it is complete and unchanged since it was saved."""
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
    """Return the metadata that any write to a file changes, even through a descriptor opened long ago."""
    files = [(folder / name).lstat() for name in _FILES]
    return [[file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns] for file in files]


def _save(final: Path, model: Model, probe: Path, limit_s: float) -> None:
    """Save a guest in a folder with another name, and rename the folder once it is complete."""
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
    """Boot a guest in a lab of its own, save it when its agent waits for a connection, and return QEMU's version."""
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
            raise LimitExceeded(f"QEMU's monitor has no socket after {limit_s:g} s")
        time.sleep(_POLL_S)


@contextlib.contextmanager
def _locked(top: Path, key: str, limit_s: float) -> Iterator[int]:
    """Yield the lock of a key, shared. A file that was removed meanwhile locks nothing and is opened again."""
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
                raise LimitExceeded(f"snapshot {key}: another command has held its lock for {limit_s:g} s") from None
            time.sleep(_POLL_S)


def _sweep(top: Path, own: str) -> None:
    """Remove snapshots that are useless or exceed the limit, but none in use."""
    locks = sorted(top.glob("*.lock"), key=lambda path: path.lstat().st_mtime_ns, reverse=True)
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
    """Return when this machine started: a snapshot last used before belongs to another boot."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def _bytes(folder: Path) -> int:
    """Return the bytes that a folder takes on the disk; 0 if it does not exist."""
    with contextlib.suppress(OSError):
        return 512 * sum(path.lstat().st_blocks for path in folder.iterdir())
    return 0


def _remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
