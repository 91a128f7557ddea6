"""Tasks in processes: the order of results, and what the death of a process costs."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deaths import die_once
from twinbed.executor import Here, NoExecutor, WorkerLost, opened
from twinbed.executor.local import Processes


def square(number: int) -> int:
    return number * number


def dies_once(mark: Path) -> str:
    """Ends its process for a mark that is called so, unless that was done already."""
    if mark.suffix == ".deadly":
        die_once(mark)
    return mark.name


def stops_once(mark: Path) -> str:
    """Stops its process for a mark that is called so, unless that was done already."""
    if mark.suffix == ".stopping" and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    return mark.name


def dies(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def terminates(_: int) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def refuses(number: int) -> int:
    if number == 3:
        raise NoExecutor("not three", advice="take four", exit_code=7)
    return number


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_the_order_of_arguments(workers: int) -> None:
    executor = Here() if workers == 1 else Processes(workers)
    assert list(executor.map(square, range(20))) == [number * number for number in range(20)]


def test_arguments_are_taken_as_they_are_needed() -> None:
    taken: list[int] = []

    def endless() -> Iterator[int]:
        for number in range(1_000_000):
            taken.append(number)
            yield number

    results = Processes(2).map(square, endless())
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    results.close()  # type: ignore[attr-defined]
    assert len(taken) < 20


def test_a_worker_that_dies_costs_its_own_task(tmp_path: Path) -> None:
    marks = [tmp_path / f"{number}{'.deadly' if number in (2, 5) else ''}" for number in range(8)]
    assert list(Processes(2).map(dies_once, marks)) == [mark.name for mark in marks]


def test_a_worker_that_is_stopped_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinbed.executor.local._CHECK_S", 0.05)
    marks = [tmp_path / f"{number}{'.stopping' if number in (2, 5) else ''}" for number in range(8)]
    assert list(Processes(2).map(stops_once, marks)) == [mark.name for mark in marks]
    assert multiprocessing.active_children() == []


def test_no_task_is_lost_to_a_worker_that_dies_while_results_are_used(tmp_path: Path) -> None:
    """The next task is handed to processes of which one is dead already."""
    marks = [tmp_path / name for name in ("0", "1.deadly", "2", "3")]
    results = []
    for result in Processes(2).map(dies_once, marks):
        results.append(result)
        while not marks[1].exists():
            time.sleep(0.01)
        time.sleep(0.3)
    assert results == [mark.name for mark in marks]


def test_a_task_that_ends_every_worker_is_named() -> None:
    with pytest.raises(WorkerLost, match="dies of 0") as caught:
        list(Processes(2).map(dies, [0]))
    assert caught.value.exit_code == 1


def test_what_a_task_raises_is_raised_with_all_that_it_says() -> None:
    with pytest.raises(NoExecutor, match="not three") as caught:
        list(Processes(2).map(refuses, range(10)))
    assert (caught.value.advice, caught.value.exit_code) == ("take four", 7)


def test_local_has_a_worker_for_each_cpu_that_may_be_used() -> None:
    with opened(None) as some, opened("local:3") as three, opened("local:1") as one:
        assert some.workers == len(os.sched_getaffinity(0))
        assert (three.workers, one.workers) == (3, 1)


@pytest.mark.parametrize("on", ["local:0", "locale", "http://scheduler", "nowhere.yaml"])
def test_what_is_no_executor_is_refused_with_what_may_stand_there(on: str) -> None:
    with pytest.raises(NoExecutor, match=on) as caught, opened(on):
        pass
    assert "tcp://scheduler:8786" in caught.value.advice


def test_a_worker_that_dies_when_all_is_done_holds_up_nobody() -> None:
    """One that waits for a task holds the lock of the queue, and takes it along."""
    for _ in range(20):
        left = 4
        for _ in Processes(2).map(square, range(4)):
            left -= 1
            if not left and (children := multiprocessing.active_children()):
                children[0].kill()
        assert not left


def test_a_worker_that_is_terminated_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """The pool does that to the others where one has died. A command's handler of SIGTERM, inherited, would raise in them."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with pytest.raises(WorkerLost):
            list(Processes(2).map(terminates, [0]))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capfd.readouterr() == ("", "")
