"""What may be asked of guests, how threads share CPUs, and what guests and their kernels say, read."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from twinbed.hosts import passport
from twinbed.hosts.passport import cores_first
from twinbed.image import kernel
from twinbed.testbeds.qemu import abilities
from twinbed.testbeds.qemu.command_line import Sockets, command_line
from twinbed.testbeds.qemu.guest import _panic
from twinbed.testbeds.qemu.read_back import negotiated, shares
from twinbed.testbeds.qemu.settings import QemuSettings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"nic": "e1000", "queues": 2, "vcpus": 2}, "queues: only virtio-net-pci has these settings, not e1000"),
        ({"nic": "rtl8139", "vhost": "on"}, "vhost: only virtio-net-pci"),
        ({"nic": "vmxnet3", "nic_features": "csum=off"}, "nic_features: only virtio-net-pci"),
        ({"queues": 3, "vcpus": 2}, "3 queues need 3 vcpus, not 2"),
        ({"nic_features": "csum=perhaps"}, "nic_features takes NAME=on or NAME=off"),
        ({"nic_features": "speed=on"}, "names are csum, guest_csum"),
        ({"nic_features": "csum=on,csum=off"}, "each once"),
        ({"nic_features": ""}, "nic_features takes"),
        ({"kernel": "vmlinuz"}, "linux-image"),
        ({"cpu": "Haswell -S"}, "pattern"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said.replace("(", r"\(")):
        QemuSettings.model_validate(settings)


def test_features_and_flags_are_read() -> None:
    settings = QemuSettings(nic_features="mrg_rxbuf=off, csum=on", cpu="Haswell,-avx2,+rdrand")
    assert settings.features() == {"mrg_rxbuf": "off", "csum": "on"}
    assert settings.cpu_flags() == {"avx2": False, "rdrand": True}
    assert QemuSettings(nic="e1000").features() == {}


def test_queues_vhost_and_features_reach_qemu() -> None:
    from twinbed.image import Image
    from twinbed.links.layout import layout
    from twinbed.model.topology import Topology

    image = Image("0", Path("/r"), Path("/d"), "erofs", Path("/k"), Path("/i"), "6.1", {})
    sockets = Sockets(Path("/a"), Path("/m"), Path("/c"))
    settings = QemuSettings(vcpus=4, queues=4, nic_features="mrg_rxbuf=off", machine="pc", cpu="Haswell")
    nics = layout(Topology()).nics["client"]
    line = command_line("client", settings, "kvm", image, sockets, nics, True, tsc_khz=2_594_906, key="k1")
    # qemu-system-x86_64(1): -netdev tap,...,queues=,vhost=; an interrupt a queue and direction, and two more.
    assert line[-4:] == (
        "-netdev",
        "tap,id=net0,ifname=p.client,script=no,downscript=no,queues=4,vhost=on",
        "-device",
        "virtio-net-pci,id=nic0,netdev=net0,mac=02:00:0a:4d:00:01,addr=0x10,romfile=,mq=on,vectors=10,mrg_rxbuf=off",
    )
    assert line[line.index("-machine") + 1] == "pc"
    assert line[line.index("-cpu") + 1] == "Haswell"


@pytest.mark.parametrize(
    ("vcpus", "cpus", "each"),
    [
        (1, (3,), [(3,)]),
        (2, (0, 1, 5), [(0,), (1,)]),
        (2, (4,), [(4,), (4,)]),
        (3, (0, 1), [(0, 1), (0, 1), (0, 1)]),
    ],
)
def test_a_vcpu_has_a_cpu_of_its_own_where_there_are_enough(
    vcpus: int, cpus: tuple[int, ...], each: list[tuple[int, ...]]
) -> None:
    assert shares(vcpus, cpus) == each


def test_hosts_share_a_core_last() -> None:
    # Two cores with two threads each, numbered as Linux does on most of Intel's, and pairwise as on some of AMD's.
    assert cores_first([0, 1, 2, 3], {0: (0, 2), 1: (1, 3), 2: (0, 2), 3: (1, 3)}) == (0, 1, 2, 3)
    assert cores_first([0, 1, 2, 3], {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)}) == (0, 2, 1, 3)
    # The first thread of a core may not be ours.
    assert cores_first([1, 2, 3], {1: (0, 1), 2: (2, 3), 3: (2, 3)}) == (1, 2, 3)


def test_cpus_without_topology_are_taken_as_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(passport, "_SIBLINGS", f"{tmp_path}/{{}}")
    monkeypatch.setattr(passport.os, "sched_getaffinity", lambda _: {3, 1})
    assert passport.own_cpus() == (1, 3)


def test_features_by_their_bits() -> None:
    # Bits 0 (csum) and 15 (mrg_rxbuf), Virtual I/O Device (VIRTIO) 1.2, 5.1.3.
    found = negotiated("1" + "0" * 14 + "1" + "0" * 48)
    assert {name for name, value in found.items() if value == "on"} == {"csum", "mrg_rxbuf"}
    with pytest.raises(ValueError, match="must be a row of bits"):
        negotiated("0x8001")


def test_a_nic_that_qemu_does_not_have_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = 'Network devices:\nname "e1000", bus PCI\nname "virtio-net-pci", bus PCI\n'
    monkeypatch.setattr(
        abilities, "_output", lambda *asked: "QEMU emulator version 7.2.22\n" if asked == ("--version",) else listed
    )
    assert abilities.nic("e1000").works
    missing = abilities.nic("igb")
    assert (missing.works, missing.found) == (False, "QEMU 7.2.22 lacks it")
    assert missing.mend == "in the study file, set nic to one of e1000, virtio-net-pci; or install QEMU 8.0 or newer"


def test_vhost_that_is_asked_for_is_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(abilities, "VHOST", tmp_path / "vhost-net")
    found = {check.what: check for check in abilities.asked(QemuSettings(vhost="on"))}["vhost"]
    assert (found.works, found.found) == (False, f"{tmp_path}/vhost-net: No such file or directory")
    (tmp_path / "vhost-net").touch()
    assert {check.what: check.works for check in abilities.asked(QemuSettings(vhost="on"))}["vhost"]
    assert "vhost" not in {check.what for check in abilities.asked(QemuSettings())}


def test_a_cpu_that_qemu_does_not_know_is_refused() -> None:
    asked = abilities.asked(QemuSettings(cpu="Haswell,-avx2"))
    assert [check.works for check in asked] == [True, True]
    (wrong,) = [check for check in abilities.asked(QemuSettings(cpu="Pentium9")) if not check.works]
    assert "Pentium9" in wrong.found


def test_a_meta_package_leads_to_a_kernel() -> None:
    # Debian's package of that name.
    about = "Package: linux-image-6.12-amd64\nDepends: linux-image-6.12.117+deb12-amd64 (= 6.12.117-1~deb12u1)\nSize: 1\n"
    assert kernel.leads_to(about) == "linux-image-6.12.117+deb12-amd64"
    assert kernel.leads_to("Package: linux-image-6.1.0-56-amd64\nDepends: kmod, linux-base (>= 4.3~)\n") is None


def test_last_words_of_a_kernel(tmp_path: Path) -> None:
    console = tmp_path / "console.txt"
    assert _panic(console) is None
    # As Linux 6.1 prints it.
    console.write_text("[    4.2] CPU: 0\r\n[    4.309] Kernel panic - not syncing: sysrq triggered crash\r\n[    4.4] end\n")
    assert _panic(console) == "Kernel panic - not syncing: sysrq triggered crash"
