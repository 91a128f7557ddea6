"""Tasks in processes of this machine."""

from __future__ import annotations

import contextlib
import ctypes
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from twinbed.executor.protocol import DEATHS, WorkerLost

T = TypeVar("T")
R = TypeVar("R")
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Processes:
    """``workers`` processes, which live as long as ``map`` is asked for results."""

    workers: int

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        tasks = enumerate(arguments)
        done: dict[int, R] = {}
        given = 0
        left = True
        while left:
            in_hand: dict[Future[R], tuple[int, T]] = {}
            try:
                with _pool(self.workers) as pool:
                    while left:
                        for number, argument in islice(tasks, self.workers - len(in_hand)):
                            in_hand[pool.submit(function, argument)] = number, argument
                        left = bool(in_hand)
                        for future in wait(in_hand, return_when=FIRST_COMPLETED).done if left else ():
                            done[in_hand[future][0]] = future.result()
                            del in_hand[future]
                        while given in done:
                            yield done.pop(given)
                            given += 1
            except BrokenProcessPool:
                # A process died, of which task is not said: all that were in hand are done apart.
                done |= {number: _alone(function, argument) for number, argument in in_hand.values()}


def _alone(function: Callable[[T], R], argument: T) -> R:
    for _ in range(DEATHS):
        with contextlib.suppress(BrokenProcessPool), _pool(1) as pool:
            return pool.submit(function, argument).result()
    raise WorkerLost(
        f"{DEATHS} processes died of the same task: {function.__name__} of {argument!r:.200}",
        advice="memory may have run out: look at the kernel log, or give it fewer workers with --on local:1",
    )


@contextlib.contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Its processes are waited for where nothing went wrong alone."""
    pool = ProcessPoolExecutor(workers, initializer=_begin)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _begin() -> None:
    """Ctrl-C goes to all processes of the terminal. This one is ended by the one that started it, and by the kernel when
    that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
