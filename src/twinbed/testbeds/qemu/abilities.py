"""What the QEMU of this machine can do, asked of itself: NIC models and CPU models, each with the reason and the mend."""

from __future__ import annotations

import functools
import os
import re
import shutil
from pathlib import Path

from twinbed.contracts.check import Check
from twinbed.hosts import packages
from twinbed.hosts.process import ProcessFailed, run
from twinbed.model.nic import NIC_MODELS
from twinbed.testbeds.qemu import vhost
from twinbed.testbeds.qemu.command_line import PROGRAM
from twinbed.testbeds.qemu.settings import QemuSettings


def nic(model: str) -> Check:
    """Whether QEMU has this model of a NIC."""
    what = f"NIC {model}"
    try:
        there = f'name "{model}"' in _output("-device", "help")
    except ProcessFailed as error:
        return Check(what, False, str(error).replace("\n", " "), packages.mend(packages.of_programs(PROGRAM)))
    if there:
        return Check(what, True, f"`{PROGRAM} -device help` lists it")
    first = NIC_MODELS[model].since
    since = f"QEMU {first} or newer has it" if first else "a QEMU that was built with it"
    return Check(what, False, f"{_version()} has none", f"{since}; here there are {', '.join(nics())}")


def nics() -> list[str]:
    """The NIC models that can be had here, of those that a study can ask for."""
    listed = _output("-device", "help")
    return [model for model in NIC_MODELS if f'name "{model}"' in listed]


def asked(settings: QemuSettings) -> list[Check]:
    """What these settings need of QEMU and of this machine."""
    checks = [nic(settings.nic)]
    if settings.cpu is not None:
        checks.append(_cpu(settings))
    if settings.vhost == "on":
        works, reason = vhost.vhost()
        sudo = "" if os.geteuid() == 0 else "sudo "
        mend = f"{sudo}chmod 666 {vhost.DEVICE}" if vhost.DEVICE.exists() else f"{sudo}modprobe vhost_net, or vhost: auto"
        checks.append(Check("vhost", works, reason, mend))
    return checks


def _cpu(settings: QemuSettings) -> Check:
    """QEMU refuses a CPU that it does not know before it does anything else."""
    what = f"CPU {settings.cpu}"
    accelerator = "kvm" if settings.accelerator == "kvm" else "tcg"
    command = ("-machine", f"{settings.machine},accel={accelerator}", "-cpu", f"{settings.cpu}", "-display", "none")
    try:
        run([PROGRAM, *command, "-nodefaults", "-S", "-monitor", "stdio"], stdin=b"quit\n", limit_s=10)
    except ProcessFailed as error:
        return Check(what, False, str(error).splitlines()[-1].strip(), f"one of `{PROGRAM} -cpu help`")
    return Check(what, True, f"{PROGRAM} starts with it")


def _version() -> str:
    match = re.search(r"version (\S+)", _output("--version"))
    return f"QEMU {match[1]}" if match else "this QEMU"


def _output(*arguments: str) -> str:
    program = shutil.which(PROGRAM)
    if program is None:
        raise ProcessFailed([PROGRAM], "no such program")
    return _asked_once(program, Path(program).stat().st_mtime_ns, arguments)


@functools.cache
def _asked_once(program: str, _changed_ns: int, arguments: tuple[str, ...]) -> str:
    """A study with many testbeds asks again and again."""
    return run([program, *arguments], limit_s=10).text
