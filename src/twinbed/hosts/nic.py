"""A NIC as its host's kernel describes it to the agent (``crates/probe/src/nic``), without any other program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from twinbed.model.json import Document, Json, document, integer, named, optional, text, truth, tuple_of, value_of

_INITIAL_WINDOW = 10
"""Segments, if the route sets none (RFC 6928; Linux's TCP_INIT_CWND)."""
_OFFLOADS = {
    "sg": "tx-scatter-gather*",
    "tso": "tx-tcp-segmentation",
    "gso": "tx-generic-segmentation",
    "gro": "rx-gro",
    "rx": "rx-checksum",
    "tx": "tx-checksum-*",
}
"""Short name to the kernel's features. As in ethtool, an offload is on if any of its features is. Only tso has fewer features
than in ethtool, TCP over IPv4 alone: a kernel may leave another on when it turns this off (accecn, without scatter-gather)."""


@dataclass(frozen=True, slots=True)
class Route:
    """An IPv4 route of the main table."""

    initial_window: int
    """Segments that a connection may send at once."""
    quickack: bool


@dataclass(frozen=True, slots=True)
class NicState:
    """The state of a NIC; None for facts that the kernel does not give."""

    mac: str | None
    mtu: int | None
    up: bool | None
    carrier: bool | None
    """The link is up: an emulated card takes up to seconds for this, and loses packets sent before."""
    addresses: tuple[str, ...]
    qdisc: str | None
    """The kind of the root queueing discipline."""
    routes: tuple[Route, ...]
    driver: str | None
    firmware: str | None
    bus: str | None
    features: Mapping[str, bool] | None
    """By the kernel's names."""
    wanted_features: Mapping[str, bool] | None
    """The requested values of the features that can be changed."""
    coalescing: Mapping[str, int] | None
    """By the names of `ethtool -C`; 0 for a parameter that the driver cannot set."""
    queues: int | None

    @property
    def offloads(self) -> dict[str, str | None]:
        """Return on or off by short name; None if the NIC has no such feature."""
        return {short: self._state(pattern) for short, pattern in _OFFLOADS.items()}

    @property
    def initial_window(self) -> int | None:
        """Return the smallest of all routes; None without routes."""
        return min((route.initial_window for route in self.routes), default=None)

    def _state(self, pattern: str) -> str | None:
        states = [on for name, on in (self.features or {}).items() if fnmatchcase(name, pattern)]
        return ("on" if any(states) else "off") if states else None


def read(answer: Document) -> NicState:
    """Read an agent's answer. Raises ValueError."""
    return NicState(
        mac=value_of(answer, "mac", optional(text)),
        mtu=value_of(answer, "mtu", optional(integer)),
        up=value_of(answer, "up", optional(truth)),
        carrier=value_of(answer, "carrier", optional(truth)),
        addresses=value_of(answer, "addresses", tuple_of(text)),
        qdisc=value_of(answer, "qdisc", optional(text)),
        routes=value_of(answer, "routes", tuple_of(_route)),
        driver=value_of(answer, "driver", optional(text)),
        firmware=value_of(answer, "firmware", optional(text)),
        bus=value_of(answer, "bus", optional(text)),
        features=value_of(answer, "features", optional(named(truth))),
        wanted_features=value_of(answer, "wanted_features", optional(named(truth))),
        coalescing=value_of(answer, "coalescing", optional(named(integer))),
        queues=value_of(answer, "queues", optional(integer)),
    )


def _route(value: Json) -> Route:
    route = document(value)
    window = value_of(route, "initial_window", optional(integer))
    return Route(_INITIAL_WINDOW if window is None else window, value_of(route, "quickack", truth))
