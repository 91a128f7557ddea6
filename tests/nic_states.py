"""NICs as an agent describes them."""

from __future__ import annotations

from typing import Any

from twinbed.hosts.nic import NicState, read

_UNKNOWN = (
    *("mac", "mtu", "up", "carrier", "qdisc", "driver", "firmware", "bus"),
    *("features", "wanted_features", "coalescing", "queues"),
)


def nic_state(**known: Any) -> NicState:
    """Return a NIC of which nothing else is known."""
    return read({**dict.fromkeys(_UNKNOWN), "addresses": [], "routes": [], **known})
