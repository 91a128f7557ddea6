"""Settings of plugins, as a study file gives them: frozen pydantic models, which also say what they take of a machine.

The fields of such a model are the settings that a study file may give; their descriptions are what error messages and manuals
say of them.  Each kind of plugin has a base here, with a default for everything that the lab and the plan may ask.
Times are estimates.  Bytes are upper bounds, reached only where every link is full both ways.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from twinbed.contracts.check import Trial
from twinbed.model.topology import Topology

ROLES = ("client", "server", "router")
"""What a host may be. Bystanders are made as the hosts that they stand beside."""


class PluginParams(BaseModel):
    """What all settings have in common: they never change, and an unknown name is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    typical: ClassVar[Mapping[str, object]] = {}
    """Settings that a first study gives, where the defaults are not enough."""


@dataclass(frozen=True, slots=True)
class HostNeed:
    """What one host takes of its machine, without the programs on it."""

    memory_bytes: int
    tasks: int
    """Processes and threads on the machine."""
    made_of: str
    """For readers, such as ``a guest of 256MiB with 192MiB for QEMU``."""
    limit_bytes: int | None = None
    """The most that it may take, with its programs."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """A setting that cannot be had."""

    setting: str
    message: str
    allowed: str
    """What would be right instead."""


class DriverParams(PluginParams):
    """Settings of a testbed."""

    def kinds(self) -> Mapping[str, DriverParams]:
        """Role -> the settings that hosts of that role are made with. Only a mixed testbed has more than one kind."""
        return dict.fromkeys(ROLES, self)

    def made_by(self, driver: str) -> str:
        """The name of the driver that makes hosts with these settings; ``driver`` is the testbed's."""
        return driver

    @property
    def own_kernel(self) -> bool:
        """Whether a host made with these settings has a kernel of its own, rather than its machine's."""
        return True

    def host_need(self) -> HostNeed | None:
        """What one host takes of this machine; None where this machine does not carry it."""
        return None

    def estimate_seconds(self) -> float:
        """What it takes to bring the testbed up and down."""
        return 5.0

    def workload_seconds(self, estimate_s: float) -> float:
        """What a workload takes here that takes ``estimate_s`` on hosts with clocks."""
        return estimate_s


class WorkloadParams(PluginParams):
    """Settings of a workload."""

    lab_only: ClassVar[bool] = False
    """Whether it may run only where the hosts hang on the switches of a lab, since its packets belong on no other network."""

    def unfit(self, topology: Topology) -> Unfit | None:
        """The first of its settings that cannot be had on this topology; None where all can."""
        return None

    def estimate_seconds(self) -> float:
        """How long it runs."""
        return 10.0

    def estimate_bytes(self, link_rate: int) -> float:
        """Bytes that each client writes per second of workload; ``link_rate`` in bit/s."""
        return 0.0


class InstrumentParams(PluginParams):
    """Settings of an instrument."""

    def programs(self) -> Sequence[str]:
        """Programs that hosts must have, beyond what the image always has."""
        return ()

    def trials(self) -> Sequence[Trial]:
        """Programs that this machine must have, where the lab's links are captured."""
        return ()

    def estimate_seconds(self) -> float:
        """What it adds to a run."""
        return 0.0

    def share_of_hosts(self) -> float | None:
        """The share of a run's pairs that it is put on, drawn at random; None: all."""
        return None

    def estimate_bytes(self, link_rate: int) -> float:
        """Bytes written for each link that it is put on per second of workload; ``link_rate`` in bit/s."""
        return 8192.0


class BackgroundParams(PluginParams):
    """Settings of a background load."""

    def programs(self) -> Sequence[str]:
        """Programs that hosts must have."""
        return ()

    def machine_programs(self) -> Sequence[str]:
        """Programs that the machine must have; hosts/packages declares the packages that they come in."""
        return ()

    def estimate_seconds(self) -> float:
        """What it adds to a run."""
        return 0.0

    def unfit(self, topology: Topology) -> Unfit | None:
        """The first of its settings that cannot be had on this topology; None where all can."""
        return None
