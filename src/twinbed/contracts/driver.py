"""What a driver is: a way to get hosts and links."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar, Protocol, TypeVar

from twinbed.contracts.bed import Bed
from twinbed.contracts.check import Check
from twinbed.contracts.params import DriverParams
from twinbed.contracts.site import Installed, Site
from twinbed.model.topology import Topology

P = TypeVar("P", bound=DriverParams, contravariant=True)


class Leftover(Protocol):
    """Something outside of this machine's labs that a dead controller has left behind."""

    @property
    def what(self) -> str:
        """For readers: what it is, and where."""
        ...

    def remove(self) -> None:
        """Raises HostError where it cannot be removed."""
        ...


class Driver(Protocol[P]):
    """A driver. Subclasses give ``name``, ``params``, ``summary``, ``check`` and ``up``; the rest has defaults."""

    name: str
    """As ``driver:`` of a study file names it."""
    params: type[DriverParams]
    """The model of its settings."""
    summary: str
    """One line for readers."""
    also: ClassVar[tuple[str, ...]] = ()
    """Other words by which it is looked for: who writes one is told the name."""
    in_lab: ClassVar[bool] = False
    """Whether its hosts hang on the switches of a lab on this machine."""
    in_process: ClassVar[bool] = False
    """Whether its hosts are no machines, but functions of this process: it needs neither privileges nor the image."""

    @abstractmethod
    def check(self, params: P) -> Sequence[Check]:
        """What it needs of this machine or of others, each tried; nothing is changed."""
        ...

    @abstractmethod
    def up(self, params: P, topology: Topology, site: Site) -> AbstractContextManager[Bed]:
        """The testbed, brought up, set and read back; taken down at the end. Raises HostError."""
        ...

    def abilities(self, installed: Installed, *, boot: bool) -> Sequence[Check]:
        """What of its offers works on this machine, each tried; empty for one that can do all or nothing.
        ``boot``: also what takes long to try."""
        return ()

    def check_programs(self, params: P, wanted: Mapping[str, Collection[str]]) -> Sequence[Check]:
        """Whether hosts have what is started on them (host -> programs, by name or by path), where they may use programs of
        their own in place of the image's."""
        return ()

    def check_topology(self, topology: Topology) -> Sequence[Check]:
        """What of the topology it cannot make; empty where it can make all. Nothing is tried."""
        return ()

    def leftovers(self) -> Sequence[Leftover]:
        """What dead controllers have left outside of this machine's labs."""
        return ()
