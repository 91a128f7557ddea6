"""What the instrument ``stations`` costs: requests/s of ab (one thread, 500 B) in containers, with it over without it.

The value is the median over pairs of runs (``instrument_cost``), in percent lost; the range its 95 % interval from order
statistics.  This workload is the worst for it: a request of 0.1 ms passes some 60 stations and calls, and two probes see each.
The same with a tenth of the connections (``share``), whose records are made for these alone.
"""

from __future__ import annotations

import statistics

from benchmarks import Figure
from benchmarks.instrument_cost import interval, side_by_side

PAIRS = 10
SHARE = 0.1
STUDY = """
study: stations
testbeds: {{container: {{driver: container, cpus: auto}}}}
workload: {{kind: http, tool: ab, payload: 500B, duration: 2s, max_requests: 10000000}}
instruments: {{stations: {{share: {share}, limit: 512MiB}}}}
factors: {{instruments: [none, stations]}}
replicates: 1
order: sequential
"""


def run() -> list[Figure]:
    figures = []
    for title, share in (("all connections", 1.0), (f"{SHARE:.0%} of the connections", SHARE)):
        alone, lost = side_by_side(STUDY.format(share=share), PAIRS)
        if not figures:
            figures.append(
                Figure("ab 500 B in containers, no instrument", statistics.median(alone), (alone[0], alone[-1]), "requests/s")
            )
        figures.append(Figure(f"  lost to stations, {title}", statistics.median(lost), interval(lost), "%"))
    return figures
