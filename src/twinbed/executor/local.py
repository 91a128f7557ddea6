"""Tasks in processes of this machine."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
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
    """``workers`` processes, or one for each task where these are fewer. They live as long as ``map`` is asked for results."""

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
        """(number of a task, result), whichever is done first."""
        while in_hand := dict(islice(tasks, self.workers)):
            try:
                with _pool(len(in_hand)) as pool:
                    futures = {pool.submit(function, argument): number for number, argument in in_hand.items()}
                    while futures:
                        for future in wait(futures, return_when=FIRST_COMPLETED).done:
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
            return pool.submit(function, argument).result()
    raise WorkerLost(
        f"{DEATHS} processes died of the same task: {function.__name__} of {argument!r:.200}",
        advice="memory may have run out: look at the kernel log, or give it fewer workers with --on local:1",
    )


@contextlib.contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Its processes are ended with it. Where nothing went wrong all results are here, and they wait for tasks: for ever, where
    one of them died that held the lock of the queue, which the pool does not see while it is shut down."""
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(workers, initializer=_begin)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    for process in multiprocessing.active_children():
        if process not in others:
            process.kill()
    pool.shutdown()


def _begin() -> None:
    """Ctrl-C goes to all processes of the terminal, and so does its end. This one is ended by the one that started it, at once
    and without a word, and by the kernel when that is killed. What it has inherited is no garbage of its own: looking through
    it would copy all of that memory."""
    gc.freeze()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a command's own handler raises
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
