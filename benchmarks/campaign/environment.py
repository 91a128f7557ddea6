"""What may befall the machine of a study: full and read-only disks, no memory, a clock that is set, a second controller.

Of driver ``fake``, whose runs take no time, so that every phase is soon there. Each case ends with the study gone on with where
nothing is in its way any more: its values are those of a study that nothing befell.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import resource
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.campaign import alone, studies
from benchmarks.campaign.kills import PHASES

_PHASES = PHASES["fake"]
_ROOM_KB = 400
"""More than the study's results take, by a little."""
_FILES = 110
"""The same of inodes."""
_GET_FLAGS, _SET_FLAGS, _IMMUTABLE = 0x80086601, 0x40086602, 0x10
"""linux/fs.h."""
KINDS = ("left behind", "lost", "twice", "changed", "not resumed", "hung", "traceback")


@contextlib.contextmanager
def _disk(results: Path, options: str) -> Iterator[None]:
    """Results are on a disk of their own, which is made larger afterwards."""
    results.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(results)], check=True)
    yield
    subprocess.run(["mount", "-o", "remount,size=64m,nr_inodes=100000", str(results)], check=True)


def _immutable(folder: Path, on: bool) -> None:
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(folder, os.O_RDONLY)
        flags = struct.unpack("l", fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8)))[0]
        fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("l", flags | _IMMUTABLE if on else flags & ~_IMMUTABLE))
        os.close(descriptor)


def _befall(kind: str, study: Path, results: Path, said: Path, draw: random.Random) -> int | None:
    """The controller's exit code; None where it had to be ended."""
    phase = draw.choice(_PHASES)
    at = (phase, 1 if phase in ("preflight", "conclude") else draw.randint(1, 8))

    def carry(then: Callable[[int], None] = lambda _: None, *words: str) -> int | None:
        return studies.carry(study, results, said, at, then, *(words or ("--no-report",)))

    if kind == "disk full":
        with _disk(results, f"size={draw.randrange(0, _ROOM_KB, 4) or 4}k"):
            return carry()
    if kind == "no inodes":
        with _disk(results, f"nr_inodes={draw.randint(2, _FILES)}"):
            return carry()
    if kind == "read-only results":
        folder = draw.choice((results, results / "runs", results.parent))
        try:
            return carry(lambda _: _immutable(folder, True))
        finally:
            _immutable(folder, False)
    if kind == "no memory":
        more = draw.randint(0, 64) << 20

        def starve(controller: int) -> None:
            pages = int(Path(f"/proc/{controller}/statm").read_text().split()[0])
            limit = pages * os.sysconf("SC_PAGE_SIZE") + more
            resource.prlimit(controller, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))

        return carry(starve)
    if kind == "clock set":
        import time

        real, by_s = time.time, draw.choice((-7200.0, -1.0, 1.0, 7200.0))

        def setting(phase_of: list[str]) -> Callable[[], float]:
            return lambda: real() + (by_s if at[0] in phase_of else 0.0)

        begun: list[str] = []
        time.time = setting(begun)  # type: ignore[assignment]  # in the children alone: this process does not ask
        try:
            original = studies.controller

            def told(study: Path, results: Path, tell: Callable[[str], None], *words: str) -> Callable[[], None]:
                return original(study, results, lambda each: (begun.append(each), tell(each))[1], *words)

            studies.controller = told
            return carry()
        finally:
            time.time, studies.controller = real, original
    assert kind == "two controllers"
    second: list[int] = []
    argv = ("run", str(study), "-o", str(results), "--no-report", "--keep-going")
    other = said.with_name("said by the second")
    first = carry(lambda _: second.append(alone.forked(alone.command(*argv), other)))
    codes = [first, *(alone.ended(each, studies.LIMIT_S) for each in second)]
    return None if None in codes else first


KINDS_OF_TROUBLE = ("disk full", "no inodes", "read-only results", "no memory", "clock set", "two controllers")


def try_one(number: int, seed: int, folder: Path, undisturbed: Sequence[str]) -> tuple[str, bool, dict[str, str]]:
    """(what befell it, whether that stopped it, what was wrong: kind -> text)."""
    kind, draw = KINDS_OF_TROUBLE[number % len(KINDS_OF_TROUBLE)], random.Random(f"{seed} {number}")
    study, results, said = folder / "study.yaml", folder / "results", folder / "said"
    study.write_text(studies.STUDIES["fake"])
    before = alone.remains()
    code = _befall(kind, study, results, said, draw)
    first = studies.complete(results)
    words = said.read_text() if said.exists() else ""
    wrong = studies.judged(study, results, said, first, undisturbed)
    subprocess.run(["umount", "-q", str(results)], check=False)
    if "Traceback" in words:
        wrong["traceback"] = words[-300:]
    if code is None:
        wrong["hung"] = f"did not end in {studies.LIMIT_S:g} s"
    if stays := alone.left(before):
        wrong["left behind"] = "; ".join(sorted(stays))
    return kind, code != 0, wrong
