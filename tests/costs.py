"""What tests cost: wall and CPU time of each, by folder, and which took most of either. Printed at the end of every run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

import pytest

from alone import cpu_time_s

SHOWN = 25


@dataclass
class Cost:
    """Seconds of one test, or of a folder's tests. CPU time is that of a worker and of all that it started."""

    tests: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0

    def add(self, other: Cost) -> None:
        self.tests += other.tests
        self.wall_s += other.wall_s
        self.cpu_s += other.cpu_s

    def __str__(self) -> str:
        return f"{self.wall_s:8.1f} {self.cpu_s:8.1f}"


@dataclass(eq=False)
class Costs:
    """A plugin: a worker measures each phase of a test, and the process that prints adds them up."""

    spent_s: float = 0.0
    by_test: dict[str, Cost] = field(default_factory=dict)

    def pytest_runtest_logstart(self) -> None:
        self.spent_s = cpu_time_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report = yield
        now = cpu_time_s()
        report.cpu_s = now - self.spent_s
        self.spent_s = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        spent = Cost(int(report.when == "call"), report.duration, getattr(report, "cpu_s", 0.0))
        self.by_test.setdefault(report.nodeid, Cost()).add(spent)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.by_test:
            return
        terminalreporter.section("time by folder", sep="-")
        for line in table(self.by_test):
            terminalreporter.write_line(line)


def table(by_test: dict[str, Cost]) -> Iterator[str]:
    """Yield the lines: a sum for each folder, a total, the tests that took longest, and those that took most CPU time."""
    folders: dict[str, Cost] = defaultdict(Cost)
    total = Cost()
    for nodeid, cost in by_test.items():
        folders[folder(nodeid)].add(cost)
        total.add(cost)
    yield f"{'wall s':>8} {'CPU s':>8}  tests"
    for name, cost in sorted(folders.items(), key=lambda item: -item[1].wall_s):
        yield f"{cost}  {cost.tests:5d} {name}"
    yield f"{total}  {total.tests:5d} in all"
    for what, seconds in (("that took longest", attrgetter("wall_s")), ("that took most CPU time", attrgetter("cpu_s"))):
        yield f"the {SHOWN} {what}:"
        for nodeid in sorted(by_test, key=lambda nodeid: -seconds(by_test[nodeid]))[:SHOWN]:
            yield f"{by_test[nodeid]}  {nodeid}"


def folder(nodeid: str) -> str:
    """Return `tests/e2e` for a test anywhere below it."""
    return "/".join(nodeid.partition("::")[0].split("/")[:2])
