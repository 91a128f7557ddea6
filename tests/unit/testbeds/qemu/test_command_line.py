"""QEMU's argument lists, whole, as qemu-system-x86_64(1) of QEMU 7.2 takes them; and what is asked of KVM."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from twinbed.image import Image
from twinbed.links.layout import Nic, layout
from twinbed.model.topology import Topology
from twinbed.testbeds.qemu import abilities, driver, qemu
from twinbed.testbeds.qemu.abilities import Proof, prove
from twinbed.testbeds.qemu.command_line import Kept, Sockets, command_line
from twinbed.testbeds.qemu.settings import QemuSettings

IMAGE = Image("0", Path("/i/root"), Path("/i/disk"), "erofs", Path("/i/vmlinux"), Path("/i/initramfs"), "6.1", {})
SOCKETS = Sockets(Path("/l/a.sock"), Path("/l/a.qmp"), Path("/r/console.txt"))
HEAD = [
    "qemu-system-x86_64",
    "-name",
    "client",
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-no-reboot",
    "-sandbox",
    "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
    "-machine",
    "q35",
]
KERNEL = ["-kernel", "/i/vmlinux", "-initrd", "/i/initramfs", "-append"]
QUIET = "console=ttyS0 quiet panic=-1 audit=0 lsm=landlock,lockdown,yama,integrity,bpf"
SPARED = (
    "tsc=reliable no_timer_check mitigations=off nokaslr random.trust_cpu=on cryptomgr.notests raid=noautodetect"
    " rcupdate.rcu_expedited=1 nowatchdog rodata=off tsc_early_khz=2594906"
)
OWN = "twinbed.port=twinbed.agent twinbed.host=client twinbed.key=k1 twinbed.modules="
DRIVERS = {"virtio-net-pci": "virtio_net", "rtl8139": "8139cp,8139too"}
"""Of the image's drivers, those that a guest loads; of the others each has the name of its card."""
TAIL = [
    "-drive",
    "file=/i/disk,format=raw,if=none,id=disk0,readonly=on,file.locking=off",
    "-device",
    "virtio-blk-pci,drive=disk0",
    "-qmp",
    "unix:/l/a.qmp,server=on,wait=off",
    "-chardev",
    "socket,id=agent,path=/l/a.sock,server=off",
    "-device",
    "virtio-serial-pci",
    "-device",
    "virtserialport,id=agent0,chardev=agent,name=twinbed.agent",
    "-serial",
    "file:/r/console.txt",
]
TCG = ["-accel", "tcg,thread=multi", "-cpu", "Nehalem,+rdrand"]
KVM = ["-accel", "kvm", "-cpu", "host"]


NIC = layout(Topology()).nics["client"]
ROUTER = layout(Topology(routers=1)).nics["router"]


def planned(settings: QemuSettings, chosen: str, nics: Sequence[Nic] = NIC) -> list[str]:
    return list(command_line("client", settings, chosen, IMAGE, SOCKETS, nics, tsc_khz=2_594_906, key="k1"))


@pytest.mark.parametrize("nic", ["e1000", "e1000e", "virtio-net-pci", "vmxnet3", "rtl8139"])
@pytest.mark.parametrize("chosen", ["kvm", "tcg"])
def test_every_nic_and_accelerator(nic: str, chosen: str) -> None:
    arguments = f"{QUIET} {OWN}" if chosen == "kvm" else f"{QUIET} {SPARED} {OWN}"
    assert planned(QemuSettings(nic=nic), chosen) == [  # type: ignore[arg-type]
        *HEAD,
        *(KVM if chosen == "kvm" else TCG),
        *("-smp", "1", "-m", "192M"),
        *KERNEL,
        arguments + DRIVERS.get(nic, nic),
        *TAIL,
        *("-netdev", "tap,id=net0,ifname=p.client,script=no,downscript=no"),
        "-device",
        f"{nic},id=nic0,netdev=net0,mac=02:00:0a:4d:00:01,addr=0x10,romfile={',autonegotiation=off' if nic == 'e1000' else ''}",
    ]


def test_processors_and_memory() -> None:
    line = planned(QemuSettings(vcpus=3, memory="1000000kB"), "tcg")  # type: ignore[arg-type]
    at = line.index("-smp")
    # 10^9 bytes are 953.67 MiB: never less than was asked for.
    assert line[at : at + 4] == ["-smp", "3", "-m", "954M"]


def test_a_router_has_two_nics_in_order() -> None:
    assert planned(QemuSettings(), "kvm", ROUTER)[-8:] == [
        *("-netdev", "tap,id=net0,ifname=p.router,script=no,downscript=no"),
        *("-device", "virtio-net-pci,id=nic0,netdev=net0,mac=02:00:0a:4e:00:02,addr=0x10,romfile="),
        *("-netdev", "tap,id=net1,ifname=p.router.1,script=no,downscript=no"),
        *("-device", "virtio-net-pci,id=nic1,netdev=net1,mac=02:00:0a:4e:01:01,addr=0x11,romfile="),
    ]


MEMORY = "memory-backend-file,id=memory0,size=192M,mem-path=/c/memory"
PLACEHOLDER = "02:00:00:00:00:01"


def kept(resumes: bool, **settings: str) -> list[str]:
    own = Kept(Path("/c/memory"), resumes=resumes, macs=[PLACEHOLDER])
    line = command_line(
        "client", QemuSettings.model_validate(settings), "kvm", IMAGE, SOCKETS, NIC, tsc_khz=2_594_906, key="k1", kept=own
    )
    return list(line)


def following(line: Sequence[str], word: str) -> list[str]:
    return [value for option, value in pairwise(line) if option == word]


def test_a_guest_that_is_to_be_saved_is_told_nothing_of_its_own() -> None:
    line = kept(resumes=False)
    assert following(line, "-object") == [f"{MEMORY},share=on"]
    assert following(line, "-machine") == ["q35,memory-backend=memory0"]
    assert following(line, "-append") == [
        f"{QUIET} twinbed.port=twinbed.agent twinbed.told=opt/twinbed/told twinbed.warm=ip,ethtool,tc"
        " twinbed.up=eth0 twinbed.modules=virtio_net"
    ]
    assert "socket,id=agent,path=/l/a.sock,server=on,wait=off" in following(line, "-chardev")
    assert f"virtio-net-pci,id=nic0,netdev=net0,mac={PLACEHOLDER},addr=0x10,romfile=" in line


def test_a_nic_whose_driver_refuses_another_address_while_it_is_up_is_saved_down() -> None:
    (line,) = following(kept(resumes=False, nic="pcnet"), "-append")
    assert line.endswith(" twinbed.warm=ip,ethtool,tc twinbed.modules=pcnet32")


def test_a_guest_that_resumes_has_the_same_devices_a_copy_of_the_memory_and_its_own_name_and_key() -> None:
    saved, resumed = kept(resumes=False), kept(resumes=True)
    assert following(resumed, "-object") == [f"{MEMORY},share=off"]
    assert following(resumed, "-incoming") == ["defer"]
    assert "-kernel" not in resumed and "-append" not in resumed
    assert following(resumed, "-fw_cfg") == ["name=opt/twinbed/told,string=twinbed.host=client twinbed.key=k1"]
    assert following(resumed, "-device") == following(saved, "-device")
    assert "socket,id=agent,path=/l/a.sock,server=off" in following(resumed, "-chardev")


def test_a_proof_has_no_nic() -> None:
    line = planned(QemuSettings(), "kvm", nics=())
    assert line[-len(TAIL) :] == TAIL
    assert "-netdev" not in line
    assert line[line.index("-append") + 1].endswith(" twinbed.modules="), "and loads no driver of any"


@pytest.mark.parametrize(
    "proof", [Proof(True, "a guest booted with KVM in 0.8 s"), Proof(False, "KVM cannot boot a guest on this machine: x")]
)
def test_kvm_that_is_asked_for_is_proved_before_anything_is_run(proof: Proof, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "prove", lambda *_: proof)
    monkeypatch.setattr(driver, "find", lambda: IMAGE)
    monkeypatch.setattr(driver, "probe_path", lambda: Path("/probe"))
    found = {check.what: check for check in qemu.check(QemuSettings(accelerator="kvm"))}["KVM"]
    assert (found.works, found.found, found.required) == (proof.kvm, proof.found, True)
    assert "accelerator: auto" in found.mend


@pytest.mark.parametrize("chosen", ["auto", "tcg"])
def test_kvm_that_is_not_asked_for_is_not_tried(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "prove", lambda *_: pytest.fail("tried"))
    assert "KVM" not in {check.what for check in qemu.check(QemuSettings(accelerator=chosen))}  # type: ignore[arg-type]


def test_kvm_cannot_be_tried_without_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "prove", lambda *_: pytest.fail("tried"))
    monkeypatch.setattr(driver, "find", lambda: None)
    assert "KVM" not in {check.what for check in qemu.check(QemuSettings(accelerator="kvm"))}


def test_qemu_and_taps_that_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(driver.shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(driver, "_TUN", str(tmp_path / "tun"))
    monkeypatch.setattr(driver.os, "geteuid", lambda: 1000)
    program, taps = qemu.check(QemuSettings())
    assert (program.works, program.mend) == (False, "sudo apt-get install qemu-system-x86")
    assert (taps.works, taps.mend) == (False, "sudo modprobe tun")
    assert taps.found == f"{tmp_path}/tun: No such file or directory"


def test_a_proof_is_remembered_for_its_qemu_and_what_can_be_mended_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried: list[int] = []

    def attempt(*_: object) -> Proof:
        tried.append(1)
        return Proof(True, "booted")

    kvm, program = tmp_path / "kvm", tmp_path / "qemu"
    monkeypatch.setattr(abilities, "cache_root", lambda: tmp_path)
    monkeypatch.setattr(abilities, "_KVM", kvm)
    monkeypatch.setattr(abilities, "_try", attempt)
    monkeypatch.setattr(abilities.shutil, "which", lambda _: str(program) if program.exists() else None)
    assert prove(IMAGE, tmp_path) == Proof(False, f"{kvm} does not exist")
    kvm.touch()
    assert prove(IMAGE, tmp_path) == Proof(False, "qemu-system-x86_64 is not installed")
    program.write_text("7.2")
    assert [prove(IMAGE, tmp_path) for _ in range(3)] == [Proof(True, "booted")] * 3
    assert len(tried) == 1
    other = tmp_path / "other"
    other.write_text("8.0")
    monkeypatch.setattr(abilities.shutil, "which", lambda _: str(other))
    prove(IMAGE, tmp_path)
    assert len(tried) == 2


def test_with_a_user_of_its_own_qemu_gives_up_root() -> None:
    """The filter is there before QEMU does so, and lets it; nobody with no capability wins none by the same calls."""
    line = command_line("client", QemuSettings(), "kvm", IMAGE, SOCKETS, NIC, tsc_khz=2_594_906, key="k1", user=600_000)
    at = line.index("-sandbox")
    assert line[at + 1 : at + 4] == (
        "on,obsolete=deny,elevateprivileges=allow,spawn=deny,resourcecontrol=deny",
        *("-runas", "600000:600000"),
    )
