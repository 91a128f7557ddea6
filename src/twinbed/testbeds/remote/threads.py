"""Simultaneous multithreading (hyperthreading) of a leased host: set where it can be, read back, put back with the lease.

Source: Documentation/ABI/testing/sysfs-devices-system-cpu of Linux (smt/control).
"""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.contracts.bed import Applied
from twinbed.contracts.host_settings import OnOff
from twinbed.hosts.error import HostError
from twinbed.hosts.lease import Lease
from twinbed.hosts.passport import content

CONTROL = "/sys/devices/system/cpu/smt/control"


def set_threads(lease: Lease, asked: OnOff | None) -> Sequence[Applied]:
    """Raises HostError for a host whose CPUs or firmware leave no choice."""
    if asked is None:
        return []
    host = lease.host
    state = content(host, CONTROL)  # on, off, forceoff, notsupported or notimplemented; None without such a file
    if state not in ("on", "off"):
        raise HostError(
            f"{host.name}: its simultaneous multithreading cannot be set to {asked}: {CONTROL} says {state or 'nothing'}; leave"
            " smt out, or set it in the firmware"
        )
    if state != asked:
        lease.undo_file(CONTROL, state)
        host.write(CONTROL, asked.encode())
    return [Applied(host.name, "smt", asked, content(host, CONTROL), CONTROL)]
