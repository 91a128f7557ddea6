"""Every NIC model boots, the guest's kernel drives it with the driver for it, and TCP passes through it both ways; one that
this machine's QEMU does not have is refused by name before anything runs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from draws import SOAKING
from twinbed.contracts.check import Check
from twinbed.contracts.site import Site
from twinbed.hosts.error import HostError
from twinbed.model.nic import NIC_MODELS
from twinbed.model.topology import Link, Topology
from twinbed.registry import PLUGINS
from twinbed.testbeds.qemu import qemu
from twinbed.testbeds.qemu.settings import QemuSettings

DRIVERS = {
    "e1000": "e1000",
    "e1000e": "e1000e",
    "igb": "igb",
    "virtio-net-pci": "virtio_net",
    "vmxnet3": "vmxnet3",
    "rtl8139": "8139cp",
    "pcnet": "pcnet32",
    "ne2k_pci": "ne2k-pci",
}
"""The names by which Linux 6.1 registers the drivers of these cards (its drivers/net)."""
SENT_BYTES = 2_000_000


def test_all_models_are_tried() -> None:
    assert set(NIC_MODELS) == set(DRIVERS)


def test_a_model_that_qemu_does_not_have_is_refused_by_name() -> None:
    for nic in DRIVERS:
        if not (had := check_of(nic)).works:
            assert had.required and had.found.endswith("lacks it") and "virtio-net-pci" in had.mend


def check_of(nic: str) -> Check:
    (had,) = [check for check in qemu.check(QemuSettings.model_validate({"nic": nic})) if check.what == f"NIC {nic}"]
    return had


NAMES = [*DRIVERS]
PAIRS = [*zip(NAMES[::2], [*NAMES[1::2], NAMES[0]], strict=False)]
BEDS = [
    *(("snapshot", *pair) for pair in PAIRS),
    # A guest that is saved has booted with its card: `make soak` alone boots a fresh guest with each.
    *(("fresh", *pair) for pair in (PAIRS if SOAKING else [("e1000", "virtio-net-pci")])),
]


@pytest.mark.parametrize(("boot", "one", "other"), BEDS)
def test_nics(boot: str, one: str, other: str, site: Callable[..., Site], leaves_nothing: None) -> None:
    """Two models a bed, as a guest takes seconds to boot; two of the one where QEMU does not have the other. A guest that
    resumes gives its NIC another address than the one it was saved with, and must still get what is sent to it."""
    there = [nic for nic in (one, other) if check_of(nic).works]
    nics = {"client": there[0], "server": there[-1]}
    mixed = PLUGINS.drivers["mixed"]
    params = mixed.params(**{end: {"driver": "qemu", "nic": nic, "boot": boot} for end, nic in nics.items()})
    with mixed.up(params, Topology(), site()) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        client, server = bed.hosts["client"], bed.hosts["server"]
        for host in (client, server):
            assert f"driver: {DRIVERS[nics[host.name]]}\n" in host.run(["ethtool", "-i", "eth0"]).text
            assert bed.passport[host.name]["NIC model"] == nics[host.name]
        for direction in ([], ["--reverse"]):
            listener = server.start(["iperf3", "-s", "-1", "-p", "5000"])
            server.listening(5000, 30.0)
            command = ["iperf3", "-c", bed.addresses["server"], "-p", "5000", "-n", str(SENT_BYTES), "-J", *direction]
            report = json.loads(client.run(command, limit_s=120.0).stdout)
            assert "error" not in report, report["error"]
            end = report["end"]
            assert end["sum_sent"]["bytes"] >= SENT_BYTES
            # iperf3's receiver leaves unread what is in buffers when the sender is done: much of it in a slow guest.
            assert end["sum_received"]["bytes"] > SENT_BYTES / 10
            assert listener.wait(30.0).code == 0


def test_a_card_that_carries_no_frames_so_large(site: Callable[..., Site], leaves_nothing: None) -> None:
    """A card of 1999, made for Ethernet's 1500 bytes."""
    mixed, topology = PLUGINS.drivers["mixed"], Topology(link=Link(mtu=9000))
    params = mixed.params(client={"driver": "container"}, server={"driver": "qemu", "nic": "rtl8139"})
    with (
        pytest.raises(HostError, match="this NIC cannot carry mtu 9000; choose a smaller mtu or another nic"),
        mixed.up(params, topology, site()),
    ):
        pass
