"""Settings of hosts, the same for all drivers that make hosts."""

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
"""The features that ``offload`` sets."""
OFFLOADS = (*TOGETHER, "rx", "tx")
"""Features by ethtool's short names."""
BUFFERS = {"tcp_rmem": (4096, 131_072, 6 * 2**20), "tcp_wmem": (4096, 16_384, 4 * 2**20)}
"""Smallest, initial and largest bytes of a TCP socket's buffers on every host.

A kernel derives the largest from its free memory (a 128th, tcp_init), up to these values; newer kernels use 32 MiB to receive.
A guest of 192 MiB would have 1 MiB, which shows in the window scale of every SYN. The largest is a ceiling, not memory taken:
all sockets of a kernel together stay below tcp_mem."""


class HostSettings(DriverParams):
    """Settings to which drivers add their own."""

    cpus: Cpus = Field(
        "auto",
        description="auto: each host has CPUs of its own, if there are enough; shared: each client has its server's CPUs; "
        "none: the scheduler decides",
    )
    offload: OnOff | None = Field(
        None, description="sg, tso, gso and gro of the hosts' NICs together; null: the driver's defaults"
    )
    sg: OnOff | None = Field(None, description="scatter-gather alone")
    tso: OnOff | None = Field(None, description="TCP segmentation offload alone")
    gso: OnOff | None = Field(None, description="generic segmentation offload alone")
    gro: OnOff | None = Field(None, description="generic receive offload alone")
    rx: OnOff | None = Field(None, description="the NIC checks the checksums of received packets")
    tx: OnOff | None = Field(None, description="the NIC computes the checksums of sent packets")
    coalescing: OnOff | None = Field(
        None,
        description="off: the NIC interrupts at once, not after several packets; on: the driver's default; null: unchanged; "
        "for guests with e1000 or e1000e, and for hosts whose NIC driver can set it",
    )
    congestion_control: str | None = Field(
        None,
        pattern="^[a-z_0-9]+$",
        examples=["reno"],
        description="TCP's congestion control on every host; null: each kernel's default; every host can use reno",
    )
    autocorking: OnOff | None = Field(None, description="TCP joins small writes while packets wait to be sent")
    quickack: OnOff | None = Field(
        None,
        description="on: acknowledgements are never delayed (quickack of the hosts' routes); null: unchanged, which is off",
    )
    initial_window: int | None = Field(
        None,
        ge=1,
        le=1000,
        examples=[10, 4],
        description="segments that TCP sends before the first acknowledgement (initcwnd of the hosts' routes); "
        "null: unchanged, which is 10",
    )
    buffers: Literal["alike", "native"] = Field(
        "alike",
        description="alike: TCP's buffers have the same limits on every host (6 MiB to receive, 4 MiB to send); native: each "
        "kernel's own limits, which depend on its version and memory",
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
            raise ValueError(f"offload also sets {', '.join(alone)}: set offload or each of these, not both")
        return self

    def offloads(self) -> dict[str, OnOff]:
        """Return the features to set on the NIC, by ethtool's short names, without those that stay unchanged."""
        asked = {name: getattr(self, name) or (self.offload if name in TOGETHER else None) for name in OFFLOADS}
        return {name: value for name, value in asked.items() if value is not None}

    def moderation(self) -> OnOff | None:
        """Return the coalescing to set in the NIC's driver."""
        return self.coalescing

    def sysctls(self) -> dict[str, str]:
        """Return the settings of the kernel's TCP by path below /proc/sys."""
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
    """Settings of drivers that make the hosts' NICs themselves."""

    idle: Idle = Field(
        "normal",
        description="busy: a thread of the idle scheduling class keeps each CPU of the hosts awake during a run; "
        "normal: idle CPUs may stop",
    )
    mac_prefix: str | None = Field(
        None,
        pattern="^[0-9a-f][02468ace](:[0-9a-f]{2}){2}$",
        examples=["52:54:00"],
        description="first three bytes of the NICs' hardware addresses, such as 52:54:00; null: 02:00:0a, locally administered",
    )


def share_cpus(wanted: Sequence[int], available: Sequence[int]) -> list[tuple[int, ...]]:
    """Give each host in turn as many CPUs as it wants; hosts share CPUs only if there are too few.

    >>> share_cpus([1, 1], (0, 1))
    [(0,), (1,)]
    >>> share_cpus([2, 2], (0, 1, 5))
    [(0, 1), (0, 5)]
    """
    result: list[tuple[int, ...]] = []
    first = 0
    for count in wanted:
        result.append(tuple(sorted({available[(first + i) % len(available)] for i in range(count)})))
        first += count
    return result
