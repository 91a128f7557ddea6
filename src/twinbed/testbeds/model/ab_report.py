"""What ab writes of a run: its report, ``-e`` and ``-g``, in the formats and the rounding of ab.c (Apache httpd 2.4).

Percentiles past the last request, for which ab writes 0.000, have the longest time here. Times of the day begin at 0 (UTC):
a model has none.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from statistics import fmean

from twinbed.testbeds.model.requests import Request, Seen

_SERVED = (50, 66, 75, 80, 90, 95, 98, 99)


def report(seen: Seen, *, url: tuple[str, int, str], server: str, threads: int, document_bytes: int) -> str:
    """Standard output. ``url``: host, port, path."""
    host, port, path = url
    done, taken_s = len(seen.requests), seen.taken_s
    lines = [
        "This is ApacheBench, Version 2.3 <$Revision$>",
        "",
        f"Benchmarking {host} (be patient).....done",
        "",
        "",
        f"Server Software:        {server}",
        f"Server Hostname:        {host}",
        f"Server Port:            {port}",
        "",
        f"Document Path:          {path}",
        f"Document Length:        {document_bytes} bytes",
        "",
        f"Concurrency Level:      {threads}",
        f"Time taken for tests:   {taken_s:.3f} seconds",
        f"Complete requests:      {done}",
        "Failed requests:        0",
        f"Total transferred:      {seen.read_bytes} bytes",
        f"HTML transferred:       {seen.document_bytes} bytes",
    ]
    if done and taken_s > 0:
        lines += [
            f"Requests per second:    {done / taken_s:.2f} [#/sec] (mean)",
            f"Time per request:       {threads * taken_s * 1000 / done:.3f} [ms] (mean)",
            f"Time per request:       {taken_s * 1000 / done:.3f} [ms] (mean, across all concurrent requests)",
            f"Transfer rate:          {seen.read_bytes / 1024 / taken_s:.2f} [Kbytes/sec] received",
            *_times(seen.requests),
        ]
    return "\n".join(lines) + "\n"


def _times(requests: Sequence[Request]) -> list[str]:
    stages = {
        "Connect:": [each.connect_s for each in requests],
        "Processing:": [each.total_s - each.connect_s for each in requests],
        "Waiting:": [each.waiting_s for each in requests],
        "Total:": [each.total_s for each in requests],
    }
    lines = ["", "Connection Times (ms)", "              min  mean[+/-sd] median   max"]
    for name, times in stages.items():
        mean = fmean(times)
        sd = math.sqrt(math.fsum((each - mean) ** 2 for each in times) / (len(times) - 1)) if len(times) > 1 else 0.0
        ordered = sorted(times)
        half = len(ordered) // 2
        median = ordered[half] if len(ordered) % 2 else (ordered[half] + ordered[half - 1]) / 2
        least, middle, most = (_ms(each) for each in (ordered[0], median, ordered[-1]))
        lines.append(f"{name:<11} {least:5d} {_ms(mean):4d} {sd * 1000:5.1f} {middle:6d} {most:7d}")
    totals = sorted(stages["Total:"])
    lines += ["", "Percentage of the requests served within a certain time (ms)"]
    lines += [f" {percent:3d}%  {_ms(_percentile(totals, percent)):5d}" for percent in _SERVED]
    return [*lines, f" 100%  {_ms(totals[-1]):5d} (longest request)"]


def percentiles(requests: Sequence[Request]) -> str:
    """The file of ``-e``."""
    totals = sorted(each.total_s for each in requests)
    rows = [f"{percent},{_percentile(totals, percent) * 1000:.3f}" for percent in range(101)] if totals else []
    return "\n".join(["Percentage served,Time in ms", *rows]) + "\n"


def rows(requests: Sequence[Request]) -> str:
    """The file of ``-g``: sorted by total time."""
    lines = ["starttime\tseconds\tctime\tdtime\tttime\twait"]
    for each in sorted(requests, key=lambda each: each.total_s):
        begun = time.asctime(time.gmtime(each.started_s))
        connect, total = _ms(each.connect_s), _ms(each.total_s)
        processing, waiting = _ms(each.total_s - each.connect_s), _ms(each.waiting_s)
        lines.append(f"{begun}\t{int(each.started_s)}\t{connect}\t{processing}\t{total}\t{waiting}")
    return "\n".join(lines) + "\n"


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(int(0.5 + len(ordered) * percent / 100), len(ordered) - 1) if percent else 0]


def _ms(seconds: float) -> int:
    return int((seconds * 1e6 + 500) // 1000)
