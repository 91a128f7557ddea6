"""The class of a connection that is not the workload's: rules as data, of which the first that fits holds.

Ports are those of IANA's service name registry.  Types of ICMPv6 are those of RFC 4861 (133 to 137), RFC 2710 and RFC 3810 (130
to 132, 143), which hosts send when a link comes up.  Instruments and loads declare the lab's own ports.  States are the
connection log's (docs/connections.md).  ARP has no connections: its frames are counted, in the class of neighbour
discovery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from twinbed.contracts.place import BACKGROUND_PORTS, PROBE_PORT
from twinbed.model.services import Service

WORKLOAD = "workload"
RETRY = "workload retry"
NEIGHBOURS = "ARP/ND"
DHCP, MDNS, NTP, MANAGEMENT = "DHCP", "mDNS", "NTP", "management"
INSTRUMENT, PROBE, ERROR, UNKNOWN = "instrument", "probe", "ICMP error", "unknown"
CLASSES = (NEIGHBOURS, DHCP, MDNS, NTP, MANAGEMENT, INSTRUMENT, RETRY, PROBE, ERROR, UNKNOWN)
"""Every class of connections that are not the workload's."""

ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
UNESTABLISHED = frozenset({"S0", "REJ", "RSTOS0", "RSTRH", "SH", "SHR"})
"""States of connections that were never established."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The connections of a class."""

    name: str
    ip_protocol: int
    ports: Set[int] | None = None
    """The responder's ports; for ICMP the message's type, which is the originator's. None: any."""
    states: Set[str] | None = None
    """None: any."""

    def fits(self, ip_protocol: int, port: int, state: str) -> bool:
        return (
            ip_protocol == self.ip_protocol
            and (self.ports is None or port in self.ports)
            and (self.states is None or state in self.states)
        )


RULES: Sequence[Rule] = (
    Rule(NEIGHBOURS, ICMPV6, frozenset({*range(130, 138), 143})),
    Rule(DHCP, UDP, frozenset({67, 68, 546, 547})),
    Rule(MDNS, UDP, frozenset({5353, 5355})),  # with LLMNR (RFC 4795), which asks the same of the same link
    Rule(NTP, UDP, frozenset({123})),
    Rule(MANAGEMENT, TCP, frozenset({22})),
    Rule(INSTRUMENT, UDP, frozenset({PROBE_PORT, *BACKGROUND_PORTS})),
    Rule(INSTRUMENT, TCP, frozenset({PROBE_PORT, *BACKGROUND_PORTS})),
    Rule(PROBE, TCP, states=UNESTABLISHED),
    Rule(PROBE, ICMP, frozenset({0, 8, 13, 17})),
    Rule(PROBE, ICMPV6, frozenset({128, 129})),
    Rule(ERROR, ICMP, frozenset({3, 5, 11, 12})),
    Rule(ERROR, ICMPV6, frozenset({1, 2, 3, 4})),
)


def class_of(row: Mapping[str, object], services: Sequence[Service]) -> str:
    """Return the class of a row of a connection log.

    A connection to a service of the workload is the workload's, or a retry where it was never established.  A row that fits no
    rule is unknown.
    """
    ip_protocol, state = row["ip_protocol"], row["state"]
    originator, responder = row["originator_port"], row["responder_port"]
    assert isinstance(ip_protocol, int) and isinstance(state, str)
    assert isinstance(originator, int) and isinstance(responder, int)
    if any(row["protocol"] == service.protocol and service.port in (None, responder) for service in services):
        return RETRY if ip_protocol == TCP and state in UNESTABLISHED else WORKLOAD
    # The other port is a code where no answer is defined.
    port = originator if ip_protocol in (ICMP, ICMPV6) else responder
    return next((rule.name for rule in RULES if rule.fits(ip_protocol, port, state)), UNKNOWN)
