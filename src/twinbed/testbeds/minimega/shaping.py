"""A link's rate, delay and loss by minimega's ``qos``: on the node, at the tap, for packets that the guest *receives*.

A tap does not shape packets that its guest sends, so every guest's tap is shaped: each direction of a path meets each setting
once. A rate together with a delay or loss is refused, since minimega lets the later setting replace the earlier.

Source: minimega's manual, "Quality of service"; the ``qos`` column of ``vm info`` in the recorded conversation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from twinbed.contracts.bed import Applied
from twinbed.hosts.error import HostError
from twinbed.model.topology import Link, Topology
from twinbed.testbeds.minimega.machine import SOURCE, Machine

_UNITS = (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3))
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def refusals(topology: Topology, nodes: Sequence[str]) -> list[str]:
    """List each part of a topology that minimega cannot do, with a remedy."""
    link, reasons = topology.link, []
    if link.rate is not None and link.emulates:
        reasons.append("rate together with delay or loss: in minimega's qos each replaces the other; leave one of them out")
    if link.rate is not None and link.rate % 1000:
        reasons.append(f"rate {link.rate} bit/s: minimega takes whole kbit, mbit or gbit; round it")
    for name in ("burst", "jitter", "queue"):
        if getattr(link, name) is not None:
            reasons.append(f"link {name}: minimega's qos has no such setting; leave it out")
    if link.emulates and link.emulated_at != "switch":
        reasons.append(f"emulated_at: {link.emulated_at}: minimega emulates only at the taps; set emulated_at: switch")
    if link.emulates and link.emulator == "delay-line":
        reasons.append("emulator: delay-line: minimega emulates with its node's netem; leave it out")
    if link.mtu > 1500:
        reasons.append(f"mtu {link.mtu}: minimega's taps and bridges carry at most 1500; set mtu: 1500")
    if topology.routers:
        reasons.append("routers: all guests are on one network here; set routers: 0")
    if topology.role_hosts:
        reasons.append("roles: guests are clients and servers here; run roles on containers or guests of this machine")
    if topology.bystanders:
        reasons.append("bystanders: guests are the workload's clients and servers here; set bystanders: 0")
    if topology.switch == "openvswitch-netdev":
        reasons.append("switch: openvswitch-netdev: minimega's bridges have their node's own datapath; leave it out")
    if topology.vlan is not None:
        reasons.append("topology vlan: set vlan in the testbed (driver: minimega) instead, whose networks are all VLANs")
    if topology.trunk != "none" and len(nodes) < (least := 1 + topology.client_machines):
        several = "two" if least == 2 else f"{least}"
        reasons.append(f"trunk: {topology.trunk}: it joins {several} nodes; name them in the testbed's nodes")
    if topology.trunk in ("gre", "vxlan") and topology.client_machines > 1:
        reasons.append(
            f"client_machines: {topology.client_machines} with trunk: {topology.trunk}: minimega makes a tunnel between every"
            " two nodes, and spanning tree decides which carry frames; set trunk: plain or vlan, and join the nodes' bridges"
        )
    return reasons


def commands(link: Link) -> list[tuple[str, ...]]:
    """Return the words after ``qos add GUEST 0``."""
    plans: list[tuple[str, ...]] = []
    if link.rate is not None:
        unit, size = next((unit, size) for unit, size in _UNITS if link.rate % size == 0)
        plans.append(("rate", str(link.rate // size), unit))
    if link.delay is not None:
        plans.append(("delay", f"{round(link.delay * 1e6)}us"))
    if link.loss is not None:
        plans.append(("loss", f"{link.loss * 100:g}"))
    return plans


def applied(machine: Machine, link: Link) -> list[Applied]:
    """Compare the link with the first NIC's part of the qos column."""
    source, text = f"{SOURCE}: qos", machine.row["qos"]
    read_back = {"rate": _rate(text), "delay": _delay(text), "loss": _loss(text)}
    asked = {"rate": link.rate, "delay": link.delay, "loss": link.loss}
    items = [Applied(machine.name, name, asked[name] or 0, read_back[name] or 0, source, 1e-6) for name in read_back]
    if any(not item.agrees for item in items):
        return [*items, Applied(machine.name, "qos", None, text, source)]
    return items


def _rate(text: str) -> int | None:
    match = re.search(r"\brate (\d+) ?([kmg]bit)\b", text)
    return int(match[1]) * dict(_UNITS)[match[2]] if match else None


def _delay(text: str) -> float | None:
    match = re.search(r"\bdelay (\d+(?:\.\d+)?) ?(ns|us|µs|ms|s)\b", text)
    return float(match[1]) * _SECONDS[match[2]] if match else None


def _loss(text: str) -> float | None:
    match = re.search(r"\bloss (\d+(?:\.\d+)?) ?%?", text)
    return float(match[1]) / 100 if match else None


def refuse(reasons: Sequence[str]) -> None:
    if reasons:
        raise HostError("minimega cannot make this topology: " + "; ".join(reasons))
