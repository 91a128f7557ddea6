"""Costs of tests: wall and CPU time by folder and by file, and the most expensive tests. Printed at the end of every run;
``--costs 60`` prints 60 files and tests instead of 25."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter

import pytest

from alone import cpu_time_s

SHOWN = 25
"""Files and tests in a list, by default."""


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
        terminalreporter.section("time by folder and file", sep="-")
        for line in table(self.by_test, terminalreporter.config.getoption("costs")):
            terminalreporter.write_line(line)


def table(by_test: dict[str, Cost], shown: int = SHOWN) -> Iterator[str]:
    """Yield the lines: a sum for each folder, a total, and the files and tests that took most CPU time or longest."""
    folders, files = sums(by_test, folder), sums(by_test, file)
    yield f"{'wall s':>8} {'CPU s':>8}  tests"
    for name, cost in sorted(folders.items(), key=lambda item: -item[1].wall_s):
        yield f"{cost}  {cost.tests:5d} {name}"
    for cost in sums(by_test, lambda _: "").values():
        yield f"{cost}  {cost.tests:5d} in all"
    yield from largest("files that took most CPU time", files, attrgetter("cpu_s"), shown)
    yield from largest("tests that took most CPU time", by_test, attrgetter("cpu_s"), shown)
    yield from largest("tests that took longest", by_test, attrgetter("wall_s"), shown)


def largest(what: str, costs: dict[str, Cost], seconds: Callable[[Cost], float], shown: int) -> Iterator[str]:
    yield f"the {shown} {what}:"
    for name in sorted(costs, key=lambda name: -seconds(costs[name]))[:shown]:
        yield f"{costs[name]}  {name}"


def sums(by_test: dict[str, Cost], of: Callable[[str], str]) -> dict[str, Cost]:
    """Return the sum of the tests' costs for each name that ``of`` returns for a test."""
    added: dict[str, Cost] = defaultdict(Cost)
    for nodeid, cost in by_test.items():
        added[of(nodeid)].add(cost)
    return added


def file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def folder(nodeid: str) -> str:
    """Return `tests/e2e` for a test anywhere below it."""
    return "/".join(file(nodeid).split("/")[:2])
