"""How often ``twinbed explain`` names the cause that was planted, and none where none was, on real testbeds.

python -m benchmarks.explain                          every planted cause, ten studies each
python -m benchmarks.explain --studies 3 --only gro-e1000 --folder /tmp/studies

A study has three testbeds that are alike but for one setting of the last. ``same`` is an A/A comparison in the same runs: no
cause may be named for it. Studies have seeds of their own and are kept in the folder: the same command goes on with them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import twinbed
from twinbed.analyses.explain.method import analysis as explain
from twinbed.cli.inputs import ResultsFolders

_E1000 = "driver: qemu, nic: e1000"
_ANSWERS = "kind: http, duration: 1s, max_requests: 2000, payload: 500B, keep_alive: on, nagle: on"
"""nginx writes an answer's header and its body apart: Nagle's algorithm holds the body until the header is acknowledged."""
_DOCUMENTS = "kind: http, duration: 2s, payload: 1MiB"
_SMALL_WRITES = "kind: iperf3, duration: 4s, payload: 200B, rate: 5mbit, nagle: off"
"""At a rate that is offered, so that packets for the same bytes are what differs, not what a busy machine can carry."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A setting that the testbed ``planted`` alone has."""

    cause: str
    """As ``explain`` calls it."""
    testbed: str
    """What all three have."""
    setting: str
    """What the last has."""
    workload: str
    link: str = ""
    replicates: int = 4

    def study(self, seed: int) -> str:
        return f"""
study: explain-{self.cause.replace("_", "-")}
testbeds:
  one: {{{self.testbed}}}
  same: {{{self.testbed}}}
  planted: {{{self.testbed}, {self.setting}}}
reference: one
workload: {{{self.workload}}}
topology: {{link: {{{self.link}}}}}
instruments: [packets, counters]
replicates: {self.replicates}
seed: {seed}
"""


PLANTED = {
    "delayed-ack-container": Planted("delayed_ack", "driver: container", "quickack: on", _ANSWERS),
    "delayed-ack-e1000": Planted("delayed_ack", _E1000, "quickack: on", _ANSWERS, replicates=6),
    "autocorking-e1000": Planted("autocorking", _E1000, "autocorking: off", _SMALL_WRITES, replicates=8),
    "gro-e1000": Planted("gro", _E1000, "gro: off", _DOCUMENTS, replicates=6),
    "initial-window-e1000": Planted(
        "initial_window",
        _E1000,
        "initial_window: 2",
        "kind: http, duration: 2s, payload: 14KiB",
        "delay: 20ms, emulated_at: hosts",
    ),
}


@dataclass(slots=True)
class Counts:
    """Of the studies of one planted cause."""

    studies: int = 0
    different: int = 0
    """In which the planted testbed was different at all."""
    first: int = 0
    """In which its cause was named first."""
    same_different: int = 0
    same_named: int = 0
    """In which a cause was named for ``same``."""


def count(results: Path, cause: str, counts: Counts) -> list[str]:
    """Adds one study; what was named, the likeliest first."""
    pairs = {pair.testbed: pair for pair in explain.run(ResultsFolders().tables(results)).pairs}
    planted, same = pairs.get("planted"), pairs.get("same")
    named = [each.cause.name for each in planted.candidates] if planted else []
    counts.studies += 1
    counts.different += planted is not None
    counts.first += named[:1] == [cause]
    counts.same_different += same is not None
    counts.same_named += bool(same and same.candidates)
    return named


def run(name: str, studies: int, first_seed: int, folder: Path, tell: Callable[[str], None]) -> Counts:
    """``studies`` small studies of one planted cause."""
    planted, counts = PLANTED[name], Counts()
    for seed in range(first_seed, first_seed + studies):
        study, results = folder / f"{name}-{seed}.yaml", folder / f"{name}-{seed}"
        study.write_text(planted.study(seed))
        twinbed("run", str(study), "-o", str(results), "--no-report", allowed=(0, 4, 5))
        tell(f"{name} {seed}: {', '.join(count(results, planted.cause, counts)) or 'nothing'}")
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--studies", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the first study; the next ones follow")
    parser.add_argument("--only", choices=PLANTED, action="append")
    parser.add_argument("--folder", type=Path, help="where studies and results are kept; default: a temporary one")
    options = parser.parse_args()

    def tell(line: str) -> None:
        sys.stderr.write(f"{line}\n")

    heads = ("planted", "studies", "different", "named first", "A/A: different", "A/A: a cause named")
    lines = [heads, tuple("---" for _ in heads)]
    with tempfile.TemporaryDirectory(prefix="twinbed-explain-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.only or PLANTED:
            found = run(name, options.studies, options.seed, folder, tell)
            numbers = (found.studies, found.different, found.first, found.same_different, found.same_named)
            lines.append((name, *map(str, numbers)))
    sys.stdout.write("".join(f"| {' | '.join(line)} |\n" for line in lines))


if __name__ == "__main__":
    main()
