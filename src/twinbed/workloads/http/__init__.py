"""Workload ``http``: nginx on the servers, ApacheBench or wrk on the clients, one document asked for again and again.

Runs ``nginx`` (one process), ``ab`` 2.3 or ``wrk`` 4.  Gives the load generator's own numbers in base units, and from ab the
table ``requests``: one row a request.  With one pair the values are the run's (host empty); with several, each client's, and
the run's for what can be added up.

Limits: ab rounds connection times and the table ``requests`` to a millisecond and sorts it by total time, and its start times
to a second; percentiles have microseconds.  wrk gives no times of single requests, and goes on a little beyond its duration.
Source: ab.c of Apache httpd 2.4, and ab(1).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twinbed.contracts.extracted import Extracted
from twinbed.contracts.workload import Workload, WorkloadPlan
from twinbed.metrics.http import METRICS
from twinbed.model.services import Service
from twinbed.workloads.http.params import HttpParams
from twinbed.workloads.http.parse import read
from twinbed.workloads.http.plan import workload_plan


class Http(Workload[HttpParams]):
    """The workload."""

    name = "http"
    params = HttpParams
    summary = "a web server and clients that ask it for one document (nginx; ApacheBench or wrk)"
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
