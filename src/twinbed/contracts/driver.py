"""The contract of a driver, which makes hosts and links."""

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
    """Something outside this machine's labs that a dead controller has left behind."""

    @property
    def what(self) -> str:
        """Return its description and place, for readers."""
        ...

    def remove(self) -> None:
        """Remove it. Raises HostError if it cannot be removed."""
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
    """Other names that users may write: an error then gives the right name."""
    in_lab: ClassVar[bool] = False
    """Its hosts are connected to the switches of a lab on this machine."""
    in_process: ClassVar[bool] = False
    """Its hosts are functions of this process, not machines: it needs neither privileges nor the image."""

    @abstractmethod
    def check(self, params: P) -> Sequence[Check]:
        """Try everything that it needs of this machine or of others; nothing is changed."""
        ...

    @abstractmethod
    def up(self, params: P, topology: Topology, site: Site) -> AbstractContextManager[Bed]:
        """Bring the testbed up, set it and read it back; take it down at the end. Raises HostError."""
        ...

    def abilities(self, installed: Installed, *, boot: bool) -> Sequence[Check]:
        """Try each of its abilities on this machine; empty for a driver that can do all or nothing.

        ``boot``: also try abilities that take long."""
        return ()

    def check_programs(self, params: P, wanted: Mapping[str, Collection[str]]) -> Sequence[Check]:
        """Check that hosts with their own programs in place of the image's have all that a run starts on them.

        ``wanted``: host to programs, by name or by path."""
        return ()

    def check_topology(self, topology: Topology) -> Sequence[Check]:
        """Return the parts of the topology that it cannot make; empty if it can make all. Nothing is tried."""
        return ()

    def leftovers(self) -> Sequence[Leftover]:
        """Return the leftovers of dead controllers outside this machine's labs."""
        return ()
