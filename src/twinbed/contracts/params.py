"""Settings of plugins in a study file: frozen pydantic models, which also give their needs of a machine.

The fields of such a model are the settings that a study file may have; error messages and manuals use their descriptions. Each
kind of plugin has a base class here, with defaults for everything that the lab and the plan may ask. Times are estimates. Bytes
are upper bounds, reached only if every link is full both ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from twinbed.contracts.check import Trial
from twinbed.model.image import NOTHING, Added
from twinbed.model.near import Near
from twinbed.model.topology import Topology

ROLES = ("client", "server", "router")
"""The roles of hosts. Bystanders are made like the clients and servers of their pairs."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An error of settings that are valid one by one."""

    where: tuple[str | int, ...]
    """Path of the setting in the model."""
    message: str
    allowed: str
    near: Near = ()


class PluginParams(BaseModel):
    """The base of all settings: they never change, and an unknown name is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    typical: ClassVar[Mapping[str, object]] = {}
    """Settings of a first study, if the defaults are not enough."""

    def faults(self) -> Iterable[Fault]:
        """Return errors of settings that depend on each other, each with its place."""
        return ()


@dataclass(frozen=True, slots=True)
class HostNeed:
    """The need of one host for its machine's resources, without the programs on it."""

    memory_bytes: int
    tasks: int
    """Processes and threads on the machine."""
    made_of: str
    """For readers, such as ``a guest of 256MiB with 192MiB for QEMU``."""
    limit_bytes: int | None = None
    """The most that it may take, with its programs."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """A setting that does not fit the topology."""

    setting: str
    message: str
    allowed: str
    """Settings that fit."""


class DriverParams(PluginParams):
    """Settings of a testbed."""

    def kinds(self) -> Mapping[str, DriverParams]:
        """Return the settings of each role's hosts. Only a mixed testbed has more than one kind."""
        return dict.fromkeys(ROLES, self)

    def made_by(self, driver: str) -> str:
        """Return the driver that makes hosts with these settings; ``driver`` is the testbed's."""
        return driver

    @property
    def own_kernel(self) -> bool:
        """Return whether a host with these settings has its own kernel, rather than its machine's."""
        return True

    @property
    def from_image(self) -> bool:
        """Return whether a host with these settings runs the image, rather than a system of its own."""
        return True

    def host_need(self) -> HostNeed | None:
        """Return the need of one host for this machine's resources; None if it runs elsewhere."""
        return None

    def estimate_seconds(self) -> float:
        """Return the seconds to bring the testbed up and down."""
        return 5.0

    def guest_kernel(self) -> str | None:
        """Return the Debian package of its guests' kernel; None for the image's own, and for hosts that are no guests."""
        return None

    def workload_seconds(self, estimate_s: float) -> float:
        """Return the seconds this driver needs for a workload that takes ``estimate_s`` in real time."""
        return estimate_s


class WorkloadParams(PluginParams):
    """Settings of a workload."""

    has_own_settings: ClassVar[bool] = False
    """A study may name settings of its own, which can be factors."""

    @classmethod
    def own_settings(cls, data: Mapping[str, object]) -> Sequence[tuple[str, ...]]:
        """Return the paths of settings that a study's text (its section, as plain data) names itself."""
        return ()

    @property
    def lab_only(self) -> str:
        """Return why it may run only on hosts of a lab; empty if it may run on all."""
        return ""

    def own_files(self) -> Mapping[str, bytes]:
        """Return the contents of the user's own files by their names in the study, which results keep."""
        return {}

    def formats(self) -> Sequence[tuple[tuple[str, ...], str, str | None]]:
        """Return the formats of files that it reads: the setting's path, the format, and the metric if it reads only one."""
        return ()

    def unfit(self, topology: Topology) -> Unfit | None:
        """Return its first setting that does not fit this topology; None if all fit."""
        return None

    def hosts_on(self, topology: Topology) -> Topology:
        """Return the topology with the workload's own hosts, for one that does not run on pairs. It is one that fits."""
        return topology

    def estimate_seconds(self) -> float:
        """Return the seconds that it runs."""
        return 10.0

    def added(self) -> Added:
        """Return the software that the image of all testbeds gets for it."""
        return NOTHING

    def estimate_bytes(self, link_rate: int) -> float:
        """Return the bytes that each client writes per second of workload; ``link_rate`` in bit/s."""
        return 0.0


class InstrumentParams(PluginParams):
    """Settings of an instrument."""

    def programs(self) -> Sequence[str]:
        """Return the programs that hosts must have in addition to those of every image."""
        return ()

    def trials(self) -> Sequence[Trial]:
        """Return the programs that this machine must have if the lab's links are captured."""
        return ()

    def estimate_seconds(self) -> float:
        """Return the seconds that it adds to a run."""
        return 0.0

    def share_of_hosts(self) -> float | None:
        """Return the share of a run's pairs that it measures, drawn at random; None: all."""
        return None

    def estimate_bytes(self, link_rate: int) -> float:
        """Return the bytes that it writes for each link per second of workload; ``link_rate`` in bit/s."""
        return 8192.0


class BackgroundParams(PluginParams):
    """Settings of a background load."""

    def programs(self) -> Sequence[str]:
        """Return the programs that hosts must have."""
        return ()

    def machine_programs(self) -> Sequence[str]:
        """Return the programs that the machine must have; hosts/packages declares their packages."""
        return ()

    def estimate_seconds(self) -> float:
        """Return the seconds that it adds to a run."""
        return 0.0

    def unfit(self, topology: Topology) -> Unfit | None:
        """Return its first setting that does not fit this topology; None if all fit."""
        return None
