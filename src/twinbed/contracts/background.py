"""What a background load is: a load beside the workload, begun before the instruments and ended after them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.params import BackgroundParams
from twinbed.contracts.place import Places
from twinbed.metrics.metric import Metric

P = TypeVar("P", bound=BackgroundParams, contravariant=True)


@dataclass(frozen=True, slots=True)
class BackgroundPlan:
    """What a background load wants done: files put, then programs started that stay."""

    files: Sequence[tuple[str, str, bytes]] = ()
    """(host, absolute path, content)"""
    commands: Sequence[Command] = ()


class Background(Protocol[P]):
    """A background load."""

    name: str
    """As ``background:`` of a study file names it."""
    params: type[BackgroundParams]
    """The model of its settings."""
    summary: str
    """One line for readers."""
    also: ClassVar[tuple[str, ...]] = ()
    """Other words by which it is looked for: who writes one is told the name."""
    files: ClassVar[tuple[str, ...]] = ()
    """Names of the artifacts that are its own, as shell patterns; of a folder in a host's artifacts the folder's name."""
    raw: ClassVar[str] = ""
    """What these tell that no table has, for readers: it cannot be asked where they were not kept."""
    metrics: Sequence[Metric]
    """All that ``extract`` may give values of."""

    @property
    def trials(self) -> Mapping[str, BackgroundParams]:
        """What of it can work or not by itself, such as ``where: machine`` -> the least settings that show it."""
        ...

    @abstractmethod
    def plan(self, params: P, places: Places) -> BackgroundPlan:
        """Every command is one that stays until it is told to end."""
        ...

    @abstractmethod
    def extract(self, params: P, artifacts: Path) -> Extracted:
        """What it really did. Raises ValueError or OSError where nothing can be read."""
        ...
