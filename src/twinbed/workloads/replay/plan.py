"""What the workload ``replay`` runs: tcpdump on both hosts for what arrives, then tcpreplay on both, started together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

from twinbed.contracts.command import Command
from twinbed.contracts.workload import WorkloadPlan
from twinbed.readers import tcpdump
from twinbed.readers.replay.sides import EXPERIMENTAL, Sides, mac, split
from twinbed.workloads.replay.params import ReplayParams

CAPTURE = "/run/twinbed-replay.pcap"
DEVICE = "eth0"
"""Of every host of a lab."""
REPORT, ARRIVED, SIDES = "tcpreplay.txt", "arrived.cap", "replay.json"
GRACE_S = 30.0
SNAPLEN = 96
BUFFER_BYTES = 16 * 2**20


@lru_cache(maxsize=4)
def _split(params: ReplayParams, client: str, server: str) -> Sides:
    return split(params.content(), client, server, params.max_packets, params.duration)


def workload_plan(params: ReplayParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
    files, receivers, senders = [], [], []
    for client, server, address in pairs:
        asking = client_of(address)
        sides = _split(params, asking, address)
        for host, content, offsets, peer in (
            (client, sides.client, sides.client_offsets_ns, address),
            (server, sides.server, sides.server_offsets_ns, asking),
        ):
            about = {
                "offsets_ns": [round(each / params.speed) for each in offsets],
                "left_out": dict(sides.left_out),
                "notes": dict(sides.notes),
            }
            files += [(host, CAPTURE, content), (host, f"{{artifacts}}/{SIDES}", json.dumps(about).encode())]
            receivers.append(
                tcpdump.command(
                    DEVICE,
                    ARRIVED,
                    snaplen=SNAPLEN,
                    buffer_bytes=BUFFER_BYTES,
                    on=host,
                    expression=("ether", "src", mac(peer), "and", "ip", "or", "ether", "proto", f"0x{EXPERIMENTAL:x}"),
                )
            )
            argv = ("tcpreplay", "-i", DEVICE, "--preload-pcap", f"--multiplier={params.speed:g}", CAPTURE)
            limit_s = max(offsets, default=0) / 1e9 / params.speed + GRACE_S
            senders.append(Command(host, argv, REPORT, limit_s=limit_s, memory_bytes=4 * 2**20 + 2 * len(content)))
    # What a program needs is then in memory, so that both start as fast as they can.
    warm_up = [Command(sender.host, ("tcpreplay", "--version"), "warm-up.txt") for sender in senders]
    return WorkloadPlan(files=files, servers=receivers, warm_up=warm_up, clients=senders)


def client_of(server_address: str) -> str:
    """The address of a server's client: the one before it, as ``links.layout`` gives them."""
    head, _, last = server_address.rpartition(".")
    return f"{head}.{int(last) - 1}"
