"""The settings of the workload ``http``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from twinbed.contracts.params import WorkloadParams
from twinbed.model.declaration import Also
from twinbed.model.units import Duration, Size, Switch

AB_TSV_BYTES = 48
"""Of one request in ab's gnuplot file."""
BEGIN_AND_END_S = 1.0
"""Server start, warm-up and the writing of results, beside the time measured."""


class HttpParams(WorkloadParams):
    """What clients ask of the web server."""

    tool: Annotated[Literal["ab", "wrk"], Also(("client", "generator"))] = Field(
        "ab", description="load generator: ab (ApacheBench) or wrk"
    )
    threads: Annotated[int, Also(("concurrency", "connections", "workers", "parallel"))] = Field(
        1, ge=1, le=500, examples=[10], description="requests in flight of each client: ab -c; wrk -t and -c"
    )
    payload: Annotated[Size, Also(("size", "file_size", "bytes", "page"))] = Field(
        500, ge=1, le=2**36, examples=["16KiB"], description="size of the document, such as 500B or 1MiB"
    )
    duration: Annotated[Duration, Also(("time", "seconds"))] = Field(
        10.0, ge=1, le=86400, examples=["30s"], description="how long to ask, whole seconds such as 90s"
    )
    max_requests: int = Field(500_000, ge=1, le=50_000_000, description="requests after which ab stops early; wrk has none")
    keep_alive: Annotated[Switch, Also(("persistent", "connection"))] = Field(
        False, description="on: many requests a connection; off: one (wrk: Connection: close)"
    )
    nagle: Literal["on", "off"] | None = Field(
        None,
        description="on: the server's TCP may hold a small write until what it sent before is acknowledged; off: never "
        "(TCP_NODELAY); null: nginx's own, off for connections that are kept",
    )
    https: Annotated[Switch, Also(("tls", "ssl"))] = Field(
        False, description="on: TLS with a self-signed certificate, not verified by the clients"
    )
    warm_up_requests: Annotated[int, Also(("warmup", "warm_up"))] = Field(
        1, ge=0, le=10_000, description="requests of each client before instruments start; 0: none"
    )

    @model_validator(mode="after")
    def _possible(self) -> HttpParams:
        if self.duration != int(self.duration):
            raise ValueError(f"duration must be whole seconds, as {self.tool} knows no others; it is {self.duration:g} s")
        if self.tool == "ab" and self.max_requests < self.threads:
            raise ValueError(f"max_requests ({self.max_requests}) is less than threads ({self.threads}), which ab refuses")
        return self

    @property
    def port(self) -> int:
        return 443 if self.https else 80

    def url(self, address: str) -> str:
        """wrk looks the port of a URL without one up in /etc/services, which the image does not have."""
        host = f"[{address}]" if ":" in address else address
        port = f":{self.port}" if self.tool == "wrk" else ""
        return f"{'https' if self.https else 'http'}://{host}{port}/payload"

    def estimate_seconds(self) -> float:
        return self.duration + BEGIN_AND_END_S

    def estimate_bytes(self, link_rate: int) -> float:
        """Bytes of per-request times a second, at most: as many requests as the cap or the link lets through."""
        if self.tool != "ab":
            return 0.0
        return AB_TSV_BYTES * min(self.max_requests / self.duration, link_rate / 8 / self.payload)
