"""A link's rate, delay and loss by minimega's ``qos``: on the node, at the tap, for what the guest *receives*.

What a guest sends is not shaped there, so every guest's tap is: each direction of a path meets each setting once.  A rate
together with a delay or loss is refused here: minimega lets the later replace the earlier.

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
    """Each part of a topology that minimega cannot do, with what it can do instead."""
    link, reasons = topology.link, []
    if link.rate is not None and link.emulates:
        reasons.append("rate together with delay or loss: each of minimega's qos replaces the other; leave one of them out")
    if link.rate is not None and link.rate % 1000:
        reasons.append(f"rate {link.rate} bit/s: minimega takes whole kbit, mbit or gbit")
    for name in ("burst", "jitter", "queue"):
        if getattr(link, name) is not None:
            reasons.append(f"link {name}: minimega's qos has none; leave it out")
    if link.emulates and link.emulated_at != "switch":
        reasons.append(f"emulated_at: {link.emulated_at}: minimega emulates at the taps only, which is emulated_at: switch")
    if link.emulates and link.emulator == "delay-line":
        reasons.append("emulator: delay-line: minimega emulates at the taps, by its node's netem; leave it out")
    if link.mtu > 1500:
        reasons.append(f"mtu {link.mtu}: minimega's taps and bridges carry 1500")
    if topology.routers:
        reasons.append("routers: guests are on one network here; use routers: 0")
    if topology.bystanders:
        reasons.append("bystanders: guests are the workload's clients and servers here; use bystanders: 0")
    if topology.switch == "openvswitch-netdev":
        reasons.append("switch: openvswitch-netdev: minimega's bridges are Open vSwitch's with the datapath that its node has")
    if topology.vlan is not None:
        reasons.append("topology vlan: give vlan to the testbed (driver: minimega), whose networks all are VLANs")
    if topology.trunk != "none" and len(nodes) < (least := 1 + topology.client_machines):
        several = "two" if least == 2 else f"{least}"
        reasons.append(f"trunk: {topology.trunk}: joins {several} nodes: name them in the testbed's nodes")
    if topology.trunk in ("gre", "vxlan") and topology.client_machines > 1:
        reasons.append(
            f"client_machines: {topology.client_machines} with trunk: {topology.trunk}: minimega tunnels between every two"
            " nodes, and spanning tree decides which carry frames; use trunk: plain or vlan, with the nodes' bridges joined"
        )
    return reasons


def commands(link: Link) -> list[tuple[str, ...]]:
    """The words after ``qos add GUEST 0``."""
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
    """The part of the column that is about the first NIC."""
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
        raise HostError("minimega cannot do what the study asks: " + "; ".join(reasons))
