"""Packets of a capture whose TCP nobody reads: in tunnels that are not entered, or in frames that are not read.

A count of what is inside them is missing then, not 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from twinbed.metrics.packets import COUNTED, MEASURED
from twinbed.model.amount import amount

if TYPE_CHECKING:
    from twinbed import _core

TUNNEL = "_tunnel_not_entered"
"""The ending of the core's notes of packets in tunnels; the kind is before it."""
SET_BACK = "dated_1_ms_or_more_before_the_packet_ahead_in_its_connection"
"""The core's note of packets with an earlier time: a clock was set back, or captures were joined in another order."""
_OF_CONNECTIONS = frozenset({*COUNTED, *MEASURED, "connections", "incomplete_connections"})
INSIDE_TUNNELS = _OF_CONNECTIONS - {"packets", "bytes"}
"""Metrics that tunnels hide: the packets that carry them are IP packets, of UDP or of no transport."""
_NEVER_IP = frozenset(
    (
        *("arp", "rarp", "lldp", "spanning_tree", "wake_on_lan", "eapol", "mvrp", "mmrp", "ptp", "stream_reservation"),
        *("ethernet_flow_control", "ethernet_slow_protocols", "ethernet_loopback_test", "connectivity_fault_management"),
        *("cisco_discovery_and_others", "pppoe_discovery", "ppp_control", "wlan_management", "wlan_control"),
        *("wlan_without_data", "token_ring_control", "fddi_control"),
    )
)
"""Kinds of frames without an IP packet."""


def hidden(summary: _core.LogSummary) -> frozenset[str]:
    """Return the unknown metrics: of connections where no packet could be read, of TCP where packets are in tunnels."""
    unread = sum(summary["skipped"].values()) + sum(
        number for kind, number in summary["not_ip"].items() if kind not in _NEVER_IP
    )
    if unread and not summary["connections"]:
        return _OF_CONNECTIONS
    return INSIDE_TUNNELS if any(note.endswith(TUNNEL) for note in summary["notes"]) else frozenset()


def texts(summary: _core.LogSummary, *, tunnels: bool) -> Iterator[str]:
    """Yield texts on packets in tunnels and how to count their content, and on times that go back."""
    for note, number in summary["notes"].items():
        if note.endswith(TUNNEL):
            kind = note.removesuffix(TUNNEL).replace("_", "-").upper()
            remedy = "they are fragments, which are not entered" if tunnels else "`tunnels: true` counts it"
            yield f"{number} of {summary['packets']} packets in a tunnel ({kind}), whose TCP is not counted: {remedy}"
    if back := summary["notes"].get(SET_BACK):
        yield f"{amount(back, 'packet')} dated 1 ms or more before the one ahead in the connection: doubt durations and rates"
