"""Measures what a bed's links really do, with the bed's own hosts and settings, before the first run of a cell.

A train of packets (irtt) shows delay, jitter and loss; a flow each way (iperf3) that is faster than the link shows rate and
burst.  Flows are captured behind the shaper: at the machine's port of the receiving host's link, or on that host where there is
no machine.  The links of the first pair stand for all: all are made by one plan, and each is read back.  What is judged, and
how, is in ``links.measured``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinbed.hosts.agent import AgentHost, Running
from twinbed.hosts.error import HostError, ProgramFailed
from twinbed.hosts.site import Site
from twinbed.lab.stage import Stage
from twinbed.links import arrivals, measured
from twinbed.links.measured import Behind, Look, Train
from twinbed.links.network import understood
from twinbed.model import tcpdump
from twinbed.model.caution import Caution, Kind
from twinbed.model.linkcheck import Figure, LinkCheck, Verdict
from twinbed.model.plugin import Bed, Command, Ready
from twinbed.model.run import Run
from twinbed.model.topology import Link

LIMIT_S = 60.0
_FLOW_PORT, _THERE_PORT, _BACK_PORT, _TRAIN_PORT = 5299, 5300, 5301, 2113
_OVER = 1.3
"""Of the rate: what is sent where TCP would not fill the link."""
_START_S = 0.5
"""What iperf3 may take on a slow host before it sends."""
_LOOK_S = 0.03
_DRAIN_LIMIT_S = 10.0
_TRAIN_MOST_S = 3.0
_TRAIN_FRAME_BYTES = 106
_TRAIN_SHARE = 0.1
_SLOWEST_UNBOUNDED = 10**8
"""From this rate up a TCP sender's queue drains soon enough; below, its buffers are kept small."""
_BUFFER = "128K"
_BUFFER_BYTES = 8 * 2**20
_SNAPLEN = 96
_TERMINATE = 15


def asks(link: Link) -> bool:
    """Whether anything is asked of the links that can be measured."""
    return link.rate is not None or link.emulates


def depends_on(run: Run) -> dict[str, Any]:
    """The settings of a run that a check of its links depends on."""
    settings = run.settings()
    return {"testbed": settings["testbed"], "topology": settings["topology"]}


@dataclass(frozen=True, slots=True)
class _Ends:
    """The first pair, and where its links are seen: host -> (place, interface there)."""

    client: str
    server: str
    address: str
    seen_at: Mapping[str, tuple[str, str]]


def measure(run: Run, bed: Bed, site: Site) -> LinkCheck | None:
    """None where the testbed has no place to see its links from. Raises HostError where a program fails."""
    client, server = run.topology.names()[0]
    seen_at = {
        host: (target.name, interface)
        for target in sorted(bed.targets, key=lambda target: target.name not in target.interfaces.values())
        for interface, host in target.interfaces.items()
        if host in (client, server)
    }
    if set(seen_at) != {client, server}:
        return None
    ends = _Ends(client, server, bed.addresses[server], seen_at)
    link: Link = run.topology.link
    figures: list[Figure] = []
    stage = Stage(bed, site)
    try:
        if link.emulates:
            figures += _train(ends, link, bed, stage)
        if link.rate is not None:
            figures += _flows(ends, link, bed, site, stage)
    finally:
        stage.kill()
    for host in (client, server):
        # What the kernel remembers of a peer (its congestion window) would make the first run unlike the others.
        bed.hosts[host].run(["ip", "tcp_metrics", "flush", "all"])
    return LinkCheck(run.cell, run.id, depends_on(run), figures, _cautions(figures), _reason(figures))


def _reason(figures: list[Figure]) -> str | None:
    wrong = [figure for figure in figures if figure.verdict is Verdict.OUT]
    if not wrong:
        return None
    return "; ".join(
        f"{figure.path}: {figure.quantity} should be {figure.asked:.6g} {figure.unit} but {figure.measured:.6g} {figure.unit}"
        f" was measured ({_range(figure)} is within tolerance): {figure.note}"
        for figure in wrong
    )


def _range(figure: Figure) -> str:
    if figure.least is None:
        return f"up to {figure.most:.6g}"
    return f"{figure.least:.6g} to {figure.most:.6g}"


def _cautions(figures: list[Figure]) -> list[Caution]:
    result = []
    for figure in figures:
        if figure.verdict is Verdict.UNTOLD:
            kind = Kind.LINK_NOT_FILLED if figure.quantity == "rate" else Kind.LINK_UNTOLD
            measured_text = "nothing" if figure.measured is None else f"{figure.measured:.6g} {figure.unit}"
            detail = f"{figure.path}: {figure.quantity} {measured_text} of {figure.asked:.6g} {figure.unit} asked; {figure.note}"
            result.append(Caution(kind, detail))
    return result


def _train(ends: _Ends, link: Link, bed: Bed, stage: Stage) -> list[Figure]:
    """Delay, jitter and loss."""
    serve = ("irtt", "server", "-b", f"0.0.0.0:{_TRAIN_PORT}", "-i", "100us")
    server = stage.start(
        [Command(ends.server, serve, "link-check.irtt-server", Ready(says=b"[ListenerStart]"), stop=_TERMINATE)]
    )
    packets = 150
    if link.jitter is not None:
        packets = 400
    if link.loss is not None:
        packets = max(packets, min(2000, round(20 / link.loss)))
    interval_s = 0.002 if link.loss is None else 0.001
    if link.rate is not None:
        interval_s = max(interval_s, _TRAIN_FRAME_BYTES * 8 / (_TRAIN_SHARE * link.rate))
    lasts_s = min(packets * interval_s, _TRAIN_MOST_S)
    ask = [
        *("irtt", "client", "-Q", "-i", f"{round(interval_s * 1e6)}us", "-d", f"{round(lasts_s * 1e6)}us", "-l", "64"),
        *("--timeouts=500ms,1s,2s,4s,4s,4s", "--wait=3x1s", "-o", "-", f"{ends.address}:{_TRAIN_PORT}"),
    ]
    said = bed.hosts[ends.client].run(ask, limit_s=LIMIT_S / 2).stdout
    stage.stop(server)
    with understood(bed.hosts[ends.client]):
        train = read_train(said)
    there, back = f"{ends.client} to {ends.server}", f"{ends.server} to {ends.client}"
    figures = []
    if link.delay is not None:
        figures.append(measured.judge_delay(f"{ends.client} and {ends.server}", train, link))
    if link.jitter is not None:
        figures += [measured.judge_jitter(there, train.there_s, link), measured.judge_jitter(back, train.back_s, link)]
    if link.loss is not None:
        figures += [measured.judge_loss(there, *train.there, link), measured.judge_loss(back, *train.back, link)]
    return figures


def read_train(said: bytes) -> Train:
    """From irtt's JSON. Raises ValueError, KeyError or TypeError where it is something else."""
    data = json.loads(said)
    trips = data["round_trips"]
    answered = [trip for trip in trips if trip["lost"] == "false"]
    if not answered:
        raise ValueError("irtt: no packet came back")
    sent = answered[-1]["seqno"] + 1
    arrived = min(int(data["stats"]["server_packets_received"]), sent)
    return Train(
        [trip["delay"]["rtt"] / 1e9 for trip in answered],
        [trip["delay"]["send"] / 1e9 for trip in answered],
        [trip["delay"]["receive"] / 1e9 for trip in answered],
        (arrived, sent),
        (min(len(answered), arrived), arrived),
    )


def _flows(ends: _Ends, link: Link, bed: Bed, site: Site, stage: Stage) -> list[Figure]:
    """Rate and burst, one way and then the other."""
    serve = ("iperf3", "-s", "-p", str(_FLOW_PORT))
    server = stage.start(
        [Command(ends.server, serve, "link-check.iperf3-server", Ready(listening=_FLOW_PORT), stop=_TERMINATE)]
    )
    captures = stage.start(
        [
            _capture(ends, ends.server, f"src port {_THERE_PORT}"),
            _capture(ends, ends.client, f"dst port {_BACK_PORT}"),
        ]
    )
    waiting = [_flow(ends, link, bed, back=back) for back in (False, True)]
    stage.stop(captures)
    stage.stop(server)
    figures = []
    for receiver, sender, queue in ((ends.server, ends.client, waiting[0]), (ends.client, ends.server, waiting[1])):
        place, _ = ends.seen_at[receiver]
        host = bed.hosts[place]
        with understood(host):
            arrived = arrivals.read(host.read(f"{host.artifacts}/{_file(receiver)}"), link.mtu)
        behind = Behind(at_the_shaper=place != receiver, looks=queue)
        figures += measured.judge_flow(f"{sender} to {receiver}", arrived, link, behind)
    return figures


def _file(receiver: str) -> str:
    """Not *.pcap: these packets are none of the run's."""
    return f"link-check.{receiver}.cap"


def _capture(ends: _Ends, receiver: str, expression: str) -> Command:
    place, interface = ends.seen_at[receiver]
    return tcpdump.command(
        interface, _file(receiver), snaplen=_SNAPLEN, buffer_bytes=_BUFFER_BYTES, on=place, expression=expression.split()
    )


def _flow(ends: _Ends, link: Link, bed: Bed, *, back: bool) -> list[Look]:
    """As fast as it goes until the asked rate would have carried it, or it has taken too long; returns looks at the
    shaper while it ran, from the first to the last that saw packets wait. Ends when no queue holds any of it."""
    assert link.rate is not None
    seconds = measured.flow_seconds(link)
    total = round(link.rate / 8 * seconds)
    ask = ["iperf3", "-c", ends.address, "-p", str(_FLOW_PORT), "--cport", str(_BACK_PORT if back else _THERE_PORT)]
    ask += ["-R"] if back else []
    if link.emulates:
        ask += ["-u", "-b", str(round(link.rate * _OVER)), "-l", str(link.mtu - 28), "-n", str(round(total * _OVER))]
    else:
        ask += ["-n", str(total), *(["-w", _BUFFER] if link.rate < _SLOWEST_UNBOUNDED else [])]
    sender, receiver = (ends.server, ends.client) if back else (ends.client, ends.server)
    shaper = _shaper(ends, sender, receiver)
    program = bed.hosts[ends.client].start(ask)
    deadline = time.monotonic() + seconds + _START_S
    looks: list[Look] = []
    while not program.ended and time.monotonic() < deadline:
        looks.append(_look(bed.hosts[shaper[0]], shaper[1]))
        _until_ended(program, _LOOK_S)
    program.signal(_TERMINATE)
    _failed(program)
    _until_drained(bed, ends, link)
    busy = [index for index, look in enumerate(looks) if look.waiting_bytes > 0]
    return looks[busy[0] : busy[-1] + 1] if busy else []


def _shaper(ends: _Ends, sender: str, receiver: str) -> tuple[str, str]:
    """The place and the device that hold a flow back: the machine's port towards the receiver, else the sender's own NIC."""
    place, interface = ends.seen_at[receiver]
    return (place, interface) if place != receiver else ends.seen_at[sender]


def _look(host: AgentHost, device: str) -> Look:
    said = host.run(["tc", "-j", "-s", "qdisc", "show", "dev", device]).stdout
    at_s = time.monotonic()
    with understood(host):
        root = next((entry for entry in json.loads(said or b"[]") if entry.get("root")), {})
        return Look(at_s, float(root.get("backlog", 0)), float(root.get("bytes", 0)))


def _until_ended(program: Running, limit_s: float) -> None:
    with program.changed:
        if not program.ended:
            program.changed.wait(limit_s)


def _failed(program: Running) -> None:
    """iperf3 that was ended says so by its exit code; one that failed by itself, too: they are told apart by what it said."""
    done = program.wait(5.0)
    if done.code not in (0, None) and b"interrupt" not in done.stderr + done.stdout:
        raise ProgramFailed(program.host, program.argv, done.why, done.stderr or done.stdout)


def _until_drained(bed: Bed, ends: _Ends, link: Link) -> None:
    """What a flow has left in queues would be the next one's."""
    deadline = time.monotonic() + _DRAIN_LIMIT_S
    for host, device in {ends.seen_at[ends.client], ends.seen_at[ends.server]}:
        while (left := _look(bed.hosts[host], device).waiting_bytes) > 0:
            if time.monotonic() > deadline:
                raise HostError(f"{host}: {left:.0f} bytes of the link check still wait at {device} after {_DRAIN_LIMIT_S:g} s")
            time.sleep(_LOOK_S)
