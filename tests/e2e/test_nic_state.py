"""What an agent reads of a NIC is what ethtool, tc and ip print on the same host."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from twinbed.contracts.site import Site
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.nic import NicState
from twinbed.model.topology import Link, Topology
from twinbed.registry import PLUGINS

KINDS: dict[str, dict[str, Any]] = {
    "virtio": {"driver": "qemu", "nic": "virtio-net-pci", "vcpus": 2, "queues": 2, "offload": "off"},
    "e1000": {"driver": "qemu", "nic": "e1000", "sg": "off", "initial_window": 3},
    "e1000e": {"driver": "qemu", "nic": "e1000e", "rx": "off", "quickack": "on"},
    "veth": {"driver": "container", "sg": "off", "tso": "on", "initial_window": 4},
}
OFFLOADS = {
    "sg": "scatter-gather",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "tso": "tx-tcp-segmentation",
}
"""As `ethtool -k` calls them; tso is what it prints below tcp-segmentation-offload."""


@pytest.mark.parametrize(("one", "other"), [("virtio", "e1000"), ("e1000e", "veth")])
def test_programs_print_the_same(one: str, other: str, site: Callable[..., Site], leaves_nothing: None) -> None:
    mixed = PLUGINS.drivers["mixed"]
    link = Link(rate=10**8, mtu=1400, emulated_at="hosts" if one == "virtio" else "switch")
    with mixed.up(mixed.params(client=KINDS[one], server=KINDS[other]), Topology(link=link), site()) as bed:
        for name in ("client", "server"):
            host = bed.hosts[name]
            there = host.nic("eth0")
            features_are_those_of_ethtool(there, printed(host, "ethtool", "-k", "eth0"))
            driver_is_that_of_ethtool(there, host)
            network_is_that_of_ip_and_tc(there, host)


def printed(host: AgentHost, *argv: str) -> str:
    return host.run(argv, check=False).text


def features_are_those_of_ethtool(there: NicState, text: str) -> None:
    lines = re.findall(r"^\s*(\S+): (on|off)( \[fixed\])?(?: \[requested (on|off)\])?$", text, re.MULTILINE)
    states = {name: state for name, state, _, _ in lines}
    assert there.offloads == {short: states[name] for short, name in OFFLOADS.items()}
    assert there.features is not None and there.wanted_features is not None
    known = [line for line in lines if line[0] in there.features]
    assert len(known) > 30
    assert {name: "on" if there.features[name] else "off" for name, _, _, _ in known} == {line[0]: line[1] for line in known}
    wanted = {name: (requested or state) == "on" for name, state, fixed, requested in known if not fixed}
    assert {name: asked for name, asked in there.wanted_features.items() if name in states} == wanted


def driver_is_that_of_ethtool(there: NicState, host: AgentHost) -> None:
    about = dict(re.findall(r"^(\S+): *(.*)$", printed(host, "ethtool", "-i", "eth0"), re.MULTILINE))
    found = {"driver": there.driver, "firmware-version": there.firmware, "bus-info": there.bus}
    assert found == {name: about[name] or None for name in found}
    shown = printed(host, "ethtool", "-c", "eth0")
    values = dict(re.findall(r"^(rx-usecs|tx-usecs):\s+(\S+)", shown, re.MULTILINE))
    for pair in re.findall(r"^Adaptive RX: (\S+)  TX: (\S+)", shown, re.MULTILINE):
        values |= zip(("adaptive-rx", "adaptive-tx"), pair, strict=True)
    as_number = {"n/a": "0", "off": "0", "on": "1"}
    assert (there.coalescing or {}) == {name: int(as_number.get(value, value)) for name, value in values.items()}
    queues = re.search(r"Current.*^Combined:\s+(\d+)", printed(host, "ethtool", "-l", "eth0"), re.MULTILINE | re.DOTALL)
    assert there.queues == (int(queues[1]) if queues else None)


def network_is_that_of_ip_and_tc(there: NicState, host: AgentHost) -> None:
    (shown,) = json.loads(printed(host, "ip", "-j", "addr", "show", "dev", "eth0"))
    assert (there.mac, there.mtu) == (shown["address"], shown["mtu"])
    assert (there.up, there.carrier) == ("UP" in shown["flags"], "LOWER_UP" in shown["flags"])
    assert there.addresses == tuple(f"{each['local']}/{each['prefixlen']}" for each in shown["addr_info"])
    qdiscs = json.loads(printed(host, "tc", "-j", "qdisc", "show", "dev", "eth0"))
    assert [there.qdisc] == [each["kind"] for each in qdiscs if each.get("root")]
    routes = printed(host, "ip", "route", "show", "dev", "eth0").splitlines()
    assert len(routes) == len(there.routes) > 0
    for line, route in zip(routes, there.routes, strict=True):
        window = re.search(r"\binitcwnd (\d+)", line)
        assert route.initial_window == (int(window[1]) if window else 10)
        assert route.quickack == ("quickack 1" in line)
