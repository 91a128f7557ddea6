"""What a guest must have of its own, asked once there is an agent in it: all at once, as guests take long to come up."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from twinbed.contracts.host_settings import HostSettings
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.model.topology import Link

_LACKS = 'for program in "$@"; do command -v "$program" >/dev/null || echo "$program"; done'
_ALWAYS = frozenset({"ip", "stat"})
"""For the network, and for the space that is left."""
_TO_MEASURE_A_RATE = frozenset({"tc", "tcpdump"})


def needed(started: Collection[str], settings: HostSettings, link: Link) -> list[str]:
    """Names, sorted. ``started``: what the run starts there."""
    rate = _TO_MEASURE_A_RATE if link.rate is not None else frozenset()
    return sorted({*started, *_ALWAYS, *rate, *({"ethtool"} if settings.offloads() else ())})


def lacking(host: AgentHost, programs: Sequence[str]) -> list[str]:
    """Those that are not there, by the guest's own search path."""
    return host.run(["sh", "-c", _LACKS, "sh", *programs]).text.split()


def refuse(lacks: Sequence[tuple[str, Sequence[str]]]) -> None:
    """(Guest, what it lacks) of all guests. Raises HostError, with all of them, where one lacks anything."""
    if missing := [f"{guest} has no {', '.join(programs)}" for guest, programs in lacks if programs]:
        raise HostError("; ".join(missing), advice="put them into the guests' image, by the guests' search path for programs")
