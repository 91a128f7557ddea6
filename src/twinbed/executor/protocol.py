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
    """Carries out tasks. On a cluster what a task returns crosses a network as data: its function declares what it returns, and
    that is ``bytes`` or what pydantic writes as JSON."""

    @property
    def workers(self) -> int:
        """How many tasks can be done at once, now."""
        ...

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        """Results in the order of ``arguments``, which are taken as they are needed. Raises what a task raises; WorkerLost.
        From another machine a TwinbedError comes as such, with its advice and exit code, whichever class it was of; OSError as
        it was; anything else as a TwinbedError that names it."""
        ...


class WorkerLost(TwinbedError):
    """The workers that were given a task died."""

    exit_code = 1


class BadAnswer(TwinbedError):
    """A worker answered with something else than its task returns."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(message, advice="do not use this worker until you know why it answers so")


class NoExecutor(TwinbedError):
    """What --on names cannot be used."""


class Here:
    """One task after the other, in this process."""

    workers = 1

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        return map(function, arguments)
