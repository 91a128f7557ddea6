"""A flow that is faster than a link, each way (iperf3): rate and burst, from captures behind the shaper."""

from __future__ import annotations

import time

from twinbed.hosts.agent import AgentHost, Running
from twinbed.hosts.error import HostError, ProgramFailed
from twinbed.lab.linkcheck.ends import Ends, qdiscs
from twinbed.lab.stage import Stage
from twinbed.links import arrivals, measured
from twinbed.links.measured import Behind, Look
from twinbed.links.network import understood
from twinbed.model import tcpdump
from twinbed.model.linkcheck import Figure
from twinbed.model.plugin import Bed, Command, Ready
from twinbed.model.topology import Link

_THERE_SERVER, _BACK_SERVER = 5298, 5299
"""A server each way: one that has just been left may say for a moment that it is busy."""
_THERE_PORT, _BACK_PORT = 5300, 5301
_OVER = 1.3
"""Of the rate: what is sent where TCP would not fill the link."""
_START_S = 0.5
"""What iperf3 may take on a slow host before it sends."""
_LOOK_S = 0.03
_DRAIN_LIMIT_S = 10.0
_SLOWEST_UNBOUNDED = 10**8
"""From this rate up a TCP sender's queue drains soon enough; below, its buffers are kept small."""
_BUFFER = "128K"
_BUFFER_BYTES = 8 * 2**20
_SNAPLEN = 96
_TERMINATE = 15


def flow_figures(ends: Ends, link: Link, bed: Bed, stage: Stage) -> list[Figure]:
    """Rate and burst, one way and then the other."""
    servers = stage.start([_server(ends, "there", _THERE_SERVER), _server(ends, "back", _BACK_SERVER)])
    captures = stage.start(
        [
            _capture(ends, ends.server, f"src port {_THERE_PORT}"),
            _capture(ends, ends.client, f"dst port {_BACK_PORT}"),
        ]
    )
    waiting = [_flow(ends, link, bed, back=back) for back in (False, True)]
    stage.stop(captures)
    stage.stop(servers)
    figures = []
    for receiver, sender, queue in ((ends.server, ends.client, waiting[0]), (ends.client, ends.server, waiting[1])):
        place, _ = ends.seen_at[receiver]
        host = bed.hosts[place]
        with understood(host):
            arrived = arrivals.read(host.read(f"{host.artifacts}/{_file(receiver)}"), link.mtu)
        behind = Behind(at_the_shaper=place != receiver, looks=queue)
        figures += measured.judge_flow(f"{sender} to {receiver}", arrived, link, behind)
    return figures


def _server(ends: Ends, way: str, port: int) -> Command:
    serve = ("iperf3", "-s", "-p", str(port))
    return Command(ends.server, serve, f"link-check.iperf3-server-{way}", Ready(listening=port), stop=_TERMINATE)


def _file(receiver: str) -> str:
    """Not *.pcap: these packets are none of the run's."""
    return f"link-check.{receiver}.cap"


def _capture(ends: Ends, receiver: str, expression: str) -> Command:
    place, interface = ends.seen_at[receiver]
    return tcpdump.command(
        interface, _file(receiver), snaplen=_SNAPLEN, buffer_bytes=_BUFFER_BYTES, on=place, expression=expression.split()
    )


def _flow(ends: Ends, link: Link, bed: Bed, *, back: bool) -> list[Look]:
    """As fast as it goes until the asked rate would have carried it, or it has taken too long; returns looks at the
    shaper while it ran, from the first to the last that saw packets wait. Ends when no queue holds any of it."""
    assert link.rate is not None
    seconds = measured.flow_seconds(link)
    total = round(link.rate / 8 * seconds)
    ask = ["iperf3", "-c", ends.address, "-p", str(_BACK_SERVER if back else _THERE_SERVER)]
    ask += ["--cport", str(_BACK_PORT), "-R"] if back else ["--cport", str(_THERE_PORT)]
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


def _shaper(ends: Ends, sender: str, receiver: str) -> tuple[str, str]:
    """The place and the device that hold a flow back: the machine's port towards the receiver, else the sender's own NIC."""
    place, interface = ends.seen_at[receiver]
    return (place, interface) if place != receiver else ends.seen_at[sender]


def _look(host: AgentHost, device: str) -> Look:
    root = next((entry for entry in qdiscs(host, device) if entry.get("root")), {})
    return Look(time.monotonic(), float(root.get("backlog", 0)), float(root.get("bytes", 0)))


def _until_ended(program: Running, limit_s: float) -> None:
    with program.changed:
        if not program.ended:
            program.changed.wait(limit_s)


def _failed(program: Running) -> None:
    """iperf3 that was ended says so by its exit code; one that failed by itself, too: they are told apart by what it said."""
    done = program.wait(5.0)
    if done.code not in (0, None) and b"interrupt" not in done.stderr + done.stdout:
        raise ProgramFailed(program.host, program.argv, done.why, done.stderr or done.stdout)


def _until_drained(bed: Bed, ends: Ends, link: Link) -> None:
    """What a flow has left in queues would be the next one's."""
    deadline = time.monotonic() + _DRAIN_LIMIT_S
    for host, device in {ends.seen_at[ends.client], ends.seen_at[ends.server]}:
        while (left := _look(bed.hosts[host], device).waiting_bytes) > 0:
            if time.monotonic() > deadline:
                slow = f": {left * 8 / link.rate:.0f} s more at {link.rate} bit/s; ask for a faster link" if link.rate else ""
                raise HostError(
                    f"{host}: {left:.0f} bytes of the link check still wait at {device} after {_DRAIN_LIMIT_S:g} s{slow}"
                )
            time.sleep(_LOOK_S)
