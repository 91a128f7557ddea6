"""What may make testbeds differ: each cause's sign in the data, and the setting that turns it off.

They are in the order of a packet's way: what comes later follows from what it is handed, so that of several causes that work
on one testbed alone the first is the one to look at. Nagle's algorithm comes last: its waits are as long as
acknowledgements take, and the program that has it is the same on all testbeds.

A sign is a share of what the cause could have touched, so that it says how much of the traffic it had to do with;
docs/explain.md has the sources.
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
    """What ``applied`` calls it; empty for a setting of the workload."""
    section: Literal["testbed", "workload"] = "testbed"
    """Of the study file."""

    @property
    def factor(self) -> str:
        return f"{self.section}.{self.setting}"


@dataclass(frozen=True, slots=True)
class Cause:
    """``sign`` says what is measured, on a host of either role."""

    name: str
    title: str
    sign: str
    advice: str
    switch: Switch | None = None
    share: bool = True
    """Whether the sign is a share of what it could have touched, from 0 to 1."""
    mechanism: bool = True
    """Whether it is either at work or not; else testbeds differ by degrees of it."""
    needs: str = ""
    """The instrument without which no run shows it."""


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
    "time in which programs waited for CPUs that had stopped, of the run's",
    "idle: busy on both testbeds, or cpus: shared",
    Switch("idle", "normal", "busy", "idle"),
)
INITIAL_WINDOW = Cause(
    "initial_window",
    "the initial window",
    "full segments' worth of what connections sent before their first acknowledgement",
    "the same initial_window on both testbeds",
    Switch("initial_window", 10, 1, "initial_window"),
    share=False,
    mechanism=False,
    needs="packets",
)
AUTOCORKING = Cause(
    "autocorking",
    "autocorking",
    "writes that TCP held back since packets of the same socket waited to be sent (TCPAutoCorking), of all packets sent",
    "autocorking: off on both testbeds, or on",
    Switch("autocorking", "on", "off", "autocorking"),
    needs="counters",
)
TSO = Cause(
    "tso",
    "segmentation offload",
    "wire packets that left the host joined (super-packets), of those sent",
    "tso: off on both testbeds; or a NIC that has it",
    Switch("tso", "on", "off", "offload.tso"),
    needs="packets",
)
GRO = Cause(
    "gro",
    "receive offload",
    "packets that the kernel joined on receipt, of those that its NIC gave it",
    "gro: off on both testbeds; or a NIC that has it",
    Switch("gro", "on", "off", "offload.gro"),
    needs="counters",
)
COALESCING = Cause(
    "coalescing",
    "interrupt coalescing and polling",
    "packets beyond the first of an interrupt, of those sent and received",
    "coalescing: off on both testbeds; or the same NIC and driver",
    Switch("coalescing", "on", "off", "coalescing"),
    mechanism=False,
    needs="counters",
)
DELAYED_ACK = Cause(
    "delayed_ack",
    "delayed acknowledgements",
    "time in which an acknowledgement waited for its timer (DelayedACKs, 40 ms each), of the run's",
    "quickack: on on both testbeds; or programs that send what belongs together in one write (TCP_NODELAY)",
    Switch("quickack", "off", "on", "quickack"),
    needs="counters",
)
NAGLE = Cause(
    "nagle",
    "Nagle's algorithm",
    "time in which payload waited for the acknowledgement of a small segment, of the run's",
    "nagle: off of the workload; or programs that send what belongs together in one write, or set TCP_NODELAY",
    Switch("nagle", "on", "off", section="workload"),
    needs="packets",
)

CAUSES = (CPU, IDLE_CPUS, INITIAL_WINDOW, AUTOCORKING, TSO, GRO, COALESCING, DELAYED_ACK, NAGLE)
OF_ALL_HOSTS = (CPU, IDLE_CPUS)
"""Causes whose sign is of all hosts together, not of a role."""
BY_NAME = {cause.name: cause for cause in CAUSES}
