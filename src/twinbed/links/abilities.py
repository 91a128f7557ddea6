"""Trials of the switches, trunks, VLANs and queueing disciplines of this machine. Each is made in its own trial lab and read
back, as in a run; nothing is concluded from versions.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from twinbed.contracts.bed import Applied, differences
from twinbed.contracts.check import Check
from twinbed.contracts.place import MACHINE
from twinbed.hosts import packages, scratch
from twinbed.hosts.lab import open_lab
from twinbed.links import delay_line
from twinbed.links.fabric import open_fabric
from twinbed.links.layout import layout
from twinbed.links.openvswitch import PROGRAMS
from twinbed.model.error import TwinbedError
from twinbed.model.topology import Link, Place, Topology

_VLAN = 77
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_USERSPACE = "or, in the study file, switch: openvswitch-netdev"
_OTHERWISE = "leave emulator and emulated_at out (a delay line of twinbed's at the switch), or emulated_at: hosts with guests"
_QDISCS = {
    "HTB": Link(rate=10**9),
    "TBF": Link(rate=10**9, shaper="tbf"),
    "netem": Link(delay=0.01, jitter=0.001, loss=0.01, emulator="netem"),
    "delay line": Link(delay=0.01, jitter=0.001, loss=0.01, emulator="delay-line"),
    "netem or delay line": Link(delay=0.01, jitter=0.001, loss=0.01),
    "pfifo": Link(queue=100),
}
_EMULATORS = {"netem": "netem", "delay-line": "delay line", "auto": "netem or delay line"}
_BRIDGE_MENDS = {
    "none": "modprobe -a bridge veth",
    "plain": "modprobe -a bridge veth",
    "gre": f"modprobe ip_gre; {_USERSPACE}",
    "vxlan": f"modprobe vxlan; {_USERSPACE}",
}


@dataclass(frozen=True, slots=True)
class Ability:
    """One thing that a study may need, the smallest topology that shows it, and its fix."""

    what: str
    topology: Topology

    @property
    def basis(self) -> Ability | None:
        """Return the switch alone, for an ability that needs more than a switch."""
        plain = Topology(switch=self.topology.switch)
        return None if self.topology == plain else Ability(f"switch: {plain.switch}", plain)

    @property
    def mend(self) -> str:
        sudo = "" if os.geteuid() == 0 else "sudo "
        if self.what.endswith("delay line"):
            return "a kernel with CONFIG_NET_CLS_U32 and CONFIG_NET_ACT_MIRRED, or with CONFIG_NET_SCH_NETEM"
        if self.what in _QDISCS:
            module = f"{sudo}modprobe sch_{self.what.lower()}" if self.what != "pfifo" else "a kernel with CONFIG_NET_SCHED"
            return f"{module}; or, in the study file, {_OTHERWISE}" if self.what == "netem" else module
        if self.topology.switch != "bridge" and not all(shutil.which(program, path=_PATH) for program in PROGRAMS):
            return packages.mend(packages.PURPOSES["openvswitch"])
        if self.topology.switch == "openvswitch":
            return f"{sudo}modprobe openvswitch; {_USERSPACE}"
        if self.topology.switch == "openvswitch-netdev":
            return "run as root" if sudo else "a kernel with packet sockets and /dev/net/tun"
        if self.topology.vlan is not None or self.topology.trunk == "vlan":
            return f"a kernel with CONFIG_BRIDGE_VLAN_FILTERING; {_USERSPACE}"
        return sudo + _BRIDGE_MENDS[self.topology.trunk]


def _switch(**how: object) -> Ability:
    topology = Topology.model_validate(how)
    more = "".join([", vlan"] * (topology.vlan is not None) + [f", trunk: {topology.trunk}"] * (topology.trunk != "none"))
    return Ability(f"switch: {topology.switch}{more}", topology)


def every() -> list[Ability]:
    """Return everything that a study can ask for."""
    fields = Topology.model_fields
    abilities = []
    for kind in get_args(fields["switch"].annotation):
        abilities += [_switch(switch=kind), _switch(switch=kind, vlan=_VLAN)]
        abilities += [_switch(switch=kind, trunk=trunk) for trunk in get_args(fields["trunk"].annotation) if trunk != "none"]
    return abilities + [Ability(name, Topology(link=link)) for name, link in _QDISCS.items()]


def needed(topology: Topology, *, own_kernels: bool = False) -> list[Ability]:
    """Return what a topology needs from this machine's kernel; ``own_kernels``: its hosts have their own."""
    kind = topology.switch
    abilities = [_switch(switch=kind)]
    if topology.vlan is not None:
        abilities.append(_switch(switch=kind, vlan=_VLAN))
    if topology.trunk != "none":
        abilities.append(_switch(switch=kind, trunk=topology.trunk))
    places: tuple[Place, ...] = ("switch",) if own_kernels else ("switch", "hosts", "routers")
    names: dict[str, None] = {}
    for place in places:
        link = topology.link.at(place)
        if link.rate is not None:
            names[link.shaper.upper()] = None
        if link.emulates:
            names[_EMULATORS[link.emulator] if place == "switch" else "netem"] = None
        elif link.queue is not None:
            names["pfifo"] = None
    return abilities + [Ability(name, Topology(link=_QDISCS[name])) for name in names]


def abilities(probe: Path, wanted: Sequence[Ability] | None = None, *, required: bool = False) -> list[Check]:
    """Try ``wanted``, or everything. Nothing is tried on a switch that does not work alone."""
    tried: dict[str, Check] = {}
    for ability in every() if wanted is None else wanted:
        basis = ability.basis and tried.get(ability.basis.what)
        if basis and not basis.works:
            check = replace(basis, what=ability.what, mend=ability.mend)
        else:
            check = _try(probe, ability, required)
        tried.setdefault(ability.what, check)
    return list(tried.values())


def _try(probe: Path, ability: Ability, required: bool) -> Check:
    try:
        wrong = differences(trial(probe, ability.topology))
    except TwinbedError as error:
        wrong = " ".join(str(error).split())
    if wrong:
        return Check(ability.what, False, wrong, ability.mend, required)
    return Check(ability.what, True, "made and read back in a trial lab", required=required)


def trial(probe: Path, topology: Topology) -> list[Applied]:
    """Make a topology in a trial lab, with links whose other ends are on no host, and read it back. Raises TwinbedError."""
    plan = layout(topology)
    with scratch.folder() as folder:

        def place(name: str) -> Path:
            artifacts = folder / name
            artifacts.mkdir(exist_ok=True)
            return artifacts

        with contextlib.ExitStack() as stack:
            lab = stack.enter_context(open_lab(probe, place(MACHINE)))
            topology = delay_line.resolved(lab.machine, topology)
            fabric = stack.enter_context(open_fabric(lab, topology, plan, place))
            for nics in plan.nics.values():
                for nic in nics:
                    own = int(fabric.machines[nic.machine].read("/proc/self/stat").split()[0])
                    fabric.attach_container(replace(nic, device=f"e.{nic.host}"), own)
            fabric.shape()
            applied = fabric.applied()
            fabric.at_end()
            return applied
