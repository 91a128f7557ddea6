"""What a workload is: what clients ask of servers, and how to read what they said.  It plans and parses; it starts nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.params import WorkloadParams
from twinbed.metrics.metric import Metric
from twinbed.model.clients import ClientTimes
from twinbed.model.services import Service

P = TypeVar("P", bound=WorkloadParams, contravariant=True)


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """What a workload wants done, in order: files put, servers started, warm-up run, then all clients at once."""

    files: Sequence[tuple[str, str, bytes]] = ()
    """(host, absolute path, content)"""
    prepare: Sequence[Command] = ()
    servers: Sequence[Command] = ()
    warm_up: Sequence[Command] = ()
    clients: Sequence[Command] = ()


@dataclass(frozen=True, slots=True)
class Described:
    """What a workload's numbers are."""

    metrics: Sequence[Metric]
    work: str
    rate: str


class Workload(Protocol[P]):
    """A workload. Subclasses give the attributes, ``plan`` and ``parse``."""

    name: str
    """As ``kind:`` of a study file names it."""
    params: type[WorkloadParams]
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
    """All that ``parse`` may give values of."""
    work: str
    """The metric that counts the work done (requests); extensive metrics are divided by it."""
    rate: str
    """The metric that says how fast work is done. With several pairs each client has its own, and fairness is computed of
    these."""

    @abstractmethod
    def plan(self, params: P, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        """``pairs`` are (client host, server host, server address)."""
        ...

    @abstractmethod
    def parse(self, params: P, artifacts: Path) -> Extracted:
        """``artifacts`` has a folder for each host. A value that is missing is None; a text that cannot be read raises
        ValueError, a file that is not there FileNotFoundError."""
        ...

    def parse_overlap(self, params: P, artifacts: Path, clients: Sequence[ClientTimes]) -> Extracted:
        """As ``parse``, of several clients that did not start together: rates and shares are of the time in which all ran, if
        the tools tell of times; counts are of the whole run. The same as ``parse`` unless overridden."""
        return self.parse(params, artifacts)

    def services(self, params: P) -> Sequence[Service]:
        """What clients ask of servers, by which its connections are told from others; empty where it has no connections."""
        return ()

    def described(self, params: P) -> Described:
        """What its numbers are with these settings; the same whatever they are, unless overridden."""
        return Described(self.metrics, self.work, self.rate)
