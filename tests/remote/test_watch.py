"""What is told at the end of a run of the hosts' links and clocks; clocks are stepped in what the hosts say of them."""

from __future__ import annotations

from ipaddress import IPv4Interface
from typing import Any

import pytest

from twinbed.model.caution import Kind
from twinbed.model.topology import Link
from twinbed.testbeds.remote.driver import _watch
from twinbed.testbeds.remote.nic import Experiment


class Host:
    """Says what it is told to say."""

    def __init__(self) -> None:
        self.name, self.changes, self.monotonic_s, self.realtime_s = "client", 4, 1000.0, 1.7e9

    def read(self, path: str) -> bytes:
        assert path == "/sys/class/net/exp/carrier_changes"
        return f"{self.changes}\n".encode()

    def ping(self) -> dict[str, float]:
        return {"monotonic_s": self.monotonic_s, "realtime_s": self.realtime_s}


@pytest.mark.parametrize(
    ("stepped_s", "changes", "said"),
    [
        (0.0, 4, {}),
        (0.04, 4, {}),
        (-3600.0, 4, {Kind.CLOCK_STEPPED: "client: by -3600.000 s"}),
        (0.5, 4, {Kind.CLOCK_STEPPED: "client: by +0.500 s"}),
        (0.0, 6, {Kind.LINK_DOWN: "client: exp's carrier changed 2 times"}),
    ],
)
def test_links_and_clocks(stepped_s: float, changes: int, said: dict[Kind, str]) -> None:
    host: Any = Host()
    experiment = Experiment("exp", IPv4Interface("10.77.0.1/24"), None, True, Link())
    at_end = _watch({"client": (host, experiment)})
    host.monotonic_s += 90.0
    host.realtime_s += 90.0 + stepped_s
    host.changes = changes
    assert {caution.kind: caution.detail for caution in at_end()} == said
