"""The places of a testbed where plugins may put programs (the machine, its hosts, their links), and the ports taken there."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

MACHINE = "machine"
"""The name of the machine that carries the lab, with the testbed's switches, taps and shapers."""
MACHINE2 = "machine2"
"""The servers' machine, if a trunk joins it to one or several machines of clients."""


PROBE_PORT = 2112
"""The UDP port of an instrument's own packets. Captures leave them out, since they are not part of the workload."""
BACKGROUND_PORTS = range(2120, 2123)
"""The TCP and UDP ports of servers of a background load; captures leave them out too."""
NOT_THE_WORKLOADS = ("22", "861", f"{PROBE_PORT}", f"{BACKGROUND_PORTS[0]}-{BACKGROUND_PORTS[-1]}")
"""TCP ports that the probe leaves out: SSH, control connections of OWAMP (RFC 4656), the probes' port, background loads."""


@dataclass(frozen=True, slots=True)
class Target:
    """A place for an instrument: a host, or the machine's side of the links."""

    name: str
    """A host's name, or MACHINE."""
    interfaces: Mapping[str, str]
    """Interface to the host at whose end of a link it is (on a host itself: its own name)."""
    own_kernel: bool = False
    """True for guests and machines; False for containers, whose /proc/stat and kernel log are the machine's."""
    servers: Mapping[str, str] = field(default_factory=dict)
    """On a client: the servers of its workload, with their addresses."""
    clients: Mapping[str, str] = field(default_factory=dict)
    """On a server: its clients, with their addresses. The lab, which knows the topology, fills both."""
    captures: bool = False
    """Links are captured here: on the machines with the hosts' links, or on the hosts if the links are not twinbed's."""

    def narrowed(self, hosts: Container[str]) -> Target:
        """Return the place with only the links of these hosts."""
        return replace(self, interfaces={interface: host for interface, host in self.interfaces.items() if host in hosts})


@dataclass(frozen=True, slots=True)
class Places:
    """Places for a background load. Pairs are (client host, server host, server address)."""

    machines: Sequence[str]
    """The machines that carry the testbed."""
    pairs: Sequence[tuple[str, str, str]]
    """The workload's own clients and servers."""
    bystanders: Sequence[tuple[str, str, str]] = ()
    """Further hosts, which take no part in the workload."""
