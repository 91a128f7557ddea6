"""What an executor is, and what goes wrong with one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from twinbed.model.error import TwinbedError

T = TypeVar("T")
R = TypeVar("R")
DEATHS = 3
"""A task that so many workers died of is not given to another."""


class Executor(Protocol):
    """Carries out tasks."""

    @property
    def workers(self) -> int:
        """How many tasks can be done at once, now."""
        ...

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        """Results in the order of ``arguments``, which are taken as they are needed. Raises what a task raises; WorkerLost."""
        ...


class WorkerLost(TwinbedError):
    """The workers that were given a task died."""

    exit_code = 1


class NoExecutor(TwinbedError):
    """What --on names cannot be used."""


class Here:
    """One task after the other, in this process."""

    workers = 1

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        return map(function, arguments)
