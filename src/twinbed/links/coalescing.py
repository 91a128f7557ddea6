"""Whether a NIC waits before it interrupts, to report several packets at once: interrupt coalescing (ethtool(8), -c and -C).

How long it waits is the driver's own: ``off`` makes it nothing, ``on`` holds against what is there. Linux polls under load
all the same (NAPI): that is no setting of a NIC. Drivers have it by their hardware: e1000e and igb have ``rx-usecs``, Linux's
e1000 has none for the card that QEMU emulates (whose device has it instead), veth has no interrupts.
"""

from __future__ import annotations

import re

from twinbed.contracts.bed import Applied
from twinbed.contracts.host_settings import HostSettings
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.hosts.passport import first, output_of

WAITS = ("rx-usecs", "tx-usecs")
ADAPTIVE = ("adaptive-rx", "adaptive-tx")
"""As `ethtool -C` calls them."""


def set_coalescing(host: AgentHost, nic: str, settings: HostSettings) -> None:
    """Raises HostError where the NIC's driver has no such setting, or where it is off and to be on."""
    asked = settings.moderation()
    if asked is None:
        return
    parameters = read(output_of(host, "ethtool", "-c", nic))
    found = state(parameters)
    if found is None:
        driver = first(r"driver: (.*)", output_of(host, "ethtool", "-i", nic)) or "of no name"
        raise HostError(
            f"{host.name}: {nic} cannot have coalescing {asked}: its driver {driver} has none to set (ethtool -c);"
            " leave coalescing as it is, or choose another NIC: guests with e1000 or e1000e have it"
        )
    if asked == "on" and found == "off":
        raise HostError(
            f"{host.name}: {nic} has coalescing off, and how long it should wait is not known: set it on the host"
            f" (ethtool -C {nic} rx-usecs MICROSECONDS), or leave coalescing as it is"
        )
    if asked == "off" and found == "on":
        host.run(["ethtool", "-C", nic, *(word for name in parameters for word in (name, "off" if name in ADAPTIVE else "0"))])


def applied_coalescing(host: AgentHost, nic: str, settings: HostSettings) -> list[Applied]:
    """What is in force; nothing where the NIC has none and none was asked for."""
    ask, asked = ("ethtool", "-c", nic), settings.moderation()
    found = state(read(output_of(host, *ask)))
    return [] if found is asked is None else [Applied(host.name, "coalescing", asked, found, " ".join(ask))]


def read(text: str) -> dict[str, str]:
    """From `ethtool -c`: what can be set of WAITS and ADAPTIVE, as it is; older ethtools say 0 of what there is none."""
    found = {name: value for name in WAITS if (value := first(rf"^{name}:\s+(\d+)", text))}
    adaptive = re.search(r"^Adaptive RX:\s*(on|off|n/a)\s+TX:\s*(on|off|n/a)", text, re.MULTILINE)
    pairs = zip(ADAPTIVE, adaptive.groups() if adaptive else (), strict=False)
    return {name: value for name, value in pairs if value != "n/a"} | found


def state(parameters: dict[str, str]) -> str | None:
    """on or off; None where there is nothing to set."""
    if not parameters:
        return None
    return "off" if all(value in ("0", "off") for value in parameters.values()) else "on"


def undo(host: AgentHost, nic: str) -> list[str]:
    """The command that brings back what is there now; empty where there is nothing."""
    parameters = read(output_of(host, "ethtool", "-c", nic))
    return ["ethtool", "-C", nic, *(word for pair in parameters.items() for word in pair)] if parameters else []
