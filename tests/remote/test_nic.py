"""What is read from the output of a NIC's and other tools, and what is put back."""

from __future__ import annotations

import pytest

from nic_states import nic_state
from twinbed.hosts.error import HostError
from twinbed.model.topology import Link
from twinbed.testbeds.remote.facts import versions
from twinbed.testbeds.remote.nic import _features, _shaped, _speed


def test_features_are_put_back_as_they_were_asked_for() -> None:
    wanted = {"rx-gro-hw": False, "tx-scatter-gather": False, "tx-tcp-segmentation": True}
    words = ["rx-gro-hw", "off", "tx-scatter-gather", "off", "tx-tcp-segmentation", "on"]
    assert _features(nic_state(wanted_features=wanted)) == words
    assert _features(nic_state()) == []


@pytest.mark.parametrize(
    ("said", "speed"),
    [
        ("Settings for exp:\n\tSpeed: 10000Mb/s\n\tDuplex: Full\n", 10**10),
        ("Settings for eth1:\n\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n", None),
        ("", None),
    ],
)
def test_speed(said: str, speed: int | None) -> None:
    assert _speed(said) == speed


def test_only_what_the_nic_has_not_itself_is_shaped() -> None:
    link = Link(rate=10**9)
    assert _shaped("client", "eth1", link, 10**9).rate is None
    assert _shaped("client", "eth1", link, 10**10) == link
    assert _shaped("client", "eth1", link, None) == link
    assert _shaped("client", "eth1", Link(), 10**9).rate is None
    with pytest.raises(HostError, match="runs at 100 Mbit/s, which cannot carry 1000 Mbit/s"):
        _shaped("client", "eth1", link, 10**8)


def test_versions_of_the_tools_that_are_there() -> None:
    said = "== ab -V\nThis is ApacheBench, Version 2.3 <$Revision: 1923142 $>\nCopyright 1996\n"
    said += "== irtt version\nsh: 1: irtt: not found\n"
    said += (
        "== wrk -v\nwrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer\n== nginx -v\nnginx version: nginx/1.22.1\n"
    )
    found = versions(said)
    assert found["ab version"] == "This is ApacheBench, Version 2.3 <$Revision: 1923142 $>"
    assert found["nginx version"] == "nginx version: nginx/1.22.1"
    assert found["irtt version"] is None
    assert found["tcpdump version"] is None
