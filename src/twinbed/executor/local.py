"""Tasks in processes of this machine."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeVar

from twinbed.executor.protocol import DEATHS, WorkerLost

T = TypeVar("T")
R = TypeVar("R")
_LOG = logging.getLogger(__name__)
_PR_SET_PDEATHSIG = 1
_CHECK_S = 5.0
"""The time between checks whether a process is stopped. Ctrl-Z stops all, and `fg` continues all."""


@dataclass(frozen=True, slots=True)
class Processes:
    """``workers`` processes, or one for each task if there are fewer. They live as long as ``map`` is asked for results."""

    workers: int

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        done: dict[int, R] = {}
        given = 0
        with contextlib.closing(self._as_done(function, enumerate(arguments))) as results:
            for number, result in results:
                done[number] = result
                while given in done:
                    yield done.pop(given)
                    given += 1

    def _as_done(self, function: Callable[[T], R], tasks: Iterator[tuple[int, T]]) -> Generator[tuple[int, R], None, None]:
        """Yield (number of a task, result), whichever is done first."""
        while in_hand := dict(islice(tasks, self.workers)):
            try:
                with _pool(len(in_hand)) as pool:
                    futures = {pool.submit(function, argument): number for number, argument in in_hand.items()}
                    while futures:
                        for future in _first_done(futures):
                            number, result = futures.pop(future), future.result()
                            del in_hand[number]
                            yield number, result
                        for number, argument in islice(tasks, self.workers - len(in_hand)):
                            in_hand[number] = argument  # before it is handed out, which fails where a process died meanwhile
                            futures[pool.submit(function, argument)] = number
            except BrokenProcessPool:
                # A process died, of which task is not said: all that were in hand are done apart.
                for number, argument in in_hand.items():
                    yield number, _alone(function, argument)


def _alone(function: Callable[[T], R], argument: T) -> R:
    for _ in range(DEATHS):
        with contextlib.suppress(BrokenProcessPool), _pool(1) as pool:
            (future,) = _first_done([pool.submit(function, argument)])
            return future.result()
    raise WorkerLost(
        f"{DEATHS} processes died of the same task: {function.__name__} of {argument!r:.200}",
        advice="memory may have run out: see the kernel log, or use fewer workers with --on local:1",
    )


def _first_done(futures: Iterable[Future[R]]) -> set[Future[R]]:
    """Return the futures that are done, once one is. A process that is stopped at two checks is killed: perhaps nobody will
    ever continue it."""
    before: set[int] = set()
    while not (done := wait(futures, _CHECK_S, FIRST_COMPLETED).done):
        stopped = {process.pid for process in multiprocessing.active_children() if process.pid and _stopped(process.pid)}
        for number in before & stopped:
            _LOG.info("process %d, a worker, was stopped: it is killed, and its task is repeated", number)
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        before = stopped
    return done


def _stopped(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


@contextlib.contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Open a pool whose processes end with it. If nothing went wrong, all results are here and the processes wait for tasks.
    They would wait for ever if one died that held the lock of the queue, which the pool does not notice at its shutdown."""
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(workers, initializer=_begin)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        _kill_all_but(others)
        raise
    _kill_all_but(others)
    pool.shutdown()


def _kill_all_but(others: Sequence[BaseProcess]) -> None:
    """Kill the pool's processes. The pool only asks them to end, which a stopped process does not hear."""
    for process in multiprocessing.active_children():
        if process not in others:
            process.kill()


def _begin() -> None:
    """Prepare a process of the pool. Ctrl-C and the end of the terminal reach all its processes. This one ignores both: the
    process that started it ends it, at once and without a word, or the kernel when that process is killed. Inherited memory is
    no garbage: a search through it would copy all of it."""
    gc.freeze()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a command's own handler raises
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
