"""The contract of a background load, which starts before the instruments and ends after them."""

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
    """The plan of a background load: files to put, then programs to start that stay."""

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
    """Other names that users may write: an error then gives the right name."""
    files: ClassVar[tuple[str, ...]] = ()
    """Names of the artifacts that are its own, as shell patterns; of a folder in a host's artifacts the folder's name."""
    raw: ClassVar[str] = ""
    """Facts that only these files hold, for readers; without the files no analysis has them."""
    metrics: Sequence[Metric]
    """All metrics of which ``extract`` may return values."""

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
