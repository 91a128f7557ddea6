"""Formats ``wrk`` and ``wrk2``: what these load generators print, with ``--latency`` or without; several runs in one text.

The metrics are the workload's ``http``.  The document's size is not told, so the goodput is null: the rate that is printed
counts headers.  wrk scales times by 1000 and 60, rates by 1000, sizes by 1024 (KB, MB, GB), and prints two decimals; socket
errors and answers other than 2xx and 3xx only where there were any.

wrk2 sends at a fixed rate and takes times from when a request was due, not from when it was sent.  That is another quantity:
``scheduled_time_...``.  Its uncorrected times (``--u_latency``) are wrk's, ``total_time_...``.  With ``--latency`` mean and
deviation are those of the detailed spectrum, in milliseconds with three decimals, which is the table ``latency_spectrum``.
Times of its calibration, of ten seconds, are in none of them, the requests are.  DeathStarBench's has the 99th percentile where
wrk has the longest time: the heading of the column says which it is.
Source: units.c and wrk.c of wrk 4.1, and the README of wrk2.
"""

from __future__ import annotations

from twinbed.imports.formats.wrk.report import Wrk
from twinbed.imports.formats.wrk.scheduled import Wrk2

wrk = Wrk()
wrk2 = Wrk2()
