"""Settings of a host that every driver which makes hosts offers."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

OnOff = Literal["on", "off"]
OFFLOADS = ("sg", "tso", "gso", "gro")
"""Each by ethtool's short name."""


class HostSettings(BaseModel):
    """Drivers add their own fields to these."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpus: Literal["auto", "none"] = Field(
        "auto", description="auto pins every host to CPUs of its own as far as there are any; none leaves it to the scheduler"
    )
    offload: OnOff | None = Field(
        None, description="sg, tso, gso and gro of the hosts' NICs, together; null leaves what the driver sets"
    )
    congestion_control: str | None = Field(
        None,
        pattern="^[a-z_0-9]+$",
        description="TCP's on every host; null leaves each kernel its own; reno is the one that every host may be given",
    )

    def offloads(self) -> dict[str, OnOff]:
        """What is asked of the NIC, by ethtool's short names; what is left as it is found is not in it."""
        return dict.fromkeys(OFFLOADS, self.offload) if self.offload is not None else {}

    def sysctls(self) -> dict[str, str]:
        """What is asked of the kernel's TCP, by path below /proc/sys."""
        return {"net/ipv4/tcp_congestion_control": self.congestion_control} if self.congestion_control else {}


def share_cpus(hosts: int, each: int, available: tuple[int, ...]) -> list[tuple[int, ...]]:
    """``each`` CPUs for every host, in turn; CPUs are shared only when there are fewer than hosts x each.

    >>> share_cpus(2, 1, (0, 1))
    [(0,), (1,)]
    >>> share_cpus(2, 2, (0, 1, 5))
    [(0, 1), (0, 5)]
    """
    result = []
    for host in range(hosts):
        first = host * each
        result.append(tuple(sorted({available[(first + i) % len(available)] for i in range(each)})))
    return result
