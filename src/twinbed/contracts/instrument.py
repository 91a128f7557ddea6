"""What an instrument is: what to run beside the workload, and how to read what it recorded.  It starts nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.params import InstrumentParams
from twinbed.contracts.place import Target
from twinbed.metrics.metric import Metric
from twinbed.model.drawn import Drawn

P = TypeVar("P", bound=InstrumentParams, contravariant=True)


class Instrument(Protocol[P]):
    """An instrument."""

    name: str
    """As ``instruments:`` of a study file names it."""
    params: type[InstrumentParams]
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

    @abstractmethod
    def plan(self, params: P, target: Target) -> Sequence[Command]:
        """The programs on one place: asked for every host, and for every machine that has links of them. Each stays until it
        is told to end. One that only examines hosts has none."""
        ...

    def examine(self, params: P, target: Target, ports: Mapping[str, Sequence[int]]) -> Sequence[Command]:
        """The programs that look at one place once the workload is done and all that measures it has ended, while its servers
        still run: one after another, each to its end. ``ports``: server -> the TCP ports that it listens on. None unless
        overridden."""
        return ()

    def after(self, params: P, target: Target) -> Sequence[Command]:
        """Programs that read what was recorded, one after another, each to its end: asked as ``plan`` is, once the workload
        is over and the instruments have ended."""
        return ()

    @abstractmethod
    def extract(self, params: P, artifacts: Path) -> Extracted:
        """``artifacts`` has a folder for each place. Raises ValueError or OSError where nothing can be read."""
        ...

    def of_all(self, drawn: Drawn, extracted: Extracted, work: Mapping[str, float]) -> Extracted:
        """What was read of the hosts that were drawn, with what it says of all; asked where some were left out. ``work`` maps
        clients to the work that they did, of which the workload itself tells for all."""
        return extracted
