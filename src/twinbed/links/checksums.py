"""A trial whether checksums that hosts leave to their NICs are completed on the way: TCP over a run's own links.

With checksum offload the kernel hands over segments that have only the pseudo-header summed, SYNs too. A virtual NIC passes
them on with a mark that Linux switches heed. A userspace datapath (Open vSwitch's netdev) has no place for the mark, and the
receiving kernel drops the segments and counts them. The kernel always completes the refusal of a connection. So asking a closed
port tries only the segments of the asking host, and both ends of a pair have to ask.

Source: https://docs.kernel.org/networking/checksum-offloads.html, and ``InCsumErrors`` of ``Tcp`` in /proc/net/snmp.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from twinbed.contracts.bed import Bed
from twinbed.contracts.host import Host
from twinbed.hosts.error import HostError
from twinbed.links.network import on_all

USERSPACE = ("openvswitch-netdev",)
"""Kinds of switches whose datapath is in userspace."""
COUNTERS = "/proc/net/snmp"
_ANSWER_LIMIT_S = 2.5
"""Long enough for the kernel to ask a second time."""


class Unfinished(HostError):
    """A host's TCP segments arrive with incomplete checksums."""

    def __init__(self, sender: str, receiver: str, dropped: int) -> None:
        super().__init__(
            f"{sender}: TCP segments arrive at {receiver} with incomplete checksums ({dropped} dropped, by {COUNTERS} there):"
            " the sender leaves them to its NIC, and nothing on the way completes them (a userspace datapath does not)."
            " Set tx: off for this testbed",
        )


def hold(bed: Bed, pairs: Sequence[tuple[str, str]]) -> None:
    """Let both hosts of each pair ask the other. Raises Unfinished. Other missing answers are not reported: a firewall may
    cause them."""
    ways = [way for client, server in pairs for way in ((client, server), (server, client))]

    def ask(way: tuple[str, str]) -> None:
        sender, receiver = (bed.hosts[name] for name in way)
        before = dropped(receiver)
        reached = sender.reaches(bed.addresses[receiver.name], _ANSWER_LIMIT_S)
        after = dropped(receiver)
        if not reached and before is not None and after is not None and after > before:
            raise Unfinished(sender.name, receiver.name, after - before)

    on_all(ways, ask)


def dropped(host: Host) -> int | None:
    """Count the TCP segments that a host dropped for their checksums since it booted; None where its kernel has no such
    count."""
    with contextlib.suppress(HostError, KeyError, ValueError):
        rows = [line.split() for line in host.read(COUNTERS).decode(errors="replace").splitlines() if line.startswith("Tcp:")]
        names, numbers = rows
        return int(dict(zip(names, numbers, strict=True))["InCsumErrors"])
    return None
