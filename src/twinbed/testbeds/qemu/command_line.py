"""QEMU's argument list for one guest. Pure: paths and settings in, arguments out.

The guest boots the image's kernel and initial RAM file system directly. Its root is the image's disk, read-only and shared by
all guests through this machine's page cache, below a RAM file system. Its agent talks over a virtio-serial port, its console
goes to a file, and its NICs are joined to taps.
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
"""``panic=-1`` with ``-no-reboot`` ends QEMU when the kernel panics. ``lsm`` leaves out the security modules that check each
packet or file: Debian's kernel knows no ``selinux=0``, and with ``apparmor=0`` alone it starts SELinux and TOMOYO instead."""
_LINK_AT_ONCE = {"e1000": ",autonegotiation=off"}
"""Otherwise QEMU's e1000 negotiates its link for half a second; Linux's driver finds no link and tries again after 2 s."""
_FIRST_NIC_SLOT = 16
EMULATED_CPU = "Nehalem,+rdrand"
EMULATED_ARGUMENTS = (
    "tsc=reliable no_timer_check mitigations=off nokaslr random.trust_cpu=on cryptomgr.notests raid=noautodetect"
    " rcupdate.rcu_expedited=1 nowatchdog rodata=off tsc_early_khz={tsc_khz}"
)
"""These options halve the boot time of an emulated CPU; the work that they save makes it no more like a real one. Without
``rodata=off`` the kernel walks through all its page tables at the end of its boot.

An emulated CPU's clock counts with this machine's time stamp counter. Guests that measured its frequency at boot were wrong by
up to 250 times on a busy machine, in 5 of 112 boots; so they are given it. Their own later measurement may move it by 1 %."""


_OWN = "opt/twinbed/told"
"""The entry of QEMU's firmware configuration with a resumed guest's name and key. It is not part of the saved state."""
_WARM = "ip,ethtool,tc"
"""Programs that every guest runs first, so that saved guests have them in memory."""
_MEMORY = "memory0"


@dataclass(frozen=True, slots=True)
class Sockets:
    """Paths of one guest's sockets and console on this machine."""

    agent: Path
    monitor: Path
    console: Path


@dataclass(frozen=True, slots=True)
class Kept:
    """The file that is a guest's memory. A guest that is to be saved writes into it. A guest that ``resumes`` maps it as a
    private copy and shares unchanged pages with the other guests."""

    memory: Path
    resumes: bool
    macs: Sequence[str]
    """Hardware addresses of the NICs, the same at save and resume since some NICs hold them in read-only registers. A resumed
    guest then sets its own."""


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
    """Return the argument list.

    Give the frequency of this machine's time stamp counter, the greeting of the guest's agent (``key``), and as root the id
    that QEMU takes once it has opened its files (``user``). Give the memory of a guest to save or resume as ``kept``.

    A guest that is to be saved waits until somebody connects to its agent's port. NICs are eth0, eth1 in the order given, on
    PCI slots from 16 on, above all other devices. A guest that only has to boot needs none."""
    hardware, elevated = accelerator == "kvm", "deny" if user is None else "allow"
    arguments = KERNEL_ARGUMENTS if hardware else f"{KERNEL_ARGUMENTS} {EMULATED_ARGUMENTS.format(tsc_khz=tsc_khz)}"
    saved = kept is not None and not kept.resumes
    own = {"host": name, "key": key}
    for_guest = {"port": AGENT_PORT, **(own if kept is None else {"told": _OWN, "warm": _WARM})}
    if saved and nics and not NIC_MODELS[settings.nic].keeps_address_while_up:
        for_guest["up"] = ",".join(nic.device for nic in nics)
    for_guest["modules"] = ",".join(_modules(settings) if nics else ())
    macs = [nic.mac for nic in nics] if kept is None else kept.macs
    boots = kept is None or not kept.resumes
    return (
        *(PROGRAM, "-name", name, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        # As libvirt runs it: whoever breaks out of a guest can start nothing and gains no privilege.
        *("-sandbox", f"on,obsolete=deny,elevateprivileges={elevated},spawn=deny,resourcecontrol=deny"),
        *(() if user is None else ("-runas", f"{user}:{user}")),
        # q35 boots faster than pc: its interrupts need no ACPI links. Nehalem has no instructions that TCG emulates slowly.
        *("-machine", f"{settings.machine}{'' if kept is None else f',memory-backend={_MEMORY}'}"),
        *("-accel", "kvm" if hardware else "tcg,thread=multi"),
        *("-cpu", settings.cpu or ("host" if hardware else EMULATED_CPU)),
        *("-smp", str(settings.vcpus), "-m", f"{settings.megabytes()}M"),
        *(() if kept is None else _kept(kept, settings, own)),
        *(("-kernel", str(image.kernel), "-initrd", str(image.initramfs)) if boots else ("-incoming", "defer")),
        *(("-append", f"{arguments} {_words(for_guest)}") if boots else ()),
        *("-drive", f"file={_value(image.disk)},format=raw,if=none,id=disk0,readonly=on,file.locking=off"),
        *("-device", "virtio-blk-pci,drive=disk0"),
        # The monitor comes first: once the agent's socket is connected, the monitor's exists.
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
    return ("-object", file, "-fw_cfg", f"name={_OWN},string={_words(own)}", "-device", "vmgenid,guid=auto")


def _words(for_guest: Mapping[str, str]) -> str:
    return " ".join(f"twinbed.{name}={value}" for name, value in for_guest.items())


def _modules(settings: QemuSettings) -> tuple[str, ...]:
    """List the optional modules that the guest loads; an emulated CPU needs time for each."""
    model = NIC_MODELS[settings.nic]
    return tuple(module_name(name) for name in (model.driver, *model.other_modules))


def _value(path: Path) -> str:
    """Escape a path among options separated by commas: a comma in a value is doubled (qemu-system-x86_64(1))."""
    return str(path).replace(",", ",,")


def device_id(number: int) -> str:
    """Return QEMU's name for a guest's NIC."""
    return f"nic{number}"


def _nic(number: int, nic: Nic, mac: str, settings: QemuSettings, vhost: bool) -> tuple[str, ...]:
    tap = f"tap,id=net{number},ifname={nic.port},script=no,downscript=no"
    options = f"netdev=net{number},mac={mac},addr={_FIRST_NIC_SLOT + number:#x},romfile={_LINK_AT_ONCE.get(settings.nic, '')}"
    if settings.queues > 1:
        tap += f",queues={settings.queues}"
        # One interrupt per queue and direction, one for control, one for changes of the configuration.
        options += f",mq=on,vectors={2 * settings.queues + 2}"
    if vhost:
        tap += ",vhost=on"
    if settings.coalescing is not None and settings.nic in DEVICE_COALESCING:
        options += f",{DEVICE_COALESCING[settings.nic]}={settings.coalescing}"
    options += "".join(f",{feature}={value}" for feature, value in settings.features().items())
    return "-netdev", tap, "-device", f"{settings.nic},id={device_id(number)},{options}"
