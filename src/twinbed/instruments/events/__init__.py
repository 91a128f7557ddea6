"""Instrument ``events``: the kernel's network events by device, and how often and how long guests left KVM.

Runs ``twinbed-probe events`` once for each kernel (the machine's, and of hosts with their own): eBPF programs on tracepoints.
These are net_dev_queue, net_dev_xmit, netif_rx, netif_receive_skb, napi_poll, kfree_skb, kvm_exit, kvm_entry, kvm_mmio and
kvm_pio.  Gives counts by tracepoint, and KVM's counts and times.

Table: ``events`` (host, source, event, device, hits, count, seconds, least_s, mean_s, most_s), for the analysis ``anomaly``.
Its ``kvm`` events are as in ``perf kvm stat``: ``vmexit`` (all exits), ``mmio``, ``ioport``.

A program costs 45 ns a hit, and a packet makes ten hits on its way through a switch. So the programs are attached for a share
of the time (``share``): one window a second, at a random moment. The column ``hits`` has the hits seen; ``count`` and
``seconds`` estimate the whole time. Packets are scaled by the softirqs that received packets in windows and in all, KVM's
events by time. With ``share: 1`` all events are counted exactly.

Limits: the machine's events are those of all that runs on it. Devices of one name in several network namespaces (``eth0`` of
each container) are one; kfree_skb has no device. Where the kernel has no such tracepoint (KVM is not loaded) or refuses
programs, values are null, and ``refused`` in the artifact says why. Needs Linux 5.8 with BTF, and root.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from twinbed.contracts.command import Command, Ready
from twinbed.contracts.extracted import Extracted, artifacts_named
from twinbed.contracts.instrument import Instrument
from twinbed.contracts.params import InstrumentParams
from twinbed.contracts.place import MACHINE, Target
from twinbed.metrics.events import METRICS
from twinbed.readers.events import read_place

ARTIFACT = "kernel.events"
KERNEL_BYTES = 16 * 2**20
"""Bytes of the kernel's maps on a machine with up to 64 CPUs."""


class EventsParams(InstrumentParams):
    """Settings of the time in which events are counted."""

    share: float = Field(
        0.1,
        ge=0.001,
        le=1,
        description="share of the time in which events are counted, at random moments; 1: all the time",
    )

    def estimate_seconds(self) -> float:
        return 0.2

    def estimate_bytes(self, link_rate: int) -> float:
        return 100.0


class Events(Instrument[EventsParams]):
    """The instrument."""

    name = "events"
    params = EventsParams
    summary = "the kernels' network events by device, and how often and how long guests left KVM (eBPF)"
    also = ("ebpf", "bpf", "bpftrace", "tracepoints", "kvm_exits")
    files = ("kernel.events",)
    metrics = METRICS

    def plan(self, params: EventsParams, target: Target) -> Sequence[Command]:
        if not target.own_kernel and target.name != MACHINE:
            return ()
        argv = ("twinbed-probe", "events", "--out", f"{{artifacts}}/{ARTIFACT}", "--share", f"{params.share:g}")
        return [Command(target.name, argv, ready=Ready(says=b"ready"), memory_bytes=KERNEL_BYTES)]

    def extract(self, params: EventsParams, artifacts: Path) -> Extracted:
        files = artifacts_named(artifacts, ARTIFACT)
        import pyarrow as pa

        places = [read_place(file) for file in files]
        return Extracted(
            [value for place in places for value in place.values()],
            {"events": pa.concat_tables([place.table() for place in places])},
            [caution for place in places for caution in place.cautions()],
        )


events = Events()

__all__ = ["Events", "EventsParams", "events"]
