"""The ends of a pair's links: where these can be captured, and which devices emulate them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.contracts.bed import Bed
from twinbed.contracts.host import Host
from twinbed.links import delay_line
from twinbed.links.layout import DEVICES
from twinbed.links.network import understood
from twinbed.links.shaping import Qdisc
from twinbed.model.json import loads
from twinbed.study.run import Run


@dataclass(frozen=True, slots=True)
class Ends:
    """A pair of hosts. ``seen_at``: host -> (place, interface there) at which its link is captured."""

    client: str
    server: str
    address: str
    seen_at: Mapping[str, tuple[str, str]]
    emulators: tuple[tuple[str, str], tuple[str, str]]
    """(place, device) that emulates on the way there, and on the way back."""


def find_ends(run: Run, bed: Bed, client: str, server: str) -> Ends | None:
    """Return a pair's ends; None where the testbed has no place to capture its links."""
    own: dict[str, tuple[str, str]] = {}
    port: dict[str, tuple[str, str]] = {}
    for target in bed.targets:
        for interface, host in target.interfaces.items():
            (own if host == target.name else port)[host] = (target.name, interface)
    seen_at = {**own, **port}
    if client not in seen_at or server not in seen_at:
        return None
    if run.topology.link.emulated_at == "routers":
        router = run.topology.router_names()[0]
        emulators = ((router, DEVICES[1]), (router, DEVICES[0]))
    elif run.topology.link.emulated_at == "hosts":
        emulators = (own[client], own[server])
    else:
        emulators = (seen_at[server], seen_at[client])
    return Ends(client, server, bed.addresses[server], seen_at, emulators)


def qdiscs(host: Host, device: str) -> list[Qdisc]:
    """Return the qdiscs of a device, with counters. Raises HostError where the output of tc cannot be read."""
    listing = host.run(["tc", "-j", "-s", "qdisc", "show", "dev", device]).stdout
    with understood(host):
        return list(loads(listing or b"[]"))


def passed_and_dropped(host: Host, device: str) -> tuple[int, int] | None:
    """Return how many packets passed a device's emulator, and how many it dropped; None where there is no emulator."""
    listing = host.run(["ip", "-j", "-s", "link", "show"]).stdout
    with understood(host):
        counts = {shown["ifname"]: shown["stats64"] for shown in loads(listing or b"[]")}
        if (far := delay_line.far(device)) in counts:
            arrived, sent = counts[far]["rx"]["packets"], counts[device]["tx"]["packets"]
            return int(sent), int(arrived) - int(sent)
    netem = next((entry for entry in qdiscs(host, device) if entry["kind"] == "netem"), None)
    return None if netem is None else (int(netem["packets"]), int(netem["drops"]))
