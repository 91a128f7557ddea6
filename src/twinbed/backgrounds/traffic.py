"""Background load ``traffic``: HTTP requests, TCP streams and UDP during the workload, between its own hosts or others.

Runs ``nginx`` and ``wrk`` 4 for HTTP, ``iperf3`` 3.9 or newer for TCP and UDP, on their own ports, while the workload and its
instruments run.  With ``on: pairs`` it shares the workload's links.  With ``on: bystanders`` it runs between further pairs of
hosts (``topology.bystanders``), which share the machine, its switches and the links between switches with the workload.  Every
kind with a level above 0 runs on each pair.

Gives the traffic that was really carried, by the tools' own counts. Requests are counted by wrk on each client, goodput and
loss by the intervals of the receiving iperf3 on each server; values of all places together have no host.  The numbers cover all
the time of the load, which is a little longer than the workload.

Limits: loss is counted by sequence numbers, so datagrams lost after the last one that arrived do not count.
Source: iperf3(1) and the output of iperf 3.12; wrk.c of wrk 4.1.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from pydantic import Field

from twinbed import _core
from twinbed.contracts.background import Background, BackgroundPlan
from twinbed.contracts.command import PROGRAM_TASKS, Command, Ready
from twinbed.contracts.extracted import Extracted, artifacts_named
from twinbed.contracts.params import BackgroundParams, Unfit
from twinbed.contracts.place import BACKGROUND_PORTS, Places
from twinbed.metrics.background import HTTP, LOSS, METRICS, TCP, UDP
from twinbed.metrics.metric import Metric, Value
from twinbed.model.topology import Topology
from twinbed.model.units import Rate, Size
from twinbed.readers.clients import total


class TrafficParams(BackgroundParams):
    """Settings of the traffic on every pair of hosts, and of which pairs."""

    http: int = Field(
        0, ge=0, le=500, examples=[2], description="HTTP connections of each pair, each with one request after another"
    )
    http_payload: Size = Field(10_000, ge=1, le=2**20, description="size of the requested document, such as 10kB")
    tcp: int = Field(
        0, ge=0, le=128, examples=[1], description="TCP streams of each pair from client to server, as fast as possible"
    )
    udp: Rate = Field(
        0, ge=0, examples=["50mbit"], description="bits per second of UDP of each pair from client to server, without headers"
    )
    on: Literal["pairs", "bystanders"] = Field(
        "pairs", description="pairs: the workload's clients and servers; bystanders: hosts of topology.bystanders"
    )

    def programs(self) -> Sequence[str]:
        """Return the programs that hosts must have installed."""
        return (*(("nginx", "stdbuf", "wrk") if self.http else ()), *(("iperf3",) if self.tcp or self.udp else ()))

    def unfit(self, topology: Topology) -> Unfit | None:
        """Report traffic between bystanders where there are none."""
        if self.on == "bystanders" and self.programs() and not topology.bystanders:
            return Unfit("on", "has no bystanders to run between", "topology: {bystanders: N}, or on: pairs")
        return None

    def estimate_seconds(self) -> float:
        return 0.5 if self.programs() else 0.0


HTTP_PORT, TCP_PORT, UDP_PORT = BACKGROUND_PORTS
HTTP_REPORT = "background-http.txt"
TCP_REPORT = "background-tcp-received.txt"
UDP_REPORT = "background-udp-received.txt"

ROOT = "/run/background-www"
CONFIGURATION = "{artifacts}/background-nginx.conf"
ERROR_LOG = "{artifacts}/background-nginx-error.log"
UNTIL_STOPPED_S = 10**7
"""The time after which wrk ends by itself, longer than any run."""
INTERVAL_S = 1
SIGINT = 2

_SCRATCH = "".join(
    f"  {kind}_temp_path /run/background-nginx-{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)
_NGINX = f"""\
daemon off;
master_process off;
user root root;
pid /run/background-nginx.pid;
events {{
  worker_connections 4096;
}}
http {{
{_SCRATCH}  access_log off;
  sendfile on;
  keepalive_requests 1000000000;
  default_type application/octet-stream;
  server {{
    listen {HTTP_PORT} backlog=4096;
    root {ROOT};
  }}
}}
""".encode()


def traffic_plan(params: TrafficParams, places: Places) -> BackgroundPlan:
    pairs = places.pairs if params.on == "pairs" else places.bystanders
    commands = [command for client, server, address in pairs for command in _of_pair(params, client, server, address)]
    return BackgroundPlan(list(_shipped(params, [server for _, server, _ in pairs])), commands)


def _shipped(params: TrafficParams, servers: Sequence[str]) -> Iterator[tuple[str, str, bytes]]:
    if params.http:
        content = hashlib.shake_256(b"twinbed background").digest(params.http_payload)
        for server in servers:
            yield server, CONFIGURATION, _NGINX
            yield server, f"{ROOT}/payload", content


def _of_pair(params: TrafficParams, client: str, server: str, address: str) -> Iterator[Command]:
    if params.udp:
        yield _sink(server, UDP_PORT, UDP_REPORT)
        yield _source(client, address, UDP_PORT, ("-u", "-b", str(params.udp)), "background-udp.txt", 1)
    if params.tcp:
        yield _sink(server, TCP_PORT, TCP_REPORT)
        yield _source(client, address, TCP_PORT, ("-P", str(params.tcp)), "background-tcp.txt", 2)
    if params.http:
        nginx = ("nginx", "-e", ERROR_LOG, "-c", CONFIGURATION)
        yield Command(server, nginx, stdout="background-nginx.txt", ready=Ready(listening=HTTP_PORT))
        host = f"[{address}]" if ":" in address else address
        # Without a terminal wrk prints nothing before its end; when interrupted it prints its counts. It takes 8 MB of memory
        # for each second of its time-out (-T), after which it only counts: small guests have room for the default of 2 s.
        wrk = (
            *("stdbuf", "-oL", "wrk", "-t", "1", "-c", str(params.http), "-d", f"{UNTIL_STOPPED_S}s"),
            f"http://{host}:{HTTP_PORT}/payload",
        )
        ready, tasks = Ready(says=b" connections\n"), PROGRAM_TASKS + 1  # wrk has two threads
        yield Command(client, wrk, stdout=HTTP_REPORT, ready=ready, stop=SIGINT, round=2, tasks=tasks)


def _sink(server: str, port: int, report: str) -> Command:
    """Plan a receiver that ends with its client, or by a signal. It prints each interval at once. As JSON it would print
    everything at its end, and a signal then would cut that."""
    argv = ("iperf3", "-s", "-1", "-p", str(port), "-i", str(INTERVAL_S), "-f", "k", "--forceflush")
    return Command(server, argv, stdout=report, ready=Ready(listening=port))


def _source(client: str, address: str, port: int, options: Sequence[str], output: str, number: int) -> Command:
    argv = ("iperf3", "-c", address, "-p", str(port), "-t", "0", "-i", str(INTERVAL_S), "--forceflush", *options)
    return Command(client, argv, stdout=output, ready=Ready(says=b"connected to"), round=number)


_INTERVAL = re.compile(
    r"\[ *(?P<stream>\d+)\] +(?P<start>\d+\.\d+)-(?P<end>\d+\.\d+) +sec +\S+ \w+ +(?P<kbit_s>\S+) Kbits/sec"
    r"( +\S+ ms +(?P<lost>-?\d+)/(?P<datagrams>\d+) \(\S+\))? *"
)
_OF_A_STREAM = re.compile(r"\[ *\d+\] +\d.*")
_WHOLE = ("sender", "receiver")


@dataclass(frozen=True, slots=True)
class Received:
    """The counts of a receiving iperf3 over all intervals and streams."""

    bits: float = 0.0
    seconds: float = 0.0
    datagrams: int = 0
    """Datagrams that arrived and that were missed, by their numbers."""
    lost: int = 0

    @property
    def goodput(self) -> float | None:
        return self.bits / self.seconds if self.seconds else None

    @property
    def loss(self) -> float | None:
        return self.lost / self.datagrams if self.datagrams else None


def read(params: TrafficParams, artifacts: Path) -> Extracted:
    """Return values of each place, and of all together (host empty). Null where a tool was killed before it printed anything.
    Raises OSError, ValueError or LookupError where a report is missing or not the tool's."""
    values: list[Value] = []
    if params.http:
        rates = {file.parent.name: _requests_per_second(file) for file in artifacts_named(artifacts, HTTP_REPORT)}
        values += _values(HTTP, rates, total)
    if params.tcp:
        values += _values(TCP, {host: report.goodput for host, report in _received(artifacts, TCP_REPORT).items()}, total)
    if params.udp:
        received = _received(artifacts, UDP_REPORT)
        together = Received(
            datagrams=sum(load.datagrams for load in received.values()), lost=sum(e.lost for e in received.values())
        )
        losses = {host: load.loss for host, load in received.items()}
        values += _values(UDP, {host: load.goodput for host, load in received.items()}, total)
        values += _values(LOSS, losses, lambda parts: None if None in parts else together.loss)
    return Extracted(values)


def _values(
    metric: Metric, places: Mapping[str, float | None], together: Callable[[Sequence[float | None]], float | None]
) -> Iterator[Value]:
    for host, number in places.items():
        yield Value(metric.name, number, metric.unit, host)
    yield Value(metric.name, together(list(places.values())), metric.unit)


def _requests_per_second(file: Path) -> float | None:
    text = file.read_bytes()
    if b"requests in" not in text:
        return None
    report = _core.wrk(text)
    done, taken = report["requests"], report["duration_s"]
    return done / taken if done is not None and taken else None


def _received(artifacts: Path, name: str) -> Mapping[str, Received]:
    return {file.parent.name: _of_server(file) for file in artifacts_named(artifacts, name)}


def _bits(kbit_s: str) -> float:
    rate = 1000 * float(kbit_s)
    if not 0 <= rate < math.inf:
        raise ValueError(f"{kbit_s} kbit/s")
    return rate


def _of_server(file: Path) -> Received:
    """Count each interval of each stream once: iperf 3.12 repeats the last if its client ended first. A line that was cut short
    when iperf3 ended is left out."""
    text = file.read_text(errors="replace")
    if text and "Server listening on" not in text:
        raise ValueError(f"{file.parent.name}/{file.name}: not the output of iperf3 -s: {text[:200]!r}")
    intervals: dict[tuple[str, str], tuple[float, float]] = {}
    datagrams: dict[tuple[str, str], tuple[int, int]] = {}
    for line in text.split("\n")[:-1]:
        if (interval := _INTERVAL.fullmatch(line)) is not None:
            key = interval["stream"], interval["start"]
            datagrams[key] = int(interval["datagrams"] or 0), int(interval["lost"] or 0)
            # A last interval may have no length, and then no rate.
            if (length := float(interval["end"]) - float(interval["start"])) > 0:
                intervals[key] = length, _bits(interval["kbit_s"])
        elif _OF_A_STREAM.fullmatch(line) and not line.rstrip().endswith(_WHOLE):
            raise ValueError(f"{file.parent.name}/{file.name}: not an interval: {line!r}")
    lengths = {start: length for (_, start), (length, _) in intervals.items()}
    return Received(
        math.fsum(length * rate for length, rate in intervals.values()),
        math.fsum(lengths.values()),
        sum(count for count, _ in datagrams.values()),
        sum(lost for _, lost in datagrams.values()),
    )


class Traffic(Background[TrafficParams]):
    """The background load."""

    name = "traffic"
    params = TrafficParams
    summary = "HTTP requests, TCP streams and UDP during the workload, on its own links or others (nginx and wrk, iperf3)"
    also = ("cross_traffic", "http", "iperf3", "udp", "tcp")
    files = ("background-*",)
    raw = "the tools' reports, interval by interval"
    metrics = METRICS
    trials: Mapping[str, TrafficParams] = MappingProxyType(
        {"http": TrafficParams(http=1), "tcp": TrafficParams(tcp=1), "udp": TrafficParams(udp=10**6)}
    )

    def plan(self, params: TrafficParams, places: Places) -> BackgroundPlan:
        return traffic_plan(params, places)

    def extract(self, params: TrafficParams, artifacts: Path) -> Extracted:
        return read(params, artifacts)


traffic = Traffic()
