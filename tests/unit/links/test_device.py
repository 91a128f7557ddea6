"""Devices as `ip -j -d addr show` prints them (iproute2 6.1.0, in a namespace with a bridge, a veth pair and a tap)."""

from __future__ import annotations

import json
import subprocess

import pytest

from twinbed.links import device

REAL = rb"""[{"ifindex":1,"ifname":"lo","flags":["LOOPBACK"],"mtu":65536,"qdisc":"noop","operstate":"DOWN","group":"default",
"txqlen":1000,"link_type":"loopback","address":"00:00:00:00:00:00","broadcast":"00:00:00:00:00:00","promiscuity":0,
"allmulti":0,"min_mtu":0,"max_mtu":0,"num_tx_queues":1,"num_rx_queues":1,"gso_max_size":65536,"gso_max_segs":65535,
"tso_max_size":524280,"tso_max_segs":65535,"gro_max_size":65536,"addr_info":[]},{"ifindex":2,"link":"v0","ifname":"v1",
"flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1500,"qdisc":"noqueue","operstate":"UP","group":"default",
"txqlen":1000,"link_type":"ether","address":"76:1c:6b:57:d5:e9","broadcast":"ff:ff:ff:ff:ff:ff","promiscuity":0,
"allmulti":0,"min_mtu":68,"max_mtu":65535,"linkinfo":{"info_kind":"veth"},"num_tx_queues":2,"num_rx_queues":2,
"gso_max_size":65536,"gso_max_segs":65535,"tso_max_size":524280,"tso_max_segs":65535,"gro_max_size":65536,
"addr_info":[{"family":"inet6","local":"fe80::741c:6bff:fe57:d5e9","prefixlen":64,"scope":"link","tentative":true,
"valid_life_time":4294967295,"preferred_life_time":4294967295}]},{}]"""


def test_what_ip_prints() -> None:
    lo, veth = device.parse(REAL)
    assert lo == device.Device("lo", None, None, 65536, False, False, "00:00:00:00:00:00", (), {})
    addresses = ("fe80::741c:6bff:fe57:d5e9/64",)
    assert veth == device.Device("v1", "veth", None, 1500, True, True, "76:1c:6b:57:d5:e9", addresses, {})


def test_ip_of_this_machine_prints_it_so() -> None:
    plan = (
        "ip link add sw type bridge stp_state 1 mcast_snooping 0 && ip link add v0 mtu 1400 type veth peer name v1 &&"
        " ip tuntap add dev t0 mode tap && ip link set v0 master sw up && ip addr add 10.77.0.1/24 dev v0 &&"
        " ip addr add 10.77.9.1/16 dev v0 && exec ip -j -d addr show"
    )
    said = subprocess.run(["unshare", "-n", "sh", "-c", plan], capture_output=True, check=True).stdout
    found = {each.name: each for each in device.parse(said)}
    assert set(found) >= {"lo", "sw", "v0", "v1", "t0"}
    assert (found["sw"].kind, found["v0"].kind, found["t0"].kind) == ("bridge", "veth", "tun")
    assert (found["sw"].details["stp_state"], found["sw"].details["mcast_snooping"]) == (1, 0)
    assert (found["v0"].master, found["v0"].mtu, found["v0"].up) == ("sw", 1400, True)
    assert [each for each in found["v0"].addresses if "." in each] == ["10.77.0.1/24", "10.77.9.1/16"]
    assert (found["v1"].master, found["v1"].up) == (None, False)
    assert found["v0"].mac == next(each["address"] for each in json.loads(said) if each.get("ifname") == "v0")


def test_no_devices() -> None:
    assert device.parse(b"") == device.parse(b"[]") == device.parse(b"[{}]") == ()


@pytest.mark.parametrize(
    "text", [b"Cannot open netlink socket", b"5", b"null", b"[1]", b'["x"]', b'[{"mtu":1}]', b"\xff", b'"x"']
)
def test_anything_else_is_an_error_that_keeps_the_text(text: bytes) -> None:
    with pytest.raises(ValueError, match="`ip -j -d addr show` did not print devices") as error:
        device.parse(text)
    assert repr(text) in str(error.value)
