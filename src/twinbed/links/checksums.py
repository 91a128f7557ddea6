"""Whether what hosts leave unfinished for their NICs is finished on the way, by trying it: TCP over a run's own links.

With the NIC's checksum offload the kernel hands segments over with only the pseudo-header summed, a SYN as any other. A
virtual NIC hands them on so, with a mark that Linux switches heed; a userspace datapath (Open vSwitch's netdev) has no place
for the mark, and the receiving kernel drops the segments and counts them. A refusal of a connection is always finished by the
kernel, so that asking a closed port tries the asking host's segments alone, and both ends of a pair have to ask.

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
    """A host's TCP segments arrive with checksums that nothing has finished."""

    def __init__(self, sender: str, receiver: str, dropped: int) -> None:
        super().__init__(
            f"{sender}: its TCP segments arrive at {receiver} with unfinished checksums ({dropped} dropped, by its {COUNTERS}):"
            " the sender leaves them to its NIC, and what joins the two does not finish them, as a userspace datapath does not."
            " Set tx: off for this testbed",
        )


def hold(bed: Bed, pairs: Sequence[tuple[str, str]]) -> None:
    """Has both hosts of each pair ask the other. Raises Unfinished; that there is no answer for another reason is not told
    here, as a firewall may have it so."""
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
    """TCP segments that a host has dropped for their checksums since it booted; None where its kernel does not say."""
    with contextlib.suppress(HostError, KeyError, ValueError):
        rows = [line.split() for line in host.read(COUNTERS).decode(errors="replace").splitlines() if line.startswith("Tcp:")]
        names, numbers = rows
        return int(dict(zip(names, numbers, strict=True))["InCsumErrors"])
    return None
