"""What the workload ``http`` runs: nginx on every server, ab or wrk on every client.

nginx runs as one process with one event loop on every testbed, whatever CPUs it finds there: with ``worker_processes auto`` a
testbed with more CPUs would be given another server, and be compared for that.  Without a master process there is no change of
user either, which a user namespace with a single uid refuses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from twinbed.contracts.command import PROGRAM_BYTES, PROGRAM_TASKS, Command, Ready
from twinbed.contracts.workload import WorkloadPlan
from twinbed.workloads.http.params import HttpParams

ROOT = "/run/www"
PID_FILE = "/run/twinbed-nginx.pid"
KEY = "/run/twinbed-http.key"
CERTIFICATE = "/run/twinbed-http.crt"
CONFIGURATION = "{artifacts}/nginx.conf"
ERROR_LOG = "{artifacts}/nginx-error.log"

SHIPPED_BYTES = 2**20
"""A document up to this size is put on the server; a larger one is made there."""
ANSWER_LIMIT_S = 30
"""How long a client waits for a server that says nothing."""
WRK_LIMIT_S = 8
"""wrk only counts the answers that take longer. It asks for 8 bytes of memory for each microsecond of this; small guests have
little."""
GRACE_S = 30.0
SLOWEST_FILL = 5e6
"""bytes/s at which even an emulated guest fills a file from /dev/urandom."""

# Its usual folders belong to a user that a user namespace with a single uid does not know.
_SCRATCH = "".join(
    f"  {kind}_temp_path /run/twinbed-nginx-{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)
# The default protocols of nginx 1.22 lack TLS 1.3.
_TLS = f"""
    listen 443 ssl backlog=4096;
    ssl_certificate {CERTIFICATE};
    ssl_certificate_key {KEY};
    ssl_protocols TLSv1.2 TLSv1.3;"""


def configuration(params: HttpParams) -> bytes:
    """nginx.conf."""
    nodelay = f"\n  tcp_nodelay {'off' if params.nagle == 'on' else 'on'};" if params.nagle else ""
    listen = _TLS if params.https else "\n    listen 80 backlog=4096;"
    return f"""\
daemon off;
master_process off;
user root root;
pid {PID_FILE};
events {{
  worker_connections 4096;
}}
http {{
{_SCRATCH}  access_log off;
  sendfile on;{nodelay}
  # nginx closes a kept connection after 1000 requests unless told otherwise.
  keepalive_requests 1000000000;
  default_type application/octet-stream;
  server {{{listen}
    root {ROOT};
  }}
}}
""".encode()


def document(size_bytes: int) -> bytes:
    """The same incompressible bytes for the same size, always."""
    return hashlib.shake_256(b"twinbed payload").digest(size_bytes)


def workload_plan(params: HttpParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
    servers = [server for _client, server, _address in pairs]
    files = [(server, CONFIGURATION, configuration(params)) for server in servers]
    if params.payload <= SHIPPED_BYTES:
        content = document(params.payload)
        files += [(server, f"{ROOT}/payload", content) for server in servers]
    return WorkloadPlan(
        files=files,
        prepare=[command for server in servers for command in _prepare(params, server)],
        servers=[
            Command(
                server,
                ("nginx", "-e", ERROR_LOG, "-c", CONFIGURATION),
                ready=Ready(listening=params.port),
                # With its document: all files of a container are in memory.
                memory_bytes=PROGRAM_BYTES + params.payload,
            )
            for server in servers
        ],
        warm_up=[
            Command(
                client,
                ("ab", "-q", "-n", str(params.warm_up_requests), params.url(address)),
                stdout="warm-up.txt",
                limit_s=ANSWER_LIMIT_S + GRACE_S,
            )
            for client, _server, address in pairs
            if params.warm_up_requests
        ],
        clients=[
            Command(
                client,
                _wrk(params, address) if params.tool == "wrk" else _ab(params, address),
                stdout=f"{params.tool}.txt",
                limit_s=params.duration + ANSWER_LIMIT_S + GRACE_S,
                tasks=PROGRAM_TASKS + (params.threads if params.tool == "wrk" else 0),
            )
            for client, _server, address in pairs
        ],
    )


def _prepare(params: HttpParams, server: str) -> Sequence[Command]:
    commands = []
    if params.payload > SHIPPED_BYTES:
        commands.append(Command(server, ("mkdir", "-p", ROOT)))
        size = f"count={params.payload}"
        fill = ("dd", "if=/dev/urandom", f"of={ROOT}/payload", "bs=1M", size, "iflag=fullblock,count_bytes", "status=none")
        commands.append(Command(server, fill, limit_s=GRACE_S + params.payload / SLOWEST_FILL))
    if params.https:
        # An elliptic curve key is made at once even by an emulated guest; RSA takes seconds there, and not always as many.
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", KEY)
        subject = ("-subj", "/CN=twinbed", "-set_serial", "1", "-days", "3650")
        commands.append(Command(server, ("openssl", "req", "-x509", *key, "-out", CERTIFICATE, *subject)))
    return commands


def _ab(params: HttpParams, address: str) -> tuple[str, ...]:
    # -t sets -n to 50000, so -n comes after it. Without -r a single reset connection would end ab without a result.
    return (
        "ab",
        "-q",
        "-r",
        *("-s", str(ANSWER_LIMIT_S)),
        *("-t", str(int(params.duration))),
        *("-n", str(params.max_requests)),
        *("-c", str(params.threads)),
        *(("-k",) if params.keep_alive else ()),
        *("-g", "{artifacts}/ab.tsv"),
        *("-e", "{artifacts}/ab.csv"),
        params.url(address),
    )


def _wrk(params: HttpParams, address: str) -> tuple[str, ...]:
    return (
        "wrk",
        *("-t", str(params.threads)),
        *("-c", str(params.threads)),
        *("-d", f"{int(params.duration)}s"),
        *("-T", f"{WRK_LIMIT_S}s"),
        "--latency",
        *(() if params.keep_alive else ("-H", "Connection: close")),
        params.url(address),
    )
