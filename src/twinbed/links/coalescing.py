"""Whether a NIC waits before it interrupts, to report several packets at once: interrupt coalescing (ethtool(8), -c and -C).

How long it waits is the driver's own: ``off`` makes it nothing, ``on`` holds against what is there. Linux polls under load
all the same (NAPI): that is no setting of a NIC. Drivers have it by their hardware: e1000e and igb have ``rx-usecs``, Linux's
e1000 has none for the card that QEMU emulates (whose device has it instead), veth has no interrupts.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinbed.contracts.bed import Applied
from twinbed.contracts.host_settings import HostSettings
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError

_ADAPTIVE = ("adaptive-rx", "adaptive-tx")
"""Parameters of `ethtool -C` that are on or off; the rest are microseconds."""


def set_coalescing(host: AgentHost, nic: str, settings: HostSettings) -> None:
    """Raises HostError where the NIC's driver has no such setting, or where it is off and to be on."""
    asked = settings.moderation()
    if asked is None:
        return
    there = host.nic(nic)
    found = _state(there.coalescing)
    if found is None:
        raise HostError(
            f"{host.name}: {nic} cannot have coalescing {asked}: its driver {there.driver or 'of no name'} has none to set"
            " (ethtool -c); leave coalescing as it is, or choose another NIC: guests with e1000 or e1000e have it"
        )
    if asked == "on" and found == "off":
        raise HostError(
            f"{host.name}: {nic} has coalescing off, and how long it should wait is not known: set it on the host"
            f" (ethtool -C {nic} rx-usecs MICROSECONDS), or leave coalescing as it is"
        )
    if asked == "off" and found == "on":
        host.run(["ethtool", "-C", nic, *_words(dict.fromkeys(_at_work(there.coalescing), 0))])


def applied_coalescing(host: AgentHost, nic: str, settings: HostSettings) -> list[Applied]:
    """What is in force; nothing where the NIC has none and none was asked for."""
    asked, found = settings.moderation(), _state(host.nic(nic).coalescing)
    return [] if found is asked is None else [Applied(host.name, "coalescing", asked, found, f"ETHTOOL_GCOALESCE of {nic}")]


def undo(host: AgentHost, nic: str) -> list[str]:
    """The command that brings back what is there now; empty where nothing waits."""
    there = _at_work(host.nic(nic).coalescing)
    return ["ethtool", "-C", nic, *_words(there)] if there else []


def _state(parameters: Mapping[str, int] | None) -> str | None:
    """on or off; None where there is nothing to set."""
    return None if parameters is None else ("on" if _at_work(parameters) else "off")


def _at_work(parameters: Mapping[str, int] | None) -> dict[str, int]:
    """Without what is 0, which a driver may not let us set: whatever is not, it has set itself or had set."""
    return {name: value for name, value in (parameters or {}).items() if value}


def _words(parameters: Mapping[str, int]) -> list[str]:
    on_or_off = ("off", "on")
    return [
        word
        for name, value in parameters.items()
        for word in (name, on_or_off[bool(value)] if name in _ADAPTIVE else str(value))
    ]
