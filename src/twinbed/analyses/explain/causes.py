"""Causes that may make testbeds differ: each one's sign in the data, and the setting that turns it off.

Causes are in the order of a packet's way: a later one depends on what earlier ones hand it. If several work on one testbed
alone, the first is the one to look at. Nagle's algorithm comes last: its waits last as long as acknowledgements take, and the
program that has it is the same on all testbeds.

A sign is the share of what the cause could have touched, so it shows how much of the traffic is concerned. Sources:
docs/explain.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Switch:
    """A setting that turns a cause off."""

    setting: str
    on: str | int
    off: str | int
    applied: str = ""
    """Its name in ``applied``; empty for a setting of the workload."""
    section: Literal["testbed", "workload"] = "testbed"
    """The section of the study file."""

    @property
    def factor(self) -> str:
        return f"{self.section}.{self.setting}"


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause. ``sign`` describes the measurement, on a host of either role."""

    name: str
    title: str
    sign: str
    advice: str
    switch: Switch | None = None
    share: bool = True
    """True if the sign is a share of what the cause could have touched, from 0 to 1."""
    mechanism: bool = True
    """True if the cause either works or does not; False if testbeds differ by degrees of it."""
    needs: str = ""
    """The instrument that a run needs to show it."""


CPU = Cause(
    "cpu",
    "the hosts' CPUs",
    "CPU time of the workload's own programs for a unit of work",
    "hardware virtualisation (KVM), or CPUs of the same kind and number on both testbeds",
    share=False,
    mechanism=False,
)
IDLE_CPUS = Cause(
    "idle_cpus",
    "waking idle CPUs",
    "share of the run's time in which programs waited for idle CPUs to wake",
    "idle: busy on both testbeds, or cpus: shared",
    Switch("idle", "normal", "busy", "idle"),
)
INITIAL_WINDOW = Cause(
    "initial_window",
    "the initial window",
    "full segments that connections sent before their first acknowledgement",
    "the same initial_window on both testbeds",
    Switch("initial_window", 10, 1, "initial_window"),
    share=False,
    mechanism=False,
    needs="packets",
)
AUTOCORKING = Cause(
    "autocorking",
    "autocorking",
    "writes that TCP delayed because the socket had packets to send (TCPAutoCorking), per packet sent",
    "autocorking: off on both testbeds, or on",
    Switch("autocorking", "on", "off", "autocorking"),
    needs="counters",
)
TSO = Cause(
    "tso",
    "segmentation offload",
    "share of sent wire packets that left the host joined (super-packets)",
    "tso: off on both testbeds; or a NIC that has it",
    Switch("tso", "on", "off", "offload.tso"),
    needs="packets",
)
GRO = Cause(
    "gro",
    "receive offload",
    "share of the NIC's packets that the kernel joined on receipt",
    "gro: off on both testbeds; or a NIC that has it",
    Switch("gro", "on", "off", "offload.gro"),
    needs="counters",
)
COALESCING = Cause(
    "coalescing",
    "interrupt coalescing and polling",
    "share of packets beyond the first of an interrupt",
    "coalescing: off on both testbeds; or the same NIC and driver",
    Switch("coalescing", "on", "off", "coalescing"),
    mechanism=False,
    needs="counters",
)
DELAYED_ACK = Cause(
    "delayed_ack",
    "delayed acknowledgements",
    "share of the run's time in which an acknowledgement waited for its timer (DelayedACKs, 40 ms each)",
    "quickack: on, on both testbeds; or programs that send a message in one write (TCP_NODELAY)",
    Switch("quickack", "off", "on", "quickack"),
    needs="counters",
)
NAGLE = Cause(
    "nagle",
    "Nagle's algorithm",
    "share of the run's time in which payload waited for the acknowledgement of a small segment",
    "nagle: off in the workload; or programs that send a message in one write, or set TCP_NODELAY",
    Switch("nagle", "on", "off", section="workload"),
    needs="packets",
)

CAUSES = (CPU, IDLE_CPUS, INITIAL_WINDOW, AUTOCORKING, TSO, GRO, COALESCING, DELAYED_ACK, NAGLE)
OF_ALL_HOSTS = (CPU, IDLE_CPUS)
"""Causes with one sign for all hosts together, not for each role."""
BY_NAME = {cause.name: cause for cause in CAUSES}
