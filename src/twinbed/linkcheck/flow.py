"""A flow that is faster than a link, each way (iperf3): rate and burst, from captures behind the shaper."""

from __future__ import annotations

import random
import time

from twinbed.contracts.bed import Bed
from twinbed.contracts.command import Command, Ready
from twinbed.contracts.host import Host, Program
from twinbed.hosts.error import HostError, ProgramFailed
from twinbed.hosts.stage import Stage
from twinbed.linkcheck import judge_rate, probe_flow
from twinbed.linkcheck.ends import Ends, qdiscs
from twinbed.linkcheck.judge_rate import CapturePoint, QueueSample
from twinbed.linkcheck.probe_flow import Flow
from twinbed.links.network import understood
from twinbed.links.shaping import Qdisc
from twinbed.model.linkcheck import Figure
from twinbed.model.topology import Link, Topology
from twinbed.readers import tcpdump

_PORT = 5299
"""The servers' port. Each host has its own server, which serves once: a server may be busy just after its client has left."""
_FROM_PORTS = range(20_000, 30_000)
"""Clients' ports, below those that kernels choose. Each flow uses another port: if the client happens to close first, its port
is taken for a minute, also for another twinbed that checks the same hosts."""
_WARM_UP_PORT, _WARM_UP_BYTES = 5298, 2**17
_WARM_UP_LIMIT_S = 30.0
_START_S = 3.0
"""The extra time of a flow beyond the link's need and iperf3's time for the warm-up: a busy machine may stall either end for a
second or two."""
_SAMPLE_S = 0.03
_CONTROL_BYTES = 1500
"""Bytes that iperf3 sends to begin and to end."""
_DRAIN_LIMIT_S, _DRAIN_FACTOR = 5.0, 1.5
_SLOWEST_UNBOUNDED = 10**8
"""The rate from which a TCP sender's queue drains soon enough; below it, buffers are kept small."""
_BUFFER = "128K"
_BUFFER_BYTES = 8 * 2**20
_SNAPLEN = 96
_TERMINATE = 15


def flow_figures(ends: Ends, topology: Topology, bed: Bed, stage: Stage) -> list[Figure]:
    """Measure rate and burst one way, then the other way. The buckets are full at the end, as at the start."""
    link = topology.link
    ways = ((ends.client, ends.server), (ends.server, ends.client))
    if why_not := probe_flow.why_not(link, topology.uplink):
        return [figure for way in ways for figure in judge_rate.no_figures(" to ".join(way), link, why_not)]
    planned = probe_flow.flow(link)
    start_s = _START_S + _warm_up(ends, bed, stage)
    serve = ("iperf3", "-s", "-p", str(_PORT))
    ready = Ready(listening=_PORT)
    servers = stage.start([Command(host, serve, "link-check.iperf3-server", ready, stop=_TERMINATE) for _, host in ways])
    ports = random.sample(_FROM_PORTS, len(ways))
    captures = stage.start([_capture(ends, receiver, port) for (_, receiver), port in zip(ways, ports, strict=True)])
    samples = [_flow(ends, link, planned, bed, way, port, start_s) for way, port in zip(ways, ports, strict=True)]
    refilled_at_s = time.monotonic() + probe_flow.refill_s(link)
    stage.stop(captures)
    stage.stop(servers)
    figures = []
    for (sender, receiver), of_way in zip(ways, samples, strict=True):
        place, _ = ends.seen_at[receiver]
        host = bed.hosts[place]
        with understood(host):
            packets = probe_flow.read(host.read(f"{host.artifacts}/{_file(receiver)}"), link.mtu)
        captured = CapturePoint(at_the_shaper=place != receiver, samples=of_way)
        figures += judge_rate.judge_flow(f"{sender} to {receiver}", packets, link, captured)
    time.sleep(max(0.0, refilled_at_s - time.monotonic()))
    return figures


def _warm_up(ends: Ends, bed: Bed, stage: Stage) -> float:
    """Exchange a little on each host with itself, over no link. An emulated guest takes seconds for its first iperf3.
    time.

    Returns the slower host's time in seconds: the longest that iperf3 may take there before it sends.
    """
    serve = ("iperf3", "-s", "-p", str(_WARM_UP_PORT))
    hosts, ready = (ends.client, ends.server), Ready(listening=_WARM_UP_PORT)
    servers = stage.start([Command(host, serve, "link-check.warm-up", ready, stop=_TERMINATE) for host in hosts])
    took_s = 0.0
    for host in hosts:
        ask = ["iperf3", "-c", bed.addresses[host], "-p", str(_WARM_UP_PORT), "-n", str(_WARM_UP_BYTES)]
        begun_s = time.monotonic()
        bed.hosts[host].run(ask, limit_s=_WARM_UP_LIMIT_S)
        took_s = max(took_s, time.monotonic() - begun_s)
    stage.stop(servers)
    return took_s


def _file(receiver: str) -> str:
    """Return the capture's name, not *.pcap, because its packets do not belong to the run."""
    return f"link-check.{receiver}.cap"


def _capture(ends: Ends, receiver: str, port: int) -> Command:
    place, interface = ends.seen_at[receiver]
    expression = ["src", "port", str(port)]
    return tcpdump.command(
        interface, _file(receiver), snaplen=_SNAPLEN, buffer_bytes=_BUFFER_BYTES, on=place, expression=expression
    )


def _flow(
    ends: Ends, link: Link, planned: Flow, bed: Bed, way: tuple[str, str], port: int, start_s: float
) -> list[QueueSample]:
    """Send as fast as possible until all is sent, or for at most ``start_s`` longer than the link needs; wait until queues are
    empty. Returns samples of the shaper's queue, from the first to the last in which packets waited."""
    assert link.rate is not None
    sender, receiver = way
    ask = ["iperf3", "-c", bed.addresses[receiver], "-p", str(_PORT), "--cport", str(port), *planned.arguments()]
    if planned.speed is None and link.rate < _SLOWEST_UNBOUNDED:
        ask += ["-w", _BUFFER]
    shaper = _shaper(ends, sender, receiver)
    program = bed.hosts[sender].start(ask)
    deadline = time.monotonic() + planned.seconds + start_s + _CONTROL_BYTES * 8 / link.rate
    samples: list[QueueSample] = []
    while not program.ended and time.monotonic() < deadline:
        samples.append(_sample(bed.hosts[shaper[0]], shaper[1]))
        _until_ended(program, _SAMPLE_S)
    program.signal(_TERMINATE)
    _failed(program)
    _until_drained(bed, ends, link)
    busy = [index for index, sample in enumerate(samples) if sample.waiting_bytes > 0]
    return samples[busy[0] : busy[-1] + 1] if busy else []


def _shaper(ends: Ends, sender: str, receiver: str) -> tuple[str, str]:
    """Return the place and the device that shape a flow: the machine's port towards the receiver, or the sender's NIC."""
    place, interface = ends.seen_at[receiver]
    return (place, interface) if place != receiver else ends.seen_at[sender]


def _sample(host: Host, device: str) -> QueueSample:
    nothing: Qdisc = {}
    root = next((entry for entry in qdiscs(host, device) if entry.get("root")), nothing)
    return QueueSample(time.monotonic(), float(root.get("backlog", 0)), float(root.get("bytes", 0)))


def _until_ended(program: Program, limit_s: float) -> None:
    with program.changed:
        if not program.ended:
            program.changed.wait(limit_s)


def _failed(program: Program) -> None:
    """Raise ProgramFailed if iperf3 failed. It has an exit code also when it was ended; only its output shows the
    difference."""
    done = program.wait(5.0)
    if done.code not in (0, None) and b"interrupt" not in done.stderr + done.stdout:
        raise ProgramFailed(program.host, program.argv, done.why, done.stderr or done.stdout)


def _until_drained(bed: Bed, ends: Ends, link: Link) -> None:
    """Wait until queues are empty: packets in them would count for the next flow."""
    assert link.rate is not None
    for place, device in {ends.seen_at[ends.client], ends.seen_at[ends.server]}:
        left = _sample(bed.hosts[place], device).waiting_bytes
        limit_s = _DRAIN_LIMIT_S + _DRAIN_FACTOR * left * 8 / link.rate
        deadline = time.monotonic() + limit_s
        while left > 0:
            if time.monotonic() > deadline:
                raise HostError(f"{place}: {left:.0f} bytes of the link check still wait at {device} after {limit_s:.0f} s")
            time.sleep(_SAMPLE_S)
            left = _sample(bed.hosts[place], device).waiting_bytes
