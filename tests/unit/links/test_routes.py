"""TCP's settings of routes: what `ip route show dev` of iproute2 6.1.0 printed in a network namespace, and what it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from nic_states import nic_state
from twinbed.contracts.host_settings import HostSettings
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError, ProgramFailed
from twinbed.hosts.nic import NicState
from twinbed.links import network

PLAIN = "10.77.0.0/24 proto kernel scope link src 10.77.0.2 \n10.78.0.0/24 via 10.77.0.1 \n"
OTHERS = (
    "default scope link linkdown mtu 1400 \n"
    "10.77.0.0/24 proto kernel scope link src 10.77.0.2 linkdown initcwnd 4 quickack 1 \n"
)
"""One with metrics of another kind, one given before; the peer's end was down. IPv6's are not listed."""


@dataclass
class Said:
    text: str


@dataclass
class PlayedHost:
    """A host whose ip prints what a test says."""

    shown: str
    refuses: bool = False
    name: str = "client"
    changes: list[str] = field(default_factory=list)

    def run(self, argv: Sequence[str], **rest: Any) -> Said:
        if argv[2] == "show":
            return Said(self.shown)
        if self.refuses:
            raise ProgramFailed(self.name, tuple(argv), "exit status 2", b"RTNETLINK answers: Operation not permitted\n")
        self.changes.append(" ".join(argv))
        return Said("")


def host(shown: str, **rest: Any) -> tuple[PlayedHost, AgentHost]:
    played = PlayedHost(shown, **rest)
    return played, cast(AgentHost, played)


@dataclass
class Described:
    """A host whose agent describes its routes: initial window and quickack of each."""

    routes: list[tuple[int | None, bool]]
    name: str = "client"

    def nic(self, device: str) -> NicState:
        return nic_state(routes=[{"initial_window": window, "quickack": quickack} for window, quickack in self.routes])


def read(*shown: tuple[int | None, bool], **settings: Any) -> list[tuple[str, Any, Any]]:
    items = network.applied_route_metrics(cast(AgentHost, Described([*shown])), ["eth0"], HostSettings(**settings))
    return [(item.setting, item.asked, item.found) for item in items]


def test_every_route_is_changed_and_keeps_the_rest() -> None:
    played, of_it = host(PLAIN)
    network.set_route_metrics(of_it, ["eth0"], HostSettings(quickack="on", initial_window=4))
    assert played.changes == [
        "ip route change 10.77.0.0/24 proto kernel scope link src 10.77.0.2 dev eth0 initcwnd 4 quickack 1",
        "ip route change 10.78.0.0/24 via 10.77.0.1 dev eth0 initcwnd 4 quickack 1",
    ]


def test_a_route_keeps_what_is_not_asked_and_its_state_is_no_word_of_it() -> None:
    played, of_it = host(OTHERS)
    network.set_route_metrics(of_it, ["eth0"], HostSettings(quickack="off"))
    assert played.changes == [
        "ip route change default scope link mtu 1400 dev eth0 quickack 0",
        "ip route change 10.77.0.0/24 proto kernel scope link src 10.77.0.2 initcwnd 4 dev eth0 quickack 0",
    ]


def test_nothing_is_changed_unless_asked() -> None:
    played, of_it = host(PLAIN)
    network.set_route_metrics(of_it, ["eth0"], HostSettings())
    assert played.changes == []


def test_read_back() -> None:
    plain, given = (None, False), (4, True)
    assert read(plain, plain) == [("initial_window", None, 10), ("quickack", None, "off")]
    assert read(given, given, quickack="on", initial_window=4) == [("initial_window", 4, 4), ("quickack", "on", "on")]
    # RFC 6928: ten where a route says nothing. Routes that differ have no one value.
    assert read(plain, given, quickack="on") == [("initial_window", None, None), ("quickack", "on", None)]
    assert read() == [("initial_window", None, None), ("quickack", None, None)]


def test_what_cannot_be_set_is_named() -> None:
    with pytest.raises(HostError, match="client: eth0 has no route to set quickack 1 on"):
        network.set_route_metrics(host("")[1], ["eth0"], HostSettings(quickack="on"))
    with pytest.raises(
        HostError, match=r"(?s)Operation not permitted.*its route should have initcwnd 3; iproute2 can set that"
    ):
        network.set_route_metrics(host(PLAIN, refuses=True)[1], ["eth0"], HostSettings(initial_window=3))
