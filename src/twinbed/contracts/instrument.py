"""The contract of an instrument: it plans programs that measure a workload, and reads their records. It starts nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted, Measuring
from twinbed.contracts.params import InstrumentParams
from twinbed.contracts.place import Target
from twinbed.model.drawn import Drawn
from twinbed.model.services import Service

P = TypeVar("P", bound=InstrumentParams, contravariant=True)


class Instrument(Measuring, Protocol[P]):
    """An instrument; ``instruments:`` of a study file names it."""

    params: type[InstrumentParams]
    """The model of its settings."""

    @abstractmethod
    def plan(self, params: P, target: Target) -> Sequence[Command]:
        """Return the programs for one place: a host, or a machine that has links of hosts. Each stays until it is stopped. An
        instrument that only examines hosts has none."""
        ...

    def examine(self, params: P, target: Target, ports: Mapping[str, Sequence[int]]) -> Sequence[Command]:
        """Return programs that examine one place after the workload and its measurements, while its servers still run.

        They run one after another, each to its end. ``ports``: each server's TCP ports. The default is none."""
        return ()

    def after(self, params: P, target: Target) -> Sequence[Command]:
        """Return programs that read the records, one after another, each to its end, for each place of ``plan``. They run once
        the workload and the instruments have ended."""
        return ()

    @abstractmethod
    def extract(self, params: P, artifacts: Path) -> Extracted:
        """Read ``artifacts``, which has a folder for each place. Raises ValueError or OSError if nothing can be read."""
        ...

    def extract_of(self, params: P, artifacts: Path, services: Sequence[Service]) -> Extracted:
        """Read the artifacts of a run whose clients use these services. The default is ``extract``."""
        return self.extract(params, artifacts)

    def of_all(self, drawn: Drawn, extracted: Extracted, work: Mapping[str, float]) -> Extracted:
        """Extrapolate from the sampled hosts to all. Called only for sampled runs.

        ``work``: the work of each client, which the workload reports for all."""
        return extracted
