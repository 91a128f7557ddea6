"""The contract of a background load, which starts before the instruments and ends after them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted, Measuring
from twinbed.contracts.params import BackgroundParams
from twinbed.contracts.place import Places

P = TypeVar("P", bound=BackgroundParams, contravariant=True)


@dataclass(frozen=True, slots=True)
class BackgroundPlan:
    """The plan of a background load: files to put, then programs to start that stay."""

    files: Sequence[tuple[str, str, bytes]] = ()
    """(host, absolute path, content)"""
    commands: Sequence[Command] = ()


class Background(Measuring, Protocol[P]):
    """A background load; ``background:`` of a study file names it."""

    params: type[BackgroundParams]
    """The model of its settings."""

    @property
    def trials(self) -> Mapping[str, BackgroundParams]:
        """Return the settings that try each part that may fail by itself, such as ``where: machine``, by its name."""
        ...

    @abstractmethod
    def plan(self, params: P, places: Places) -> BackgroundPlan:
        """Return the files and commands. Each command stays until it is stopped."""
        ...

    @abstractmethod
    def extract(self, params: P, artifacts: Path) -> Extracted:
        """Return the load that it really made. Raises ValueError or OSError if nothing can be read."""
        ...
