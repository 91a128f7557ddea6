"""Interrupt coalescing as ethtool 6.1 printed it in a guest of Linux 6.1 with an e1000e, and as ethtool(8) has the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from twinbed.contracts.host_settings import HostSettings
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.links import coalescing

E1000E = """Coalesce parameters for eth0:
Adaptive RX: n/a  TX: n/a
stats-block-usecs: n/a
sample-interval: n/a
pkt-rate-low: n/a
pkt-rate-high: n/a

rx-usecs: 3
rx-frames: n/a
rx-usecs-irq: n/a
rx-frames-irq: n/a

tx-usecs: n/a
tx-frames: n/a
"""
"""rx-usecs 3 is its name for a delay that it adapts."""
ADAPTIVE = E1000E.replace("RX: n/a  TX: n/a", "RX: on  TX: off").replace("tx-usecs: n/a", "tx-usecs: 16")


@dataclass
class Said:
    text: str


@dataclass
class PlayedHost:
    """A host whose ethtool prints what a test says; empty where it refuses."""

    shown: str
    name: str = "client"
    changes: list[str] = field(default_factory=list)

    def run(self, argv: Sequence[str], **rest: Any) -> Said:
        if argv[1] == "-C":
            self.changes.append(" ".join(argv))
        return Said({"-c": self.shown, "-i": "driver: veth\nversion: 1.0\n"}.get(argv[1], ""))


def changes(shown: str, value: str) -> list[str]:
    host = PlayedHost(shown)
    coalescing.set_coalescing(cast(AgentHost, host), "eth0", HostSettings.model_validate({"coalescing": value}))
    return host.changes


def found(shown: str, asked: str | None = None) -> list[tuple[Any, Any]]:
    settings = HostSettings.model_validate({"coalescing": asked})
    items = coalescing.applied_coalescing(cast(AgentHost, PlayedHost(shown)), "eth0", settings)
    return [(item.asked, item.found) for item in items]


def test_off_is_asked_of_what_a_driver_has() -> None:
    assert changes(E1000E, "off") == ["ethtool -C eth0 rx-usecs 0"]
    assert changes(ADAPTIVE, "off") == ["ethtool -C eth0 adaptive-rx off adaptive-tx off rx-usecs 0 tx-usecs 0"]
    assert changes(E1000E.replace(": 3", ": 0"), "off") == []


def test_on_is_as_the_driver_has_it() -> None:
    assert changes(E1000E, "on") == []
    with pytest.raises(HostError, match="client: eth0 has coalescing off, and how long it should wait is not known"):
        changes(E1000E.replace(": 3", ": 0"), "on")


def test_a_nic_that_has_none_is_named() -> None:
    for value in ("on", "off"):
        with pytest.raises(HostError, match=rf"eth0 cannot have coalescing {value}: its driver veth .* choose another NIC"):
            changes("", value)


def test_read_back() -> None:
    assert found(E1000E) == [(None, "on")]
    assert found(E1000E.replace(": 3", ": 0"), "off") == [("off", "off")]
    assert found(ADAPTIVE.replace("rx-usecs: 3", "rx-usecs: 0").replace("tx-usecs: 16", "tx-usecs: 0")) == [(None, "on")]
    assert (found(""), found("", "off")) == ([], [("off", None)])


def test_what_was_there_is_brought_back() -> None:
    host = cast(AgentHost, PlayedHost(ADAPTIVE))
    assert " ".join(coalescing.undo(host, "eth0")) == "ethtool -C eth0 adaptive-rx on adaptive-tx off rx-usecs 3 tx-usecs 16"
    assert coalescing.undo(cast(AgentHost, PlayedHost("")), "eth0") == []
