"""The contract of a workload: it plans requests of clients to servers, and parses their output. It starts nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted, Measuring
from twinbed.contracts.params import WorkloadParams
from twinbed.metrics.metric import Metric
from twinbed.model.clients import ClientTimes
from twinbed.model.event import Event
from twinbed.model.image import CONTAINER_IMAGE
from twinbed.model.services import Service

P = TypeVar("P", bound=WorkloadParams, contravariant=True)


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """The plan of a workload, in order: files, servers, warm-up, then all clients at once."""

    files: Sequence[tuple[str, str, bytes]] = ()
    """(host, absolute path, content)"""
    executable: frozenset[str] = frozenset()
    """Paths of ``files`` that are programs."""
    prepare: Sequence[Command] = ()
    servers: Sequence[Command] = ()
    warm_up: Sequence[Command] = ()
    clients: Sequence[Command] = ()
    events: Sequence[Event] = ()
    """Events while the clients run."""

    def within(self, root: str) -> WorkloadPlan:
        """Return the plan with this folder of each host as the root of its programs and files."""

        def within_root(commands: Sequence[Command]) -> Sequence[Command]:
            return [replace(command, root=root) for command in commands]

        return replace(
            self,
            files=[(host, f"{root}{path}", content) for host, path, content in self.files],
            executable=frozenset(f"{root}{path}" for path in self.executable),
            prepare=within_root(self.prepare),
            servers=within_root(self.servers),
            warm_up=within_root(self.warm_up),
            clients=within_root(self.clients),
        )


@dataclass(frozen=True, slots=True)
class Described:
    """A workload's metrics."""

    metrics: Sequence[Metric]
    work: str
    rate: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A value with the text that it was read from."""

    host: str
    metric: str
    value: float | None
    unit: str
    file: str
    text: str
    """The place in the file, and what is there."""


class Workload(Measuring, Protocol[P]):
    """A workload; ``kind:`` of a study file names it. Subclasses give the attributes, ``plan`` and ``parse``."""

    params: type[WorkloadParams]
    """The model of its settings."""
    work: str
    """The metric that counts the work done (requests); extensive metrics are divided by it."""
    rate: str
    """The metric of speed. With several pairs each client has its own, and fairness is computed from these."""

    @abstractmethod
    def plan(self, params: P, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        """Plan the programs for ``pairs`` of (client host, server host, server address)."""
        ...

    def planned(self, params: P, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        """Plan the programs, in the root of the workload's container image if it has one."""
        plan = self.plan(params, pairs)
        return plan.within(CONTAINER_IMAGE) if params.added().image else plan

    @abstractmethod
    def parse(self, params: P, artifacts: Path) -> Extracted:
        """Read ``artifacts``, which has a folder for each host. A missing value is None.

        Raises ValueError for a text that cannot be read, FileNotFoundError for a missing file."""
        ...

    def parse_overlap(self, params: P, artifacts: Path, clients: Sequence[ClientTimes]) -> Extracted:
        """Parse the output of clients that did not start together; the default is ``parse``.

        Rates and shares cover the time in which all ran, if the tools report times; counts cover the whole run."""
        return self.parse(params, artifacts)

    def services(self, params: P) -> Sequence[Service]:
        """Return the services that clients ask for, which identify its connections; empty without connections."""
        return ()

    def unreadable(self, params: P, artifacts: Path) -> str:
        """Return why a run fails whose artifacts lack what its study declares; empty if they do not."""
        return ""

    def evidence(self, params: P, artifacts: Path) -> Sequence[Evidence]:
        """Return where values were read, for a workload whose study declares that. Raises as ``parse``."""
        return ()

    def described(self, params: P) -> Described:
        """Return its metrics with these settings; by default they are always the same."""
        return Described(self.metrics, self.work, self.rate)
