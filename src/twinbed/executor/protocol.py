"""The protocol of executors, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from twinbed.model.error import TwinbedError

T = TypeVar("T")
R = TypeVar("R")
DEATHS = 3
"""A task that killed so many workers is not given to another."""


class Executor(Protocol):
    """An executor of tasks. On a cluster a task's return value crosses a network as data: its function declares the type, which
    is ``bytes`` or one that pydantic writes as JSON."""

    @property
    def workers(self) -> int:
        """Return how many tasks can run at once, now."""
        ...

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        """Yield results in the order of ``arguments``, which are taken as they are needed. Raises what a task raises, and
        WorkerLost. From another machine a TwinbedError comes as such, with its advice and exit code, whatever its class; an
        OSError unchanged; anything else as a TwinbedError that names it."""
        ...


class WorkerLost(TwinbedError):
    """The workers that were given a task died."""

    exit_code = 1


class BadAnswer(TwinbedError):
    """A worker's answer is not what its task returns."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(message, advice="find out why before you use this worker again")


class NoExecutor(TwinbedError):
    """The executor that --on names cannot be used."""


class Here:
    """One task after the other, in this process."""

    workers = 1

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        return map(function, arguments)
