"""Formats ``iperf3-json`` and ``iperf3-text``: what iperf3 wrote, as the workload ``iperf3`` would have it.

A file may hold several documents or runs, with other text between them; each is a measurement.  Metrics mean the same as for
the workload (``workloads/iperf3``): sums over interval records, without the omitted seconds.  Each end records only its own
side.  The other end's numbers are from its records where the client fetched them (``--get-server-output``), and else from
iperf3's summary:

* bytes and seconds of the other end are its summary's;
* its counts (retransmissions, datagrams, losses) too, unless seconds were omitted, as iperf3 counts those in;
* there are none in a server's output, nor where iperf3 gave an error: the zeros there were not measured;
* a number that has no summary, such as the standard deviation of the goodput, is null.

``interarrival_jitter`` is the mean over the receiver's intervals, null where only the sender's are there;
``interarrival_jitter_last`` is what iperf3's summary calls jitter: the smoothed variation at the end alone.  With ``--bidir``
values have a direction.

Text has three digits, and MBytes of 2^20 bytes where Mbits have 10^6 bits.  A file that is cut has the numbers of its whole
intervals.
Source: iperf3(1), and what iperf 3.12 wrote; older versions lack ``sender`` and summaries of UDP by side.
"""

from __future__ import annotations

from twinbed.imports.formats.iperf3.report import iperf3_json
from twinbed.imports.formats.iperf3.text import iperf3_text

FORMATS = (iperf3_json, iperf3_text)
