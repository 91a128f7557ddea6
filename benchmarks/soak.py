"""Run what is too long for the tests, each part for a share of the time, and print a table: ``make soak SOAK=2h``.

A part is a command that tries some cases of a seed. It is run again with the next seed until its share of the time is over or
a case fails; a failure's output is printed, with the command that repeats it. The exit code is 1 if a case failed or a part
finished no round in its share: such a part has shown nothing.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.table import Table

from twinbed.model.units import parse_duration

HOME = Path(__file__).parents[1]
SHOWN_BYTES = 4000
PASSED = "passed"
SEEDS_OF_A_ROUND = 1000
"""A command may use as many seeds from its own on."""
PATHS = {"PYTHONPATH": os.pathsep.join(map(str, (HOME, HOME / "tests", HOME / "tests/golden/formats")))}
LONGER_S = 30.0
"""How much longer than its share a command may take, so that its last case ends."""
ENDS_S = 60.0
"""How long a part may take to clean up when its time is over."""


@dataclass(frozen=True)
class Part:
    """A command for a seed, and its weight in the whole time."""

    name: str
    command: Callable[[int, float], Sequence[str]]
    """Of a seed, and how many minutes are left."""
    weight: float = 1.0
    environment: Callable[[int], dict[str, str]] = field(default=lambda _: {})


@dataclass
class Soaked:
    """How a part went: rounds that passed, and the command that failed."""

    rounds: int = 0
    seconds: float = 0.0
    failed: str = ""

    @property
    def outcome(self) -> str:
        if self.failed:
            return "FAILED"
        return PASSED if self.rounds else "NO ROUND FINISHED: it needs a longer SOAK"


def module(name: str, *arguments: str) -> Callable[[int, float], Sequence[str]]:
    """Return the command of a module; SEED and MINUTES in its arguments are the seed, and how many minutes are left."""

    def command(seed: int, minutes: float) -> Sequence[str]:
        values = {"SEED": str(seed), "MINUTES": f"{minutes:.1f}"}
        return ["-m", name, *(values.get(word, word) for word in arguments)]

    return command


def tests(*arguments: str) -> Callable[[int, float], Sequence[str]]:
    return module("pytest", "-q", "-x", "--timeout=0", "-p", "no:cacheprovider", *arguments)


def set_to(**variables: str) -> Callable[[int], dict[str, str]]:
    """Return an environment; SEED in its values is the seed."""
    return lambda seed: {name: value.replace("SEED", str(seed)) for name, value in variables.items()}


PARTS: Sequence[Part] = (
    Part("campaign: kills", module("benchmarks.campaign", "--kills", "10000", "--seed", "SEED", "--minutes", "MINUTES"), 3),
    Part(
        "campaign: troubles of the machine",
        module("benchmarks.campaign", "--environment", "10000", "--seed", "SEED", "--minutes", "MINUTES"),
        2,
    ),
    Part("campaign: faults amid runs", module("benchmarks.campaign", "--faults", "1", "--seed", "SEED"), 2),
    Part("A/A on real runs", tests("tests/e2e/test_aa.py"), 2),
    Part("guests that boot with each NIC", tests("tests/e2e/test_nics.py"), 1, set_to(TWINBED_SOAK_SEED="SEED")),
    Part("ready studies", tests("tests/e2e/test_ready_studies.py"), 1, set_to(TWINBED_SOAK_SEED="SEED")),
    Part("TCP of every kind", tests("tests/e2e/test_tcp_kinds.py"), 1, set_to(TWINBED_SOAK_SEED="SEED")),
    Part("error rates and coverage", tests("tests/known", "-m", "soak"), 4, set_to(TWINBED_SOAK_SEED="SEED")),
    Part(
        "changed files of results",
        tests("tests/property/test_mutated_results.py"),
        2,
        set_to(TWINBED_MUTATED_CALLS="200", TWINBED_MUTATED_SEED="SEED"),
    ),
    Part(
        "changed buckets",
        tests("tests/unit/results/bucket/test_hostile.py::test_fuzzed"),
        1,
        set_to(TWINBED_BUCKET_CASES="400", TWINBED_BUCKET_SEED="SEED"),
    ),
    Part("damaged reports", tests("tests/unit/imports/formats/test_damaged.py"), 1, set_to(TWINBED_SOAK_SEED="SEED")),
    Part("links in results", module("tests.links_everywhere", "--cases", "300", "--seed", "SEED"), 2),
    Part("hostile names", module("tests.hostile_names", "--cases", "4", "--seed", "SEED"), 2),
    Part("hostile streams", module("tests.hostile_streams", "300", "SEED"), 1),
)


def soak(part: Part, share_s: float, seed: int) -> Soaked:
    """Repeat a part with one seed after another, until its share of the time is over or it fails."""
    soaked, begun = Soaked(), time.monotonic()
    while not soaked.failed and (left_s := share_s - soaked.seconds) > 0:
        words = [sys.executable, *part.command(seed, left_s / 60)]
        environment = part.environment(seed)
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                words, cwd=HOME, env=os.environ | PATHS | environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )
            code = _ended(process, left_s + LONGER_S)
            if code:
                set_first = " ".join(f"{name}={value}" for name, value in environment.items())
                soaked.failed = f"{set_first} {shlex.join(words)}".strip()
                sys.stderr.buffer.write(_end_of(said))
                sys.stderr.write(f"\n{part.name}: exit code {code}; repeat it with: {soaked.failed}\n")
            elif code is not None:
                soaked.rounds += 1
                seed += SEEDS_OF_A_ROUND
        soaked.seconds = time.monotonic() - begun
    return soaked


def _ended(process: subprocess.Popen[bytes], limit_s: float) -> int | None:
    """Return the exit code; None where the time was over first, and the process was interrupted."""
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(ENDS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return None


def _end_of(said: IO[bytes]) -> bytes:
    said.seek(max(0, said.seek(0, os.SEEK_END) - SHOWN_BYTES))
    return said.read()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--for", dest="duration", default="20m", help="how long in all, such as 20m or 8h (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=None, help="the first seed (default: the time, so that every call tries others)"
    )
    parser.add_argument("--only", nargs="+", choices=[part.name for part in PARTS], help="these parts")
    options = parser.parse_args()
    seed = int(time.time()) if options.seed is None else options.seed
    parts = [part for part in PARTS if options.only is None or part.name in options.only]
    second_of_weight = parse_duration(options.duration) / sum(part.weight for part in parts)
    shown = Table("part", "rounds", "time", "", title=f"seeds from {seed}")
    passed = True
    for part in parts:
        sys.stderr.write(f"{part.name} ...\n")
        soaked = soak(part, second_of_weight * part.weight, seed)
        passed &= soaked.outcome == PASSED
        shown.add_row(part.name, str(soaked.rounds), f"{soaked.seconds:.0f} s", soaked.outcome)
    Console().print(shown)
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
