"""Where on a testbed plugins may put programs: the machine, its hosts, their links; and the ports that are taken there."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

MACHINE = "machine"
"""The name of the place where a testbed's switches, taps and shapers are: the machine that carries the lab."""
MACHINE2 = "machine2"
"""The servers' machine, where a trunk joins it to that of clients, or to each of several."""


PROBE_PORT = 2112
"""The UDP port of an instrument's own packets, which captures leave out: they are no part of the workload."""
BACKGROUND_PORTS = range(2120, 2123)
"""Where servers of a background load listen, TCP or UDP; captures leave them out too."""
NOT_THE_WORKLOADS = ("22", "861", f"{PROBE_PORT}", f"{BACKGROUND_PORTS[0]}-{BACKGROUND_PORTS[-1]}")
"""TCP ports that the probe leaves out: SSH, the control connections of OWAMP (RFC 4656), the probes' port, background loads."""


@dataclass(frozen=True, slots=True)
class Target:
    """A place an instrument can be put: a host, or the machine's side of the links."""

    name: str
    """A host's name, or MACHINE."""
    interfaces: Mapping[str, str]
    """Interface -> the host whose link it is an end of (on a host itself: its own name)."""
    own_kernel: bool = False
    """A guest or a machine of its own; False for containers, whose /proc/stat and kernel log are the machine's."""
    servers: Mapping[str, str] = field(default_factory=dict)
    """On a client: the servers that its workload asks, with their addresses."""
    clients: Mapping[str, str] = field(default_factory=dict)
    """On a server: its clients, with their addresses. Drivers leave both to the lab, which knows the topology."""
    captures: bool = False
    """Whether links are captured here: on the machines that have the hosts' links, or where they are not ours on the hosts."""

    def narrowed(self, hosts: Container[str]) -> Target:
        """The place with the links of these hosts alone."""
        return replace(self, interfaces={interface: host for interface, host in self.interfaces.items() if host in hosts})


@dataclass(frozen=True, slots=True)
class Places:
    """Where a background load can be put. Pairs are (client host, server host, server address)."""

    machines: Sequence[str]
    """What carries the testbed."""
    pairs: Sequence[tuple[str, str, str]]
    """The workload's own clients and servers."""
    bystanders: Sequence[tuple[str, str, str]] = ()
    """Hosts beside them, which take no part in the workload."""
