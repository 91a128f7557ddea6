"""Numbers of HTTP requests by metric, from ab's and wrk's reports, and cautions on requests that failed.

ab leaves out counts that are 0 (failures by reason, answers other than 2xx), and so does wrk: there, not printed means 0.
Everything else that is not printed is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from twinbed import _core
from twinbed.metrics.http import STAGES
from twinbed.model.caution import Caution, Kind
from twinbed.readers.clients import Numbers


def ab_numbers(report: _core.AbReport) -> Iterator[tuple[str, float | None]]:
    done, failed, taken = report["complete_requests"], report["failed_requests"], report["duration_s"]
    # ab counts an answer that never came as complete, and one request may fail in several ways.
    some = bool(done and not (failed and failed >= done))
    yield "requests", done if some else None
    yield "requests_per_second", report["requests_per_second"] if some else None
    yield "goodput", quotient(product(8, report["html_bytes"]), taken)
    yield "transfer_rate", report["received_bytes_per_second"]
    yield "time_taken", taken
    yield "transferred_bytes", report["transferred_bytes"]
    yield "document_transferred_bytes", report["html_bytes"]
    yield "document_bytes", report["document_bytes"] if some else None
    yield "concurrency", report["concurrency"]
    # Computed: the printed microseconds are too coarse for a fast server.
    yield "time_per_request", quotient(product(report["concurrency"], taken), done) if some else None
    yield "time_between_requests", quotient(taken, done) if some else None
    yield "keep_alive_requests", report["keep_alive_requests"]
    yield "failed_requests", failed
    failures, without = report["failures"], 0 if failed == 0 else None
    yield "failed_connect", failures["connect"] if failures else without
    yield "failed_receive", failures["receive"] if failures else without
    yield "failed_length", failures["length"] if failures else without
    yield "failed_exceptions", failures["exceptions"] if failures else without
    yield "failed_write", report["write_errors"] or 0
    yield "failed_timeout", None
    yield "non_2xx", report["non_2xx_responses"] or 0
    stages = (report["connect"], report["processing"], report["waiting"], report["total"])
    for stage, times in zip(STAGES, stages, strict=True):
        printed = times if some else None
        yield f"{stage}_time_min", printed and printed["min_s"]
        yield f"{stage}_time_mean", printed and printed["mean_s"]
        yield f"{stage}_time_sd", printed and printed["deviation_s"]
        yield f"{stage}_time_median", printed and printed["median_s"]
        yield f"{stage}_time_max", printed and printed["max_s"]


def read_percentiles(text: bytes, done: int) -> dict[int, float]:
    """Return per cent -> seconds, from ab's CSV file, which has milliseconds with three decimals.

    For per cent p ab looks up the request at place floor(done x p / 100 + 0.5) from 0.  Where that is ``done`` it looks past
    the last one and writes 0.000: the longest time is the percentile.
    """
    table = _core.ab_percentiles(text)
    times = dict(zip(table["percent"].to_pylist(), table["total_s"].to_pylist(), strict=True))
    if 100 not in times:
        raise ValueError("ab.csv ends before 100 %")
    return {p: times[100] if int(done * p / 100 + 0.5) >= done else time for p, time in times.items()}


def wrk_numbers(report: _core.WrkReport, payload: int | None) -> Iterator[tuple[str, float | None]]:
    done, taken = report["requests"], report["duration_s"]
    odd = report["non_2xx_or_3xx_responses"] or 0
    none: _core.WrkSocketErrors = {"connect": 0, "read": 0, "write": 0, "timeout": 0}
    failures = report["socket_errors"] or none
    yield "requests", done
    yield "requests_per_second", report["requests_per_second"] if done else None
    # wrk counts documents and headers together; answers other than 2xx are of unknown size.
    yield "goodput", quotient(product(8 * payload, done), taken) if payload is not None and not odd else None
    yield "transfer_rate", report["read_bytes_per_second"]
    yield "time_taken", taken
    yield "transferred_bytes", report["read_bytes"]
    yield "concurrency", report["connections"]
    yield "time_per_request", quotient(product(report["connections"], taken), done)
    yield "time_between_requests", quotient(taken, done)
    yield "failed_requests", failures["connect"] + failures["read"] + failures["write"] + failures["timeout"]
    yield "failed_connect", failures["connect"]
    yield "failed_receive", failures["read"]
    yield "failed_write", failures["write"]
    yield "failed_timeout", failures["timeout"]
    yield "non_2xx", odd
    # wrk prints 0.00us of no answer.
    latency = report["latency"] if done else None
    yield "total_time_mean", latency and latency["mean_s"]
    yield "total_time_sd", latency and latency["deviation_s"]
    yield "total_time_max", latency and latency["max_s"]
    percentiles = dict(report["percentiles"]) if done else {}
    yield "total_time_median", percentiles.get(50)
    for percent in (50, 75, 90, 99):
        yield f"total_time_p{percent}", percentiles.get(percent)


def request_cautions(numbers: Numbers, done: float | None, of_host: str = "") -> Iterator[Caution]:
    """Yield cautions on requests that failed and answers other than 2xx. ``of_host`` ends the text."""
    failed, odd = numbers["failed_requests"], numbers["non_2xx"]
    of = "of {} requests{}".format("?" if done is None else f"{done:.0f}", of_host)
    if failed:
        kinds = ", ".join(
            f"{name.removeprefix('failed_')} {number:.0f}"
            for name, number in numbers.items()
            if name.startswith("failed_") and name != "failed_requests" and number
        )
        yield Caution(Kind.FAILED_REQUESTS, f"{failed:.0f} failures {of}" + (f": {kinds}" if kinds else ""))
    if odd:
        yield Caution(Kind.NON_2XX, f"{odd:.0f} {of}")


def product(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left * right


def quotient(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None
