"""A NIC of this machine that is lent to a lab, so that its hosts reach hosts outside of it.

A macvlan device on the NIC, in the mode that takes all its frames, is made inside the lab.  The NIC itself stays where it is,
and nothing of it is changed; the device goes when the lab does.
"""

from __future__ import annotations

from twinbed.hosts import process
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import Lab
from twinbed.hosts.process import ProcessFailed
from twinbed.links import device

KIND = "macvlan"


def lend(lab: Lab, nic: str, name: str) -> None:
    """Make ``name`` in the lab on ``nic``. Raises HostError where there is none, it is down, has an address, or is lent."""
    try:
        port = device.parse(process.run((*device.SHOW, "dev", nic)).stdout)[0]
    except (ProcessFailed, ValueError, IndexError) as error:
        raise HostError(f"uplink: this machine has no NIC {nic}: {error}") from None
    given = [address for address in port.addresses if not address.startswith("fe80:")]
    if given:
        raise HostError(
            f"uplink: {nic} has the address {given[0]}, and would lose all its packets to the lab: give a NIC that is"
            " for the experiment alone, without addresses"
        )
    if not port.up:
        raise HostError(f"uplink: {nic} is down: bring it up first (ip link set {nic} up)")
    command = ["ip", "link", "add", "link", nic, "name", name, "netns", str(lab.first_process())]
    try:
        process.run([*command, "type", KIND, "mode", "passthru"])
    except ProcessFailed as error:
        raise HostError(f"uplink: {nic} cannot be lent to the lab, perhaps as another has it: {error}") from None
