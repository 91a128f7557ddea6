"""What ab and wrk wrote, as values, a table of requests and cautions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed.contracts.extracted import Extracted
from twinbed.metrics.http import PERCENTILES, SUMMED, UNITS
from twinbed.model.caution import Caution, Kind
from twinbed.readers import ab_requests, latencies
from twinbed.readers.clients import Numbers, total, values
from twinbed.readers.http import ab_numbers, product, quotient, read_percentiles, request_cautions, wrk_numbers
from twinbed.workloads.http.params import HttpParams

if TYPE_CHECKING:
    import pyarrow as pa

CLEARLY_EARLY = 0.98
"""Share of the duration below which a run that made all its requests was ended by the cap."""


@dataclass(frozen=True, slots=True)
class Client:
    """What one client measured: metric -> value."""

    host: str
    numbers: Numbers
    cautions: Sequence[Caution]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    """``requests``, or ``latencies``."""


def read(params: HttpParams, artifacts: Path) -> Extracted:
    """Raises OSError, ValueError or LookupError where an artifact is not there or not what the tool writes."""
    files = sorted(artifacts.glob(f"*/{params.tool}.txt"))
    if not files:
        raise FileNotFoundError(f"no {params.tool}.txt in {artifacts}")
    read_client = _wrk_client if params.tool == "wrk" else _ab_client
    clients = [read_client(params, file.parent) for file in files]
    if any(latencies.NAME in client.tables for client in clients):
        # One way for all, so that no request is counted in two.
        histograms = [ab_requests.read(file.with_name("ab.tsv"), file.parent.name, most=0) for file in files]
        clients = [replace(client, tables=each) for client, each in zip(clients, histograms, strict=True)]
    names = dict.fromkeys(name for client in clients for name in client.tables)
    return Extracted(
        list(values([(client.host, client.numbers) for client in clients], UNITS, together)),
        {name: _concatenated([client.tables[name] for client in clients if name in client.tables]) for name in names},
        [*(caution for client in clients for caution in client.cautions), *_warm_up(params, files)],
    )


def together(clients: Sequence[Numbers]) -> dict[str, float | None]:
    """The run's numbers from its clients': sums, and what follows from sums. Missing where a part is missing."""
    run = {name: total([client[name] for client in clients]) for name in clients[0] if name in SUMMED}
    spent = total([product(client["time_per_request"], client["requests"]) for client in clients])
    run["time_per_request"] = quotient(spent, run["requests"])
    run["time_between_requests"] = quotient(1.0, run["requests_per_second"])
    return run


def _ab_client(params: HttpParams, folder: Path) -> Client:
    report = _core.ab((folder / "ab.txt").read_bytes())
    numbers = dict(ab_numbers(report))
    done = report["complete_requests"]
    # A percentile of nothing, or of failures alone, is no time of a request.
    percentiles = read_percentiles((folder / "ab.csv").read_bytes(), done) if done and numbers["requests"] else {}
    numbers |= {f"total_time_p{p}": percentiles.get(p) for p in PERCENTILES}
    cautions = list(_cautions(params, folder.name, numbers, done))
    taken = report["duration_s"]
    if done == params.max_requests and taken is not None and taken < CLEARLY_EARLY * params.duration:
        detail = f"{done} requests after {taken:g} s of {params.duration:g} s{_of(folder.name)}"
        cautions.insert(0, Caution(Kind.REQUEST_CAP, detail))
    return Client(folder.name, numbers, cautions, ab_requests.read(folder / "ab.tsv", folder.name))


def _wrk_client(params: HttpParams, folder: Path) -> Client:
    report = _core.wrk((folder / "wrk.txt").read_bytes())
    numbers = dict(wrk_numbers(report, params.payload))
    return Client(folder.name, numbers, list(_cautions(params, folder.name, numbers, report["requests"])))


def _cautions(params: HttpParams, host: str, numbers: Numbers, done: int | None) -> Iterator[Caution]:
    yield from request_cautions(numbers, done, _of(host))
    size = numbers.get("document_bytes")
    if size is not None and size != params.payload and not numbers["non_2xx"]:
        raise ValueError(f"{host} was sent a document of {size:.0f} bytes where {params.payload} were asked for")


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
            yield Caution(Kind.WARM_UP, f"{wrong} of {params.warm_up_requests} requests{_of(file.parent.name)}")


def _of(host: str) -> str:
    """Which client, where there are several."""
    return "" if host == "client" else f" ({host})"


def _concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(tables)
