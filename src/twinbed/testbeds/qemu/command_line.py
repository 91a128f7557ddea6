"""QEMU's argument list for one guest.  Pure: paths and settings in, arguments out.

The guest boots the image's kernel and initial RAM file system directly; its root is the image's disk, read-only and shared
by all guests through this machine's page cache, with a RAM file system on top.  Its agent talks over a virtio-serial port,
its console goes to a file, and its NICs are joined to taps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.image import Image
from twinbed.image.modules import module_name
from twinbed.links.layout import Nic
from twinbed.model.nic import NIC_MODELS
from twinbed.testbeds.qemu.settings import DEVICE_COALESCING, QemuSettings

PROGRAM = "qemu-system-x86_64"
AGENT_PORT = "twinbed.agent"
KERNEL_ARGUMENTS = "console=ttyS0 quiet panic=-1 audit=0 lsm=landlock,lockdown,yama,integrity,bpf"
"""``panic=-1`` with ``-no-reboot`` ends QEMU when the kernel panics. ``lsm`` leaves out the security modules that look at each
packet or file: Debian's kernel knows no ``selinux=0``, and with ``apparmor=0`` alone starts SELinux and TOMOYO instead."""
_LINK_AT_ONCE = {"e1000": ",autonegotiation=off"}
"""QEMU's e1000 otherwise negotiates its link for half a second, and Linux's driver, which finds none, looks again after two."""
_FIRST_NIC_SLOT = 16
EMULATED_CPU = "Nehalem,+rdrand"
EMULATED_ARGUMENTS = (
    "tsc=reliable no_timer_check mitigations=off nokaslr random.trust_cpu=on cryptomgr.notests raid=noautodetect"
    " rcupdate.rcu_expedited=1 nowatchdog rodata=off tsc_early_khz={tsc_khz}"
)
"""These spare an emulated CPU work that makes it no more like a real one, and halve its boots. Without ``rodata=off`` the
kernel ends its boot with a walk through all of its page tables.

An emulated CPU's clock counts with this machine's time stamp counter. Guests that found out at boot how fast that is
were wrong by factors of up to 250 on a busy machine, in 5 boots of 112; so they are told. What they measure later may move it
by 1 %."""


_TOLD = "opt/twinbed/told"
"""What a resumed guest reads its name and key from: QEMU's own text, which is no part of what was saved."""
_WARM = "ip,ethtool,tc"
"""What every guest runs first: saved guests have these programs in memory."""
_MEMORY = "memory0"


@dataclass(frozen=True, slots=True)
class Sockets:
    """Paths of one guest's sockets and console on this machine."""

    agent: Path
    monitor: Path
    console: Path


@dataclass(frozen=True, slots=True)
class Kept:
    """The file that is a guest's memory. A guest that is to be saved writes into it. A guest that ``resumes`` maps it as its
    own copy: what it writes is its own alone, and pages that it leaves as they are belong to all."""

    memory: Path
    resumes: bool
    macs: Sequence[str]
    """The hardware addresses that its NICs are made with, which some tell in read-only registers: the same when it is saved
    and resumed. A guest then gives its NICs their own."""


def command_line(
    name: str,
    settings: QemuSettings,
    accelerator: str,
    image: Image,
    sockets: Sockets,
    nics: Sequence[Nic],
    vhost: bool = False,
    *,
    tsc_khz: int,
    key: str,
    user: int | None = None,
    kept: Kept | None = None,
) -> tuple[str, ...]:
    """``tsc_khz``: how often this machine's time stamp counter counts in a millisecond. ``key``: what the guest's agent says.
    ``user``: the id of who QEMU becomes once it has opened what it needs, as root alone can. ``kept``: where the guest is
    saved or resumed.

    The agent's port of a guest that is to be saved has nobody on the other side: the guest waits for somebody to come.

    A guest may be without NICs, as for a proof that it boots. They are eth0, eth1 in the order given: on PCI slots from 16 on,
    above all others and in turn."""
    hardware, elevated = accelerator == "kvm", "deny" if user is None else "allow"
    arguments = KERNEL_ARGUMENTS if hardware else f"{KERNEL_ARGUMENTS} {EMULATED_ARGUMENTS.format(tsc_khz=tsc_khz)}"
    saved = kept is not None and not kept.resumes
    own = {"host": name, "key": key}
    told = {"port": AGENT_PORT, **(own if kept is None else {"told": _TOLD, "warm": _WARM})}
    if saved and nics and not NIC_MODELS[settings.nic].keeps_address_while_up:
        told["up"] = ",".join(nic.device for nic in nics)
    told["modules"] = ",".join(_modules(settings) if nics else ())
    macs = [nic.mac for nic in nics] if kept is None else kept.macs
    boots = kept is None or not kept.resumes
    return (
        *(PROGRAM, "-name", name, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        # As libvirt runs it: who breaks out of a guest starts nothing and wins no privilege.
        *("-sandbox", f"on,obsolete=deny,elevateprivileges={elevated},spawn=deny,resourcecontrol=deny"),
        *(() if user is None else ("-runas", f"{user}:{user}")),
        # q35 boots quicker than pc: its interrupts need no ACPI links. Nehalem spares TCG what it emulates slowly.
        *("-machine", f"{settings.machine}{'' if kept is None else f',memory-backend={_MEMORY}'}"),
        *("-accel", "kvm" if hardware else "tcg,thread=multi"),
        *("-cpu", settings.cpu or ("host" if hardware else EMULATED_CPU)),
        *("-smp", str(settings.vcpus), "-m", f"{settings.megabytes()}M"),
        *(() if kept is None else _kept(kept, settings, own)),
        *(("-kernel", str(image.kernel), "-initrd", str(image.initramfs)) if boots else ("-incoming", "defer")),
        *(("-append", f"{arguments} {_words(told)}") if boots else ()),
        *("-drive", f"file={_value(image.disk)},format=raw,if=none,id=disk0,readonly=on,file.locking=off"),
        *("-device", "virtio-blk-pci,drive=disk0"),
        # The monitor comes first: once the agent's socket is connected, the monitor's is there.
        *("-qmp", f"unix:{_value(sockets.monitor)},server=on,wait=off"),
        *("-chardev", f"socket,id=agent,path={_value(sockets.agent)},server={'on,wait=off' if saved else 'off'}"),
        *("-device", "virtio-serial-pci", "-device", f"virtserialport,id=agent0,chardev=agent,name={AGENT_PORT}"),
        *("-serial", f"file:{sockets.console}"),
        *(word for number, nic in enumerate(nics) for word in _nic(number, nic, macs[number], settings, vhost)),
    )


def _kept(kept: Kept, settings: QemuSettings, own: Mapping[str, str]) -> tuple[str, ...]:
    share = "off" if kept.resumes else "on"
    file = f"memory-backend-file,id={_MEMORY},size={settings.megabytes()}M,mem-path={_value(kept.memory)},share={share}"
    # A kernel with a driver for vmgenid seeds its random numbers again as soon as it is resumed.
    return ("-object", file, "-fw_cfg", f"name={_TOLD},string={_words(own)}", "-device", "vmgenid,guid=auto")


def _words(told: Mapping[str, str]) -> str:
    return " ".join(f"twinbed.{what}={value}" for what, value in told.items())


def _modules(settings: QemuSettings) -> tuple[str, ...]:
    """Which of the image's optional modules the guest loads: each takes an emulated CPU time."""
    model = NIC_MODELS[settings.nic]
    return tuple(module_name(name) for name in (model.driver, *model.other_modules))


def _value(path: Path) -> str:
    """A path among options that commas part: "commas in a value are doubled" (qemu-system-x86_64(1))."""
    return str(path).replace(",", ",,")


def device_id(number: int) -> str:
    """QEMU's name of a guest's NIC."""
    return f"nic{number}"


def _nic(number: int, nic: Nic, mac: str, settings: QemuSettings, vhost: bool) -> tuple[str, ...]:
    tap = f"tap,id=net{number},ifname={nic.port},script=no,downscript=no"
    options = f"netdev=net{number},mac={mac},addr={_FIRST_NIC_SLOT + number:#x},romfile={_LINK_AT_ONCE.get(settings.nic, '')}"
    if settings.queues > 1:
        tap += f",queues={settings.queues}"
        # An interrupt for each queue in each direction, one for control, one for changes of the configuration.
        options += f",mq=on,vectors={2 * settings.queues + 2}"
    if vhost:
        tap += ",vhost=on"
    if settings.coalescing is not None and settings.nic in DEVICE_COALESCING:
        options += f",{DEVICE_COALESCING[settings.nic]}={settings.coalescing}"
    options += "".join(f",{feature}={value}" for feature, value in settings.features().items())
    return "-netdev", tap, "-device", f"{settings.nic},id={device_id(number)},{options}"
