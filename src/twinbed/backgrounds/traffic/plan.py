"""What the background load ``traffic`` runs: servers first, then the clients of UDP, then all others.

iperf3 begins a UDP test with one datagram that it does not repeat: it is sent before other traffic fills the links.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from twinbed.backgrounds.traffic.params import TrafficParams
from twinbed.contracts.background import BackgroundPlan
from twinbed.contracts.command import PROGRAM_TASKS, Command, Ready
from twinbed.contracts.place import BACKGROUND_PORTS, Places

HTTP_PORT, TCP_PORT, UDP_PORT = BACKGROUND_PORTS
HTTP_REPORT = "background-http.txt"
TCP_REPORT = "background-tcp-received.txt"
UDP_REPORT = "background-udp-received.txt"

ROOT = "/run/background-www"
CONFIGURATION = "{artifacts}/background-nginx.conf"
ERROR_LOG = "{artifacts}/background-nginx-error.log"
UNTIL_STOPPED_S = 10**7
"""wrk ends by itself after a time that must be given: longer than any run."""
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
    return BackgroundPlan(list(_files(params, [server for _, server, _ in pairs])), commands)


def _files(params: TrafficParams, servers: Sequence[str]) -> Iterator[tuple[str, str, bytes]]:
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
        # Without a terminal wrk would say nothing before its end; when it is interrupted it says what it has done. It has 8 MB
        # of memory for each second of its time-out (-T), which it only counts: small guests have room for its own 2 s.
        wrk = (
            *("stdbuf", "-oL", "wrk", "-t", "1", "-c", str(params.http), "-d", f"{UNTIL_STOPPED_S}s"),
            f"http://{host}:{HTTP_PORT}/payload",
        )
        ready, tasks = Ready(says=b" connections\n"), PROGRAM_TASKS + 1  # wrk has a thread beside its first
        yield Command(client, wrk, stdout=HTTP_REPORT, ready=ready, stop=SIGINT, round=2, tasks=tasks)


def _sink(server: str, port: int, report: str) -> Command:
    """Ends with its client, or when it is told to. It says each interval at once: as JSON it would say all at its end, which
    breaks where it is told to end while it does."""
    argv = ("iperf3", "-s", "-1", "-p", str(port), "-i", str(INTERVAL_S), "-f", "k", "--forceflush")
    return Command(server, argv, stdout=report, ready=Ready(listening=port))


def _source(client: str, address: str, port: int, options: Sequence[str], output: str, number: int) -> Command:
    argv = ("iperf3", "-c", address, "-p", str(port), "-t", "0", "-i", str(INTERVAL_S), "--forceflush", *options)
    return Command(client, argv, stdout=output, ready=Ready(says=b"connected to"), round=number)
