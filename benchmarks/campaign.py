"""Signals at every phase of a study: nothing is left, no run is lost or made twice, and the same command goes on.

python -m benchmarks.campaign --kills 1000 --seed 1               of driver `fake`, whose runs take no time
python -m benchmarks.campaign --kills 60 --drivers container      agents, servers and clients are hit too
python -m benchmarks.campaign --kills 1000 --seed 1 --only 17     one case again

A case is a driver, a victim, a signal and a phase, drawn evenly, not by how long phases last: the controller says when a phase
begins, and then the victim gets the signal. What is left is looked for on the whole machine, so nothing else of twinbed's may
run on it meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scipy.special import ndtri

from benchmarks import twinbed
from twinbed.api import Results
from twinbed.hosts import cgroups, scratch
from twinbed.model.run import Phase

_STUDIES = {
    "fake": """
study: campaign
testbeds: {one: {driver: fake, seed: 1}, two: {driver: fake, seed: 2}}
workload: {kind: planted}
instruments: []
factors: {testbed: [one, two], workload.rate: [1000, 2000]}
replicates: 2
seed: 5
""",
    "container": """
study: campaign
testbeds: {bed: {driver: container}}
workload: {kind: http, duration: 5s, max_requests: 60}
factors: {testbed: [bed], payload: [500B, 20kB]}
instruments: [packets, counters]
replicates: 1
seed: 5
""",
    "qemu": """
study: campaign
testbeds: {bed: {driver: qemu}}
workload: {kind: http, duration: 5s, max_requests: 60}
instruments: [packets, counters]
replicates: 1
seed: 5
""",
}
_OF_RUNS = (
    Phase.UP,
    Phase.CONFIGURE,
    Phase.LINK_CHECK,
    Phase.SERVE,
    Phase.INSTRUMENT,
    Phase.WORKLOAD,
    Phase.COLLECT,
    Phase.DOWN,
)
PHASES = {
    "fake": ("preflight", Phase.UP, Phase.CONFIGURE, Phase.SERVE, Phase.WORKLOAD, Phase.COLLECT, Phase.DOWN, "conclude"),
    "container": ("preflight", *_OF_RUNS, "conclude"),
    "qemu": ("preflight", *_OF_RUNS, "conclude"),
}
_ONCE = ("preflight", "conclude")
_RUNS = {"fake": 8, "container": 2, "qemu": 1}
VICTIMS = {
    "fake": ("controller",),
    "container": ("controller", "keeper", "agent", "nginx", "ab", "tcpdump"),
    "qemu": ("controller", "keeper", "guest", "tcpdump"),
}
_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_OF_OTHERS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV)
_SPREAD_S = 0.03
"""After a phase has begun, at most."""
_LIMIT_S = 240.0
_GONE_S = 15.0
"""How long the dead may take to be gone."""


@dataclass(frozen=True, slots=True)
class Case:
    number: int
    driver: str
    victim: str
    signal: signal.Signals
    phase: str
    nth: int
    """Which time that the phase begins, of the first two."""
    offset_s: float

    def __str__(self) -> str:
        return f"{self.number}: {self.driver}, {self.victim}, {self.signal.name}, {self.phase} #{self.nth}"


@dataclass(slots=True)
class Found:
    """Of the cases of one driver and victim."""

    cases: int = 0
    hit: int = 0
    """In which the victim lived when the signal was sent."""
    wrong: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Kind of failure -> cases."""


KINDS = ("left behind", "lost", "twice", "changed", "not resumed")


def cases(count: int, seed: int, drivers: Sequence[str]) -> Iterator[Case]:
    """Drivers in turn; of each, every combination of victim, phase and signal once before any comes again."""
    draw = random.Random(seed)
    decks: dict[str, list[tuple[str, str, signal.Signals]]] = {driver: [] for driver in drivers}
    for number in range(count):
        driver = drivers[number % len(drivers)]
        if not decks[driver]:
            decks[driver] = [
                (victim, str(phase), each)
                for victim in VICTIMS[driver]
                for phase in PHASES[driver]
                for each in (_SIGNALS if victim == "controller" else _OF_OTHERS)
            ]
            draw.shuffle(decks[driver])
        victim, phase, each = decks[driver].pop()
        nth = 1 if phase in _ONCE else draw.randint(1, min(2, _RUNS[driver]))
        yield Case(number, driver, victim, each, phase, nth, draw.uniform(0, _SPREAD_S))


def controller(study: str, results: str) -> int:
    """`twinbed run`, which says on standard output when a phase begins."""
    from twinbed.cli import main, run_study

    def tell(phase: str) -> None:
        sys.stdout.write(f"phase {phase}\n")
        sys.stdout.flush()

    def before(phase: str, call: Callable[..., object]) -> Callable[..., object]:
        def told(*arguments: object, **named: object) -> object:
            tell(phase)
            return call(*arguments, **named)

        return told

    @contextlib.contextmanager
    def watcher(*_: object, **__: object) -> Iterator[Callable[[object], None]]:
        yield lambda event: tell(str(event.phase)) if hasattr(event, "phase") else None

    run_study._ready = before("preflight", run_study._ready)  # type: ignore[assignment]
    run_study._conclude = before("conclude", run_study._conclude)  # type: ignore[assignment]
    run_study.watcher = watcher  # type: ignore[assignment]
    sys.argv = ["twinbed", "run", study, "-o", results, "--keep-going"]
    return int(main.main() or 0)


def remains() -> set[str]:
    """What a lab or a command leaves on this machine."""
    found = {f"folder {path}" for path in scratch.root().glob("twinbed-*")}
    found |= {f"cgroup {path}" for root in cgroups.roots() for path in root.glob("twinbed-*")}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if "twinbed-probe" in command:
                found.add(f"process {process.name} {command}")
    return found


def _leaves(before: set[str]) -> set[str]:
    deadline = time.monotonic() + _GONE_S
    while (left := remains() - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _descendants(root: int) -> dict[int, str]:
    """Process id -> command line, of all below."""
    children: dict[int, list[int]] = defaultdict(list)
    lines: dict[int, str] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            children[int((process / "stat").read_text().rpartition(")")[2].split()[1])].append(int(process.name))
            lines[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    below, waiting = {}, list(children[root])
    while waiting:
        each = waiting.pop()
        below[each] = lines.get(each, "")
        waiting += children[each]
    return below


_WORDS: Mapping[str, Callable[[str], bool]] = {
    "keeper": lambda line: "twinbed-probe lab " in line,
    "agent": lambda line: "twinbed-probe container " in line,
    "guest": lambda line: line.startswith("qemu-system"),
    "nginx": lambda line: line.startswith("nginx"),
    "ab": lambda line: line.startswith("ab "),
    "tcpdump": lambda line: line.startswith("tcpdump"),
}


def _victim(case: Case, root: int) -> int | None:
    if case.victim == "controller":
        return root
    found = sorted(each for each, line in _descendants(root).items() if _WORDS[case.victim](line))
    return found[0] if found else None


def _records(results: Path) -> dict[str, tuple[int, dict[str, object]]]:
    """Run -> when its record was written, and the record."""
    return {
        path.parent.name: (path.stat().st_mtime_ns, json.loads(path.read_text()))
        for path in (results / "runs").glob("[0-9a-f]*/run.json")
    }


def _complete(records: Mapping[str, tuple[int, dict[str, object]]]) -> dict[str, int]:
    return {name: written for name, (written, record) in records.items() if record["status"] == "complete"}


def _values(results: Path) -> list[str]:
    """Every value of every run, without those that are times."""
    rows = Results(results).metrics().to_pylist()
    return sorted(json.dumps({**row, "time": None}, sort_keys=True, default=str) for row in rows if row.get("unit") != "s")


def hit(case: Case, folder: Path) -> bool:
    """Runs the study until the phase begins, and sends the signal; whether the victim lived then. Waits for the study's end."""
    argv = [sys.executable, "-m", "benchmarks.campaign", "--controller", str(folder / "study.yaml"), str(folder / "results")]
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=said, text=True)
    assert process.stdout
    begun, sent = 0, False
    for line in process.stdout:
        if line != f"phase {case.phase}\n":
            continue
        begun += 1
        if begun == case.nth:
            time.sleep(case.offset_s)
            victim = _victim(case, process.pid)
            if victim is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, case.signal)
                    sent = True
    process.wait(_LIMIT_S)
    return sent


def try_one(case: Case, folder: Path, undisturbed: Sequence[str]) -> tuple[bool, dict[str, str]]:
    """(whether the victim was hit, what was wrong: kind -> text). ``undisturbed``: the values of the study of ``fake``."""
    study, results = folder / "study.yaml", folder / "results"
    study.write_text(_STUDIES[case.driver])
    before, wrong = remains(), dict[str, str]()
    sent = hit(case, folder)
    left = _leaves(before)
    if case.victim == "controller" and case.signal == signal.SIGKILL:
        # Nobody is there to remove its scratch folder until the next command.
        left = {each for each in left if not each.startswith("folder")}
    first = _records(results)
    try:
        twinbed("run", str(study), "-o", str(results), "--retry-failed", "--keep-going", allowed=(0, 4, 5))
    except subprocess.CalledProcessError as error:
        return sent, {"not resumed": f"exit code {error.returncode}"}
    last = _records(results)
    planned = [run["id"] for run in json.loads((results / "study.json").read_text())["runs"]]
    left |= _leaves(before)
    if left:
        wrong["left behind"] = "; ".join(sorted(left))
    if lost := set(planned) - _complete(last).keys():
        wrong["lost"] = ", ".join(sorted(lost))
    again = {name for name, written in _complete(first).items() if _complete(last).get(name) != written}
    if twice := again | (last.keys() - set(planned)):
        wrong["twice"] = ", ".join(sorted(twice))
    if case.driver == "fake" and _values(results) != undisturbed:
        wrong["changed"] = "values are not those of the undisturbed study"
    return sent, wrong


def wilson(count: int, total: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927)."""
    if not total:
        return 0.0, 1.0
    z = float(ndtri(0.975))
    share = count / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * (share * (1 - share) / total + z * z / (4 * total * total)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)


def table(found: Mapping[tuple[str, str], Found]) -> str:
    lines = [("driver", "victim", "cases", "hit", *KINDS, "share with anything wrong, 95 %"), ("---",) * (5 + len(KINDS))]
    for (driver, victim), each in sorted(found.items()):
        low, high = wilson(len({case for texts in each.wrong.values() for case in texts}), each.cases)
        numbers = [str(len(each.wrong.get(kind, ()))) for kind in KINDS]
        lines.append((driver, victim, str(each.cases), str(each.hit), *numbers, f"{low:.2%} to {high:.2%}"))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drivers", nargs="+", choices=tuple(_STUDIES), default=["fake"])
    parser.add_argument("--only", type=int, help="the case of this number")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no case after so long")
    parser.add_argument("--controller", nargs=2, metavar=("STUDY", "RESULTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.controller:
        return controller(*options.controller)
    began, found = time.monotonic(), dict[tuple[str, str], Found]()
    with tempfile.TemporaryDirectory(prefix="twinbed-campaign-") as name:
        alone = Path(name) / "undisturbed"
        alone.mkdir()
        (alone / "study.yaml").write_text(_STUDIES["fake"])
        twinbed("run", str(alone / "study.yaml"), "-o", str(alone / "results"), "--no-report", allowed=(0, 4, 5))
        undisturbed = _values(alone / "results")
        for case in cases(options.kills, options.seed, options.drivers):
            if options.only not in (None, case.number):
                continue
            if time.monotonic() - began > 60 * options.minutes:
                break
            folder = Path(name) / str(case.number)
            folder.mkdir()
            sent, wrong = try_one(case, folder, undisturbed)
            each = found.setdefault((case.driver, case.victim), Found())
            each.cases += 1
            each.hit += sent
            for kind, text in wrong.items():
                each.wrong[kind].append(str(case))
                sys.stderr.write(f"{case}: {kind}: {text}\n")
                with contextlib.suppress(OSError):
                    sys.stderr.write((folder / "said").read_text()[-400:])
            sys.stderr.write(
                f"[{sum(one.cases for one in found.values())}/{options.kills}] {case}{'' if sent else ': not hit'}\n"
            )
    sys.stdout.write(table(found))
    return int(any(each.wrong for each in found.values()))


if __name__ == "__main__":
    sys.exit(main())
