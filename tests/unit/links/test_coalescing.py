"""Interrupt coalescing of an e1000e of Linux 6.1 in a guest, and as ethtool(8) has the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from nic_states import nic_state
from twinbed.contracts.host_settings import HostSettings
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.hosts.nic import NicState
from twinbed.links import network

NOTHING = {"adaptive-rx": 0, "adaptive-tx": 0, "rx-usecs": 0, "tx-usecs": 0}
E1000E = {**NOTHING, "rx-usecs": 3}
"""3 is its name for a delay that it adapts."""
ADAPTIVE = {"adaptive-rx": 1, "adaptive-tx": 0, "rx-usecs": 3, "tx-usecs": 16}


@dataclass
class PlayedHost:
    """A host whose NIC has what a test says; None where its driver has no coalescing."""

    parameters: dict[str, int] | None
    name: str = "client"
    changes: list[str] = field(default_factory=list)

    def nic(self, device: str) -> NicState:
        return nic_state(driver="veth", coalescing=self.parameters)

    def run(self, argv: Sequence[str]) -> None:
        self.changes.append(" ".join(argv))


def changes(shown: dict[str, int] | None, value: str) -> list[str]:
    host = PlayedHost(shown)
    network.set_coalescing(cast(AgentHost, host), "eth0", HostSettings.model_validate({"coalescing": value}))
    return host.changes


def found(shown: dict[str, int] | None, asked: str | None = None) -> list[tuple[Any, Any]]:
    settings = HostSettings.model_validate({"coalescing": asked})
    items = network.applied_coalescing(cast(AgentHost, PlayedHost(shown)), "eth0", settings)
    return [(item.asked, item.found) for item in items]


def test_off_is_asked_of_what_a_driver_has() -> None:
    assert changes(E1000E, "off") == ["ethtool -C eth0 rx-usecs 0"]
    assert changes(ADAPTIVE, "off") == ["ethtool -C eth0 adaptive-rx off rx-usecs 0 tx-usecs 0"]
    assert changes(NOTHING, "off") == []


def test_on_is_as_the_driver_has_it() -> None:
    assert changes(E1000E, "on") == []
    with pytest.raises(HostError, match="client: eth0 has coalescing off, and the time to wait is not known"):
        changes(NOTHING, "on")


def test_a_nic_that_has_none_is_named() -> None:
    for value in ("on", "off"):
        with pytest.raises(HostError, match=rf"eth0 cannot have coalescing {value}: its driver \(veth\) .* choose another NIC"):
            changes(None, value)


def test_read_back() -> None:
    assert found(E1000E) == [(None, "on")]
    assert found(NOTHING, "off") == [("off", "off")]
    assert found({**NOTHING, "adaptive-rx": 1}) == [(None, "on")]
    assert (found(None), found(None, "off")) == ([], [("off", None)])


def test_what_was_there_is_brought_back() -> None:
    host = cast(AgentHost, PlayedHost(ADAPTIVE))
    assert " ".join(network.undo_coalescing(host, "eth0")) == "ethtool -C eth0 adaptive-rx on rx-usecs 3 tx-usecs 16"
    for nothing in (NOTHING, None):
        assert network.undo_coalescing(cast(AgentHost, PlayedHost(nothing)), "eth0") == []
