"""Trials of the settings that every host takes from its kernel: each is made on a trial NIC and read back as in a run."""

from __future__ import annotations

import os
from collections.abc import Callable

from twinbed.contracts.bed import Applied, differences
from twinbed.contracts.check import Check
from twinbed.contracts.host_settings import OFFLOADS, HostSettings
from twinbed.hosts.agent import AgentHost, cpus_allowed
from twinbed.hosts.error import HostError
from twinbed.links import network

_NIC = "trial0"
_PEER = "trial1"
_NETWORK = "192.0.2.0/24"
"""TEST-NET-1 (RFC 5737)."""
_JUMBO_BYTES = 9000
_BUFFER_BYTES = 262_144
_CONGESTION_CONTROLS = {"reno": "tcp", "cubic": "tcp_cubic", "bbr": "tcp_bbr", "dctcp": "tcp_dctcp"}
"""Congestion control -> its kernel module."""


def trials(machine: AgentHost) -> list[Check]:
    """Try all settings on the machine's side of a lab, in its network namespace. Raises HostError where no NIC can be made."""
    machine.run(["ip", "-batch", "-"], stdin=f"link add {_NIC} type veth peer name {_PEER}\n".encode())
    checks = [_offload(machine, name) for name in OFFLOADS]
    checks.append(_tried("mtu: 9000", lambda: _mtu(machine), "use an MTU of 1500"))
    checks += [_congestion_control(machine, name, module) for name, module in _CONGESTION_CONTROLS.items()]
    for name, settings in (
        ("autocorking", HostSettings(autocorking="off")),
        ("receive_buffer", HostSettings(receive_buffer=_BUFFER_BYTES)),
        ("send_buffer", HostSettings(send_buffer=_BUFFER_BYTES)),
    ):
        checks.append(_tried(name, lambda settings=settings: _sysctls(machine, settings), "run as root"))  # type: ignore[misc]
    checks.append(_tried("coalescing", lambda: _coalescing(machine), "guests with nic e1000 or e1000e, and hosts over SSH"))
    checks.append(_tried("quickack", lambda: _routes(machine, HostSettings(quickack="on")), "run as root"))
    checks.append(_tried("initial_window", lambda: _routes(machine, HostSettings(initial_window=2)), "run as root"))
    return [*checks, _cpus(machine)]


def _offload(machine: AgentHost, name: str) -> Check:
    def both_ways() -> list[Applied]:
        applied = []
        for value in ("off", "on"):
            settings = HostSettings.model_validate({name: value})
            network.set_offloads(machine, _NIC, settings)
            applied += network.applied_offloads(machine, _NIC, settings)
        return applied

    return _tried(f"offload {name}", both_ways, "run as root")


def _congestion_control(machine: AgentHost, name: str, module: str) -> Check:
    available = machine.read(network.CONGESTION_CONTROLS).decode(errors="replace").split()

    def asked() -> list[Applied]:
        if name not in available:
            raise HostError(f"the kernel has only {', '.join(available)}")
        return _sysctls(machine, HostSettings(congestion_control=name))

    sudo = "" if os.geteuid() == 0 else "sudo "
    # A network namespace may choose only from those that the machine allows to everybody.
    allowed = f"{sudo}sysctl -w net.ipv4.tcp_allowed_congestion_control='{' '.join(available)}'"
    return _tried(
        f"congestion_control: {name}",
        asked,
        f"{allowed if name in available else f'{sudo}modprobe {module}'}; guests have their own kernel",
    )


def _sysctls(machine: AgentHost, settings: HostSettings) -> list[Applied]:
    network.set_sysctls(machine, settings)
    return network.applied_sysctls(machine, settings)


def _coalescing(machine: AgentHost) -> list[Applied]:
    settings = HostSettings(coalescing="off")
    network.set_coalescing(machine, _NIC, settings)
    return network.applied_coalescing(machine, _NIC, settings)


def _routes(machine: AgentHost, settings: HostSettings) -> list[Applied]:
    machine.run(["ip", "-batch", "-"], stdin=f"link set {_NIC} up\nroute replace {_NETWORK} dev {_NIC}\n".encode())
    network.set_route_metrics(machine, [_NIC], settings)
    return network.applied_route_metrics(machine, [_NIC], settings)


def _mtu(machine: AgentHost) -> list[Applied]:
    machine.run(["ip", "link", "set", _NIC, "mtu", str(_JUMBO_BYTES)])
    return [Applied(_NIC, "mtu", _JUMBO_BYTES, machine.nic(_NIC).mtu, f"RTM_GETLINK of {_NIC}")]


def _cpus(machine: AgentHost) -> Check:
    cpus = sorted(os.sched_getaffinity(0))

    def each_in_turn() -> list[Applied]:
        applied = []
        for cpu in cpus:
            allowed = cpus_allowed(machine.run(["cat", "/proc/self/status"], cpus=(cpu,)).text)
            applied.append(Applied("machine", "cpus", (cpu,), allowed, "/proc/self/status"))
        return applied

    check = _tried("cpus: auto", each_in_turn, "run as root")
    if check.works and len(cpus) < 2:
        return Check(check.what, True, "pinned, but there is one CPU for all", required=False, group="parameter")
    return check


def _tried(what: str, setting: Callable[[], list[Applied]], mend: str) -> Check:
    try:
        wrong = differences(setting())
    except HostError as error:
        return Check(what, False, " ".join(str(error).split()), mend, required=False, group="parameter")
    status = wrong or "set and read back in a trial lab"
    return Check(what, not wrong, status, mend if wrong else "", required=False, group="parameter")
