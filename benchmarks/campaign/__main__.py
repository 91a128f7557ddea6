"""The command line; what it does is in the package's own words."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.alone import enter

import benchmarks.campaign
from benchmarks.campaign import alone, environment, faults, kills, studies, table, wilson


@dataclass(slots=True)
class Found:
    """Of the cases of one row."""

    cases: int = 0
    hit: int = 0
    """In which something was really disturbed."""
    wrong: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Kind of failure -> cases."""

    def add(self, case: str, hit: bool, wrong: Mapping[str, str], said: Path) -> None:
        self.cases += 1
        self.hit += hit
        for kind, text in wrong.items():
            self.wrong[kind].append(case)
            sys.stderr.write(f"{case}: {kind}: {text}\n")
        if wrong and said.exists():
            sys.stderr.write("".join(f"    {line}\n" for line in said.read_text()[-600:].splitlines()))

    def row(self, kinds: Sequence[str]) -> tuple[object, ...]:
        low, high = wilson(len({case for cases in self.wrong.values() for case in cases}), self.cases)
        return (self.cases, self.hit, *(len(self.wrong.get(kind, ())) for kind in kinds), f"{low:.1%} to {high:.1%}")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.campaign",
        description=benchmarks.campaign.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kills", type=int, default=0, help="how many signals")
    parser.add_argument("--drivers", nargs="+", choices=tuple(studies.STUDIES), default=list(studies.STUDIES))
    parser.add_argument("--environment", type=int, default=0, help="how many troubles of the machine")
    parser.add_argument("--faults", type=int, default=0, help="how many runs of each fault")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the case of this number")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no case after so long")
    options = parser.parse_args()
    enter(sys.executable, "-m", "benchmarks.campaign", *sys.argv[1:])
    until = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="twinbed-campaign-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        alone.take_temporary(folder)
        failed = False
        if options.kills:
            failed |= _kills(options, folder, until, stack)
        if options.environment:
            failed |= _environment(options, folder, until)
        if options.faults:
            failed |= faults.run(options.faults, options.seed, folder)
    return int(failed)


def _wanted(options: argparse.Namespace, numbers: Iterator[int], until: float) -> Iterator[int]:
    for number in numbers:
        if time.monotonic() > until:
            return
        if options.only in (None, number):
            yield number


def _undisturbed(folder: Path) -> Sequence[str]:
    alike = folder / "undisturbed"
    alike.mkdir()
    (alike / "study.yaml").write_text(studies.STUDIES["fake"])
    alone.ready(alone.command("run", str(alike / "study.yaml"), "-o", str(alike / "results")), alike / "said")
    values = studies.values(alike / "results", alike / "said")
    assert values, (alike / "said").read_text()
    return values


def _kills(options: argparse.Namespace, folder: Path, until: float, stack: contextlib.ExitStack) -> bool:
    from tests.remote.machines import machines

    two = None
    if "remote" in options.drivers:
        (folder / "machines").mkdir()
        two = stack.enter_context(machines(folder / "machines"))
    same, found = _undisturbed(folder), dict[tuple[str, str], Found]()
    cases = list(kills.cases(options.kills, options.seed, options.drivers))
    for number in _wanted(options, iter(range(len(cases))), until):
        case, of_case = cases[number], folder / f"kill-{number}"
        of_case.mkdir()
        hit, wrong = kills.try_one(case, of_case, same, two if case.driver == "remote" else None)
        found.setdefault((case.driver, hit or "nobody"), Found()).add(str(case), bool(hit), wrong, of_case / "said")
        sys.stderr.write(f"[{number + 1}/{len(cases)}] {case}{'' if hit == case.victim else f': {hit} instead'}\n")
    _tell(("driver", "victim"), found, kills.KINDS)
    return any(each.wrong for each in found.values())


def _environment(options: argparse.Namespace, folder: Path, until: float) -> bool:
    same, found = _undisturbed(folder), dict[tuple[str, ...], Found]()
    for number in _wanted(options, iter(range(options.environment)), until):
        of_case = folder / f"trouble-{number}"
        of_case.mkdir()
        kind, hit, wrong = environment.try_one(number, options.seed, of_case, same)
        found.setdefault((kind,), Found()).add(f"{number}: {kind}", hit, wrong, of_case / "said")
        sys.stderr.write(f"[{number + 1}/{options.environment}] {kind}{'' if hit else ': went on'}\n")
    _tell(("what befell it",), found, environment.KINDS)
    return any(each.wrong for each in found.values())


def _tell(heads: Sequence[str], found: Mapping[tuple[str, ...], Found], kinds: Sequence[str]) -> None:
    rows = [(*key, *each.row(kinds)) for key, each in sorted(found.items())]
    sys.stdout.write(table((*heads, "cases", "hit", *kinds, "share with anything wrong, 95 %"), *rows))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
