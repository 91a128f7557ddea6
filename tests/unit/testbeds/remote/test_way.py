"""Why nothing comes back over an experiment link, with hosts that are played."""

from __future__ import annotations

import importlib
from ipaddress import IPv4Interface
from types import SimpleNamespace
from typing import Any

import pytest

from twinbed.hosts.error import HostError
from twinbed.links.checksums import Unfinished

driver = importlib.import_module("twinbed.testbeds.remote.driver")


def test_a_way_that_does_not_finish_checksums_is_told_from_a_firewall(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter(("Tcp: InCsumErrors\nTcp: 0\n", "Tcp: InCsumErrors\nTcp: 2\n") * 2)

    def host(name: str) -> Any:
        text = SimpleNamespace(code=1, text="10.77.0.2 lladdr 02:00:0a:4d:00:02 REACHABLE")
        return SimpleNamespace(
            name=name,
            run=lambda argv, **rest: text,
            read=lambda path: next(counts).encode(),
            reaches=lambda address, limit_s: False,
        )

    def end(name: str, address: str) -> Any:
        return host(name), SimpleNamespace(nic="exp", was_up=True, address=IPv4Interface(address))

    monkeypatch.setattr(driver, "way", lambda host, address: "exp")
    ends = end("client", "10.77.0.1/24"), end("server", "10.77.0.2/24")
    with pytest.raises(Unfinished, match=r"^client: TCP segments arrive at server with incomplete checksums"):
        driver._path(*ends)
    monkeypatch.setattr(driver.checksums, "dropped", lambda host: 2)
    with pytest.raises(HostError, match="it answers ARP but not TCP; check firewalls"):
        driver._path(*ends)
