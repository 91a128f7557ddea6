"""Settings of a host that every driver which makes hosts offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from twinbed.contracts.params import DriverParams
from twinbed.model.units import Size

OnOff = Literal["on", "off"]
Cpus = Literal["auto", "shared", "none"]
Idle = Literal["normal", "busy"]
TOGETHER = ("sg", "tso", "gso", "gro")
"""What ``offload`` sets."""
OFFLOADS = (*TOGETHER, "rx", "tx")
"""Each by ethtool's short name."""
BUFFERS = {"tcp_rmem": (4096, 131_072, 6 * 2**20), "tcp_wmem": (4096, 16_384, 4 * 2**20)}
"""Least, first and most bytes of a TCP socket's buffers on every host. A kernel works out the most from its free memory (a
128th, tcp_init) and stops at these, newer ones at 32 MiB to receive: a guest of 192 MiB has 1 MiB, which shows in the scale of
the windows in every SYN. The most is a ceiling, not memory taken: all sockets of a kernel together stay below tcp_mem."""


class HostSettings(DriverParams):
    """Drivers add their own fields to these."""

    cpus: Cpus = Field(
        "auto",
        description="auto pins every host to CPUs of its own as far as there are any; shared pins each client to its server's; "
        "none leaves it to the scheduler",
    )
    offload: OnOff | None = Field(
        None, description="sg, tso, gso and gro of the hosts' NICs, together; null leaves what the driver sets"
    )
    sg: OnOff | None = Field(None, description="scatter-gather alone")
    tso: OnOff | None = Field(None, description="TCP segmentation offload alone")
    gso: OnOff | None = Field(None, description="generic segmentation offload alone")
    gro: OnOff | None = Field(None, description="generic receive offload alone")
    rx: OnOff | None = Field(None, description="checksums of received packets checked by the NIC")
    tx: OnOff | None = Field(None, description="checksums of sent packets made by the NIC")
    coalescing: OnOff | None = Field(
        None,
        description="off: the NIC interrupts at once, not after a while for several packets; on: as its driver has it; "
        "null: as it is; guests with e1000 or e1000e have it, and hosts whose NIC's driver does",
    )
    congestion_control: str | None = Field(
        None,
        pattern="^[a-z_0-9]+$",
        examples=["reno"],
        description="TCP's on every host; null leaves each kernel its own; reno is the one that every host may be given",
    )
    autocorking: OnOff | None = Field(None, description="whether TCP joins small writes while packets wait to be sent")
    quickack: OnOff | None = Field(
        None,
        description="on: acknowledgements are never delayed (quickack of the hosts' routes); null: as it is, which is off",
    )
    initial_window: int | None = Field(
        None,
        ge=1,
        le=1000,
        examples=[10, 4],
        description="segments that TCP sends before the first acknowledgement (initcwnd of the hosts' routes); null: as it is, "
        "which is 10",
    )
    buffers: Literal["alike", "native"] = Field(
        "alike",
        description="alike: TCP's buffers grow as far on every host (6 MiB to receive, 4 MiB to send); native: as far as each "
        "kernel lets them, which depends on its version and its memory",
    )
    receive_buffer: Size | None = Field(
        None,
        ge=4096,
        le=2**30,
        examples=["1MiB"],
        description="of every TCP socket, fixed: no tuning by the kernel; null: as buffers says",
    )
    send_buffer: Size | None = Field(
        None,
        ge=4096,
        le=2**30,
        examples=["1MiB"],
        description="of every TCP socket, fixed: no tuning by the kernel; null: as buffers says",
    )

    @model_validator(mode="after")
    def _once(self) -> HostSettings:
        alone = [name for name in TOGETHER if getattr(self, name) is not None]
        if self.offload is not None and alone:
            raise ValueError(f"offload sets {', '.join(alone)} too: give offload, or each of them, but not both")
        return self

    def offloads(self) -> dict[str, OnOff]:
        """What is asked of the NIC, by ethtool's short names; what is left as it is found is not in it."""
        asked = {name: getattr(self, name) or (self.offload if name in TOGETHER else None) for name in OFFLOADS}
        return {name: value for name, value in asked.items() if value is not None}

    def moderation(self) -> OnOff | None:
        """What is asked of coalescing by the NIC's driver."""
        return self.coalescing

    def sysctls(self) -> dict[str, str]:
        """What is asked of the kernel's TCP, by path below /proc/sys."""
        asked: dict[str, str] = {}
        if self.congestion_control:
            asked["net/ipv4/tcp_congestion_control"] = self.congestion_control
        if self.autocorking:
            asked["net/ipv4/tcp_autocorking"] = str(int(self.autocorking == "on"))
        for name, size in (("tcp_rmem", self.receive_buffer), ("tcp_wmem", self.send_buffer)):
            if size is not None:
                asked[f"net/ipv4/{name}"] = f"{size}\t{size}\t{size}"
            elif self.buffers == "alike":
                asked[f"net/ipv4/{name}"] = "\t".join(map(str, BUFFERS[name]))
        return asked


class LabHostSettings(HostSettings):
    """Those of drivers that make the hosts' NICs themselves."""

    idle: Idle = Field(
        "normal",
        description="busy keeps the CPUs of hosts awake while a run lasts, by a thread of the idle scheduling class on each; "
        "normal lets them stop when they are idle",
    )
    mac_prefix: str | None = Field(
        None,
        pattern="^[0-9a-f][02468ace](:[0-9a-f]{2}){2}$",
        examples=["52:54:00"],
        description="first three bytes of the NICs' hardware addresses, such as 52:54:00; null: 02:00:0a, locally administered",
    )


def share_cpus(wanted: Sequence[int], available: Sequence[int]) -> list[tuple[int, ...]]:
    """As many CPUs for each host as it wants, in turn; CPUs are shared only when there are fewer than are wanted.

    >>> share_cpus([1, 1], (0, 1))
    [(0,), (1,)]
    >>> share_cpus([2, 2], (0, 1, 5))
    [(0, 1), (0, 5)]
    """
    result: list[tuple[int, ...]] = []
    first = 0
    for each in wanted:
        result.append(tuple(sorted({available[(first + i) % len(available)] for i in range(each)})))
        first += each
    return result
