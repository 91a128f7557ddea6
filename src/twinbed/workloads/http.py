"""Workload ``http``: nginx on the servers, ApacheBench or wrk on the clients, one document asked for again and again.

Runs ``nginx`` (one process), ``ab`` 2.3 or ``wrk`` 4.  Gives the load generator's own numbers in base units, and from ab the
table ``requests``: one row a request.  With one pair the values are the run's (host empty); with several, each client's, and
the run's for what can be added up.

nginx runs as one process with one event loop on every testbed, whatever its CPUs: with ``worker_processes auto`` a testbed with
more CPUs would get another server, and the comparison would be of servers.  Without a master process the user does not change
either, which a user namespace with a single uid refuses.

Limits: ab rounds connection times and the table ``requests`` to a millisecond, and start times to a second; percentiles have
microseconds.  The table is sorted by total time.  wrk gives no times of single requests, and runs a little beyond its duration.
Source: ab.c of Apache httpd 2.4, and ab(1).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from twinbed import _core
from twinbed.contracts.command import PROGRAM_BYTES, PROGRAM_TASKS, Command, Ready
from twinbed.contracts.extracted import Extracted, artifacts_named, concatenated
from twinbed.contracts.params import WorkloadParams
from twinbed.contracts.workload import Workload, WorkloadPlan
from twinbed.metrics.http import METRICS, PERCENTILES, SUMMED, UNITS
from twinbed.model.caution import Caution, Kind
from twinbed.model.declaration import Also
from twinbed.model.services import Service
from twinbed.model.units import Duration, Size, Switch
from twinbed.readers import ab_requests, latencies
from twinbed.readers.clients import Numbers, total, values
from twinbed.readers.http import ab_numbers, product, quotient, read_percentiles, request_cautions, wrk_numbers

AB_TSV_BYTES = 48
"""Bytes of one request in ab's gnuplot file."""
BEGIN_AND_END_S = 1.0
"""Time for server start, warm-up and the writing of results."""


class HttpParams(WorkloadParams):
    """Settings of the clients' requests and of the web server."""

    tool: Annotated[Literal["ab", "wrk"], Also(("client", "generator"))] = Field(
        "ab", description="load generator: ab (ApacheBench) or wrk"
    )
    threads: Annotated[int, Also(("concurrency", "connections", "workers", "parallel"))] = Field(
        1, ge=1, le=500, examples=[10], description="requests in flight of each client: ab -c; wrk -t and -c"
    )
    payload: Annotated[Size, Also(("size", "file_size", "bytes", "page"))] = Field(
        500, ge=1, le=2**36, examples=["16KiB"], description="size of the requested document, such as 500B or 1MiB"
    )
    duration: Annotated[Duration, Also(("time", "seconds"))] = Field(
        10.0, ge=1, le=86400, examples=["30s"], description="time of requests, in whole seconds such as 90s"
    )
    max_requests: int = Field(500_000, ge=1, le=50_000_000, description="requests after which ab stops early; wrk has no limit")
    keep_alive: Annotated[Switch, Also(("persistent", "connection"))] = Field(
        False, description="on: many requests a connection; off: one request (wrk: Connection: close)"
    )
    nagle: Literal["on", "off"] | None = Field(
        None,
        description="on: the server's TCP may delay a small write until earlier data is acknowledged; off: never "
        "(TCP_NODELAY); null: nginx's default, off for kept connections",
    )
    https: Annotated[Switch, Also(("tls", "ssl"))] = Field(
        False, description="on: TLS with a self-signed certificate, which clients do not verify"
    )
    warm_up_requests: Annotated[int, Also(("warmup", "warm_up"))] = Field(
        1, ge=0, le=10_000, description="requests of each client before instruments start; 0: none"
    )

    @model_validator(mode="after")
    def _possible(self) -> HttpParams:
        if self.duration != int(self.duration):
            raise ValueError(f"duration must be whole seconds for {self.tool}; it is {self.duration:g} s")
        if self.tool == "ab" and self.max_requests < self.threads:
            raise ValueError(f"max_requests ({self.max_requests}) is less than threads ({self.threads}), which ab refuses")
        return self

    @property
    def port(self) -> int:
        return 443 if self.https else 80

    def url(self, address: str) -> str:
        """Return the URL. It has a port for wrk, which otherwise needs /etc/services, which the image does not have."""
        host = f"[{address}]" if ":" in address else address
        port = f":{self.port}" if self.tool == "wrk" else ""
        return f"{'https' if self.https else 'http'}://{host}{port}/payload"

    def estimate_seconds(self) -> float:
        return self.duration + BEGIN_AND_END_S

    def estimate_bytes(self, link_rate: int) -> float:
        """Estimate the bytes of per-request times a second for the most requests that the cap or the link allows."""
        if self.tool != "ab":
            return 0.0
        return AB_TSV_BYTES * min(self.max_requests / self.duration, link_rate / 8 / self.payload)


ROOT = "/run/www"
PID_FILE = "/run/twinbed-nginx.pid"
KEY = "/run/twinbed-http.key"
CERTIFICATE = "/run/twinbed-http.crt"
CONFIGURATION = "{artifacts}/nginx.conf"
ERROR_LOG = "{artifacts}/nginx-error.log"

SHIPPED_BYTES = 2**20
"""A document up to this size is copied to the server; a larger one is made there."""
ANSWER_LIMIT_S = 30
"""Seconds that a client waits for a silent server."""
WRK_LIMIT_S = 8
"""The time-out of wrk, which only counts slower answers. wrk needs 8 bytes of memory for each microsecond of it, and small
guests have little."""
GRACE_S = 30.0
SLOWEST_FILL = 5e6
"""Bytes/s at which even an emulated guest fills a file from /dev/urandom."""

# The usual folders of nginx belong to a user that a user namespace with a single uid does not know.
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
  # By default nginx closes a kept connection after 1000 requests.
  keepalive_requests 1000000000;
  default_type application/octet-stream;
  server {{{listen}
    root {ROOT};
  }}
}}
""".encode()


def document(size_bytes: int) -> bytes:
    """Return incompressible bytes, always the same for one size."""
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
                # The document counts too: all files of a container are in memory.
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
        # Even an emulated guest makes an elliptic curve key at once; RSA takes a varying number of seconds there.
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", KEY)
        subject = ("-subj", "/CN=twinbed", "-set_serial", "1", "-days", "3650")
        commands.append(Command(server, ("openssl", "req", "-x509", *key, "-out", CERTIFICATE, *subject)))
    return commands


def _ab(params: HttpParams, address: str) -> tuple[str, ...]:
    # The option -t sets -n to 50000, so -n comes after it. Without -r one reset connection would end ab without a result.
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


if TYPE_CHECKING:
    import pyarrow as pa

CLEARLY_EARLY = 0.98
"""Share of the duration below which a run that made all requests was ended by the cap."""


@dataclass(frozen=True, slots=True)
class Client:
    """The measurements of one client: metric -> value."""

    host: str
    numbers: Numbers
    cautions: Sequence[Caution]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    """``requests``, or ``latencies``."""


def read(params: HttpParams, artifacts: Path) -> Extracted:
    """Read the artifacts. Raises OSError, ValueError or LookupError where one is missing or not in the tool's format."""
    files = artifacts_named(artifacts, f"{params.tool}.txt")
    read_client = _wrk_client if params.tool == "wrk" else _ab_client
    clients = [read_client(params, file.parent) for file in files]
    if any(latencies.NAME in client.tables for client in clients):
        # All clients use the same kind of table, so no request counts twice.
        histograms = [ab_requests.read(file.with_name("ab.tsv"), file.parent.name, most=0) for file in files]
        clients = [replace(client, tables=table) for client, table in zip(clients, histograms, strict=True)]
    names = dict.fromkeys(name for client in clients for name in client.tables)
    return Extracted(
        list(values([(client.host, client.numbers) for client in clients], UNITS, together)),
        {name: concatenated([client.tables[name] for client in clients if name in client.tables]) for name in names},
        [*(caution for client in clients for caution in client.cautions), *_warm_up(params, files)],
    )


def together(clients: Sequence[Numbers]) -> dict[str, float | None]:
    """Return the run's numbers from its clients': sums, and numbers that follow from sums. Missing where a part is missing."""
    run = {name: total([client[name] for client in clients]) for name in clients[0] if name in SUMMED}
    spent = total([product(client["time_per_request"], client["requests"]) for client in clients])
    run["time_per_request"] = quotient(spent, run["requests"])
    run["time_between_requests"] = quotient(1.0, run["requests_per_second"])
    return run


def _ab_client(params: HttpParams, folder: Path) -> Client:
    report = _core.ab((folder / "ab.txt").read_bytes())
    numbers = dict(ab_numbers(report))
    done = report["complete_requests"]
    # Percentiles of no requests, or only of failures, are not times of requests.
    percentiles = read_percentiles((folder / "ab.csv").read_bytes(), done) if done and numbers["requests"] else {}
    numbers |= {f"total_time_p{p}": percentiles.get(p) for p in PERCENTILES}
    cautions = list(_cautions(params, folder.name, numbers, done))
    taken = report["duration_s"]
    if done == params.max_requests and taken is not None and taken < CLEARLY_EARLY * params.duration:
        detail = f"{done} requests after {taken:g} s of {params.duration:g} s{_client_note(folder.name)}"
        cautions.insert(0, Caution(Kind.REQUEST_CAP, detail))
    return Client(folder.name, numbers, cautions, ab_requests.read(folder / "ab.tsv", folder.name))


def _wrk_client(params: HttpParams, folder: Path) -> Client:
    report = _core.wrk((folder / "wrk.txt").read_bytes())
    numbers = dict(wrk_numbers(report, params.payload))
    return Client(folder.name, numbers, list(_cautions(params, folder.name, numbers, report["requests"])))


def _cautions(params: HttpParams, host: str, numbers: Numbers, done: int | None) -> Iterator[Caution]:
    yield from request_cautions(numbers, done, _client_note(host))
    size = numbers.get("document_bytes")
    if size is not None and size != params.payload and not numbers["non_2xx"]:
        raise ValueError(f"{host} got a document of {size:.0f} bytes; it should have {params.payload}")


def _warm_up(params: HttpParams, files: Sequence[Path]) -> Iterator[Caution]:
    if not params.warm_up_requests:
        yield Caution(Kind.WARM_UP, "warm_up_requests is 0")
    for file in files:
        warm_up = file.with_name("warm-up.txt")
        if not params.warm_up_requests or not warm_up.exists():
            continue
        report = _core.ab(warm_up.read_bytes())
        wrong = (report["failed_requests"] or 0) + (report["non_2xx_responses"] or 0)
        if wrong:
            yield Caution(Kind.WARM_UP, f"{wrong} of {params.warm_up_requests} requests{_client_note(file.parent.name)}")


def _client_note(host: str) -> str:
    """Return the client in brackets, where there are several."""
    return "" if host == "client" else f" ({host})"


class Http(Workload[HttpParams]):
    """The workload."""

    name = "http"
    params = HttpParams
    summary = "a web server and clients that request one document (nginx; ApacheBench or wrk)"
    also = ("nginx", "apache", "apachebench", "ab", "wrk", "web", "https", "curl", "hey", "siege", "h2load", "httperf")
    files = ("ab.*", "wrk.*", "warm-up.*", "nginx*")
    raw = "single requests of runs of very many, and the server's configuration and errors"
    metrics = METRICS
    work = "requests"
    rate = "requests_per_second"

    def plan(self, params: HttpParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        return workload_plan(params, pairs)

    def services(self, params: HttpParams) -> Sequence[Service]:
        return [Service("tcp", params.port)]

    def parse(self, params: HttpParams, artifacts: Path) -> Extracted:
        return read(params, artifacts)


http = Http()
