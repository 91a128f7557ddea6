"""Progress: a line per run without a terminal, and the time left."""

from __future__ import annotations

import io

import pytest

from twinbed import design
from twinbed.cli.progress import duration, title, watcher
from twinbed.lab.study import PhaseBegan, RunEnded, StudyBegan
from twinbed.model.run import Phase, Status
from twinbed.registry import catalogue
from twinbed.render.terminal import Terminal
from twinbed.study.loading import load
from twinbed.study.run import Run

STUDY = """
study: progress
testbeds: {a: {driver: fake}, b: {driver: fake}}
workload: {kind: planted}
instruments: []
replicates: 2
order: sequential
"""


@pytest.fixture
def runs() -> list[Run]:
    """a, a, b, b"""
    return list(design.runs(load(STUDY, "progress.yaml", catalogue())))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "?"),
        (0, "0 s"),
        (0.4, "0 s"),
        (45, "45 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 00 min"),
        (7800, "2 h 10 min"),
        (90_000, "25 h 00 min"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def ended(run: Run, seconds: float) -> RunEnded:
    return RunEnded(run, Status.COMPLETE, seconds, None, None)


def test_lines_without_a_terminal(runs: list[Run]) -> None:
    said = io.StringIO()
    with watcher(Terminal(file=said, width=40), runs[1:]) as listener:
        listener(StudyBegan(4, 1))
        listener(PhaseBegan(runs[1], Phase.UP))
        listener(ended(runs[1], 10.0))
        listener(RunEnded(runs[2], Status.FAILED, 100.0, Phase.WORKLOAD, "client: [ab] said nothing that anybody could read"))
        listener(ended(runs[3], 60.04))
    assert said.getvalue().splitlines() == [
        "4 runs, 1 of them made earlier",
        # Nothing is known of b yet: two runs as long as those of a.
        "[2/4] a #2: done in 10.0 s; about 20 s left",
        f"[3/4] b #1 ({runs[2].id}): FAILED after 100.0 s in workload: client: [ab] said nothing that anybody could read;"
        " about 1 min 40 s left",
        "[4/4] b #2: done in 60.0 s",
    ]
    assert "\x1b" not in said.getvalue()


def test_the_time_left_is_by_testbed(runs: list[Run]) -> None:
    said = io.StringIO()
    with watcher(Terminal(file=said, width=200), runs) as listener:
        listener(StudyBegan(4, 0))
        listener(ended(runs[0], 2.0))
        listener(ended(runs[2], 6.0))
        listener(ended(runs[3], 8.0))
    lines = said.getvalue().splitlines()
    assert lines[0] == "4 runs"
    assert lines[1].endswith("; about 6 s left"), "3 runs at 2 s"
    assert lines[2].endswith("; about 8 s left"), "2 s for a, 6 s for b"
    assert lines[3].endswith("; about 2 s left")


def test_a_bar_on_a_terminal(runs: list[Run]) -> None:
    said = io.StringIO()
    with watcher(Terminal(file=said, width=120, force_terminal=True), runs) as listener:
        listener(StudyBegan(4, 0))
        listener(PhaseBegan(runs[0], Phase.WARM_UP))
        listener(RunEnded(runs[0], Status.FAILED, 3.0, Phase.WARM_UP, "no answer"))
        for run in runs[1:]:
            listener(ended(run, 3.0))
    assert "4/4" in said.getvalue()
    assert f"a #1 ({runs[0].id}): FAILED after 3.0 s in warm-up: no answer" in said.getvalue()


def test_a_run_in_words(runs: list[Run]) -> None:
    assert [title(run) for run in runs] == ["a #1", "a #2", "b #1", "b #2"]
