"""The meaning of tables and columns, for ``dictionary.csv`` and the README of exported tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from twinbed.api import Results

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = {
    "answers": "one row per part of a run with very many requests: how many answers it had",
    "applied": "one row per setting that was applied and read back",
    "cautions": "one row per reason to doubt a run",
    "clocks": "one row per pair: how its clocks were compared (docs/latency.md)",
    "connections": "one row per connection of the captures, as in Zeek's conn.log (docs/connections.md)",
    "counters": "one row per counter of a host, before and after the run",
    "delay_windows": "one row per window and direction of the probes' delays (docs/latency.md)",
    "events": "one row per kind of event of a kernel, by device: how often, how long (docs/capacity.md)",
    "kernel_messages": "one row per message of a host's kernel log during the run, by the machine's clock (docs/stalls.md)",
    "stalls": "one row per period in which a TCP connection in the captures waited and nothing happened (docs/stalls.md)",
    "exchanges": "one row per request and its response in the captures (docs/packets.md)",
    "facts": "one row per fact of a run's passport",
    "fingerprints": "one row per feature of a host that gives it away (docs/fingerprint.md)",
    "flows": "one row per TCP connection of the captures, with tcptrace's statistics (docs/flows.md)",
    "interrupts": "one row per line of interrupts of a kernel, over all CPUs",
    "intervals": "one row per interval and end of iperf3's reports",
    "kernel_log": "one row per line of a host's kernel log",
    "latencies": "one row per range of times: how many requests of a run took so long, where they are too many for a row each",
    "losses": "one row per place where packets may be lost on their way, and how many were there (docs/coverage.md)",
    "metrics": "one row per measured value",
    "packetisation": "one row per TCP connection and direction: how payload became packets (docs/packets.md)",
    "paths": "one row per connection that two captures have: loss, delay, splits, joins (docs/packets.md)",
    "probes": "one row per latency probe (docs/latency.md)",
    "reorder_buffer_occupancy_density": "one row per number of packets held to restore order: at how many arrivals (RFC 5236)",
    "reorder_density": "one row per displacement of packets on a path: how many had it (RFC 5236)",
    "requests": "one row per request, by ab or by a program of the user",
    "runs": "one row per run",
    "segment_sizes": "one row per range of payload sizes: how many segments had it (docs/packets.md)",
    "sockets": "one row per sample of a TCP connection's end, as its kernel has it (docs/sockets.md)",
    "step_waits": "one row per wait of an HTTP request for a timer, by link (docs/anatomy.md)",
    "streams": "one row per UDP stream of the captures (docs/packets.md)",
    "system_call_probes": "one row per probe that counted system calls (docs/chain.md)",
    "system_calls": "one row per program and system call: how often, how long",
    "transitions": "one row per program and a call after up to three others: how often (docs/chain.md)",
    "windows": "one row per block of packets of a link's direction (docs/packets.md)",
}
EVERYWHERE = {
    "run": "the run's identity; joins the tables",
    "testbed": "the run's testbed",
    "host": "the host it was measured on; empty for the run as a whole",
    "direction": "client_to_server or server_to_client; empty where it has none",
    "link": "where it was captured",
    "program": "the program's name; missing where it is not known",
    "call": "the system call",
}
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "runs": {
        "cell": "identity of the combination of levels",
        "replicate": "from 0",
        "block": "from 0; runs are in random order within a block",
        "position": "place in the order of all runs, from 0",
        "status": "complete or failed; a failed run has no values",
        "failed_phase": "what failed",
        "reason": "why it failed",
        "started_s": "when, since 1970-01-01 UTC",
    },
    "metrics": {
        "metric": "its name; README.md says what each is",
        "unit": "base unit of the value",
        "layer": "application, os, network or host",
        "scale": "Stevens's scale: nominal, ordinal, interval or ratio",
        "headline": "whether summaries show it",
        "description": "what was measured",
        "margin": "for an interval scale: the largest difference that counts as equivalent, in the unit",
        "value": "in the unit; missing where it could not be measured",
        "low": "lower end of the 95 % CI of a total that was estimated from a sample of the hosts (docs/packets.md)",
        "high": "upper end of that CI",
    },
    "cautions": {"kind": "which reason", "detail": "what was found", "subject": "what it is about"},
    "facts": {"place": "the host, or what else it is of", "fact": "its name", "value": "as text"},
    "applied": {
        "subject": "what it was set on",
        "setting": "its name",
        "asked": "what was asked for, as text",
        "found": "what was read back, as text",
        "source": "how it was read back",
    },
    "intervals": {
        "end": "which end reports: client sends, server receives",
        "start_s": "since the test began",
        "seconds": "its length",
        "bytes": "payload in it",
        "datagrams": "sent, or received and missed",
    },
    "requests": {
        "start_s": "when: by ab since 1970-01-01 UTC, in whole seconds; else since the first request",
        "connect_s": "until the connection was there",
        "processing_s": "from there until the answer was whole",
        "total_s": "both",
        "waiting_s": "until the first byte of the answer",
    },
    "latencies": {
        "source": "exchanges or requests: the table that would have one row for each",
        "place": "the link, or the host",
        "from_ns": "the range's lower end; missing for requests without an answer",
        "to_ns": "the range's upper end, which belongs to the next",
        "requests": "how many",
    },
    "answers": {"start_s": "since the first request", "seconds": "its length", "answers": "how many were complete in it"},
    "counters": {
        "source": "the file or command",
        "key": "the counter",
        "kind": "how it counts",
        "difference": "last less first",
        "seconds": "between the two",
    },
    "events": {
        "source": "net or kvm",
        "event": "the tracepoint, or what is timed",
        "device": "the network device; missing where it is not known",
        "hits": "those seen",
        "count": "their estimated number over the whole time",
        "seconds": "their estimated sum over the whole time",
        "least_s": "the shortest seen",
        "mean_s": "the mean of those seen",
        "most_s": "the longest seen",
    },
    "fingerprints": {
        "observer": "passive (of captures), active (of answers) or host (of a program on it)",
        "feature": "its name",
        "text": "its value as text; missing where there is none",
        "value": "its value where it is a number",
        "seen": "how many packets or probes it rests on",
    },
    "interrupts": {"line": "its chip and what handles it, or the architecture's label", "count": "how many came"},
    "losses": {"pair": "the pair of hosts", "stage": "the place", "packets": "how many"},
    "segment_sizes": {
        "least_payload_bytes": "the range's lower end",
        "most_payload_bytes": "the range's upper end",
        "segments": "as captured",
        "wire_packets": "as they are on the wire",
    },
    "sockets": {
        "socket": "its number on the host",
        "congestion": "its congestion control",
        "time_s": "when, since 1970-01-01 UTC, by the host's clock",
        "state": "of the connection (RFC 9293)",
        "ca_state": "of its congestion control",
        "cwnd": "congestion window, in segments",
        "ssthresh": "slow start threshold, in segments; missing before the first loss",
        "srtt_s": "smoothed round-trip time",
        "delivery_rate": "in bit/s",
        "pacing_rate": "in bit/s; missing where there is no limit",
        "app_limited": "whether the application limited the last estimate of delivery_rate",
        "busy_s": "time in which there was something to send or to be acknowledged, since the connection began",
        "rwnd_limited_s": "of this: held up by the receive window",
        "sndbuf_limited_s": "of this: held up by the send buffer",
    },
    "system_calls": {"calls": "how often", "seconds": "time in it", "errors": "calls that failed", "bytes": "read or written"},
    "transitions": {
        "before_3": "the call three before",
        "before_2": "the call two before",
        "before_1": "the call before",
        "count": "how often",
    },
}
UNITS = {"_s": "s", "_ns": "ns", "_bytes": "bytes", "seconds": "s", "bytes": "bytes", "_share": "1"}
"""The end of a column's name -> its unit."""


def dictionary(name: str, table: pa.Table, factors: Sequence[str]) -> Iterator[dict[str, str | None]]:
    """Yield a row a column: table, column, type, unit, meaning; missing where the name or the manual is enough."""
    own = COLUMNS.get(name, {})
    for field in table.schema:
        meaning = own.get(field.name) or EVERYWHERE.get(field.name)
        factor = field.name.removeprefix("factor:")
        if factor in factors and (factor != field.name or f"factor:{factor}" not in table.column_names):
            meaning = "the level of this factor"
        yield {
            "table": name,
            "column": field.name,
            "type": str(field.type),
            "unit": next((unit for ending, unit in UNITS.items() if field.name.endswith(ending)), None),
            "meaning": meaning,
        }


Metric = tuple[str, str, str, str, str]


def described(results: Results) -> list[Metric]:
    """Return metric, unit, layer, scale, description, of every metric of the results."""
    if "metrics" not in results.tables():
        return []
    table = results.metrics()
    columns = ("metric", "unit", "layer", "scale", "description")
    return sorted(set(zip(*(table[name].to_pylist() for name in columns), strict=True)))


def readme(results: Results, rows: Mapping[str, int], metrics: Sequence[Metric]) -> str:
    """Return Markdown: the tables with their rows, and the metrics."""
    factors = ", ".join(results.factors) or "none"
    lines = [
        f"# Tables of {results.name}",
        "",
        f"Testbeds: {', '.join(results.testbeds)}; reference: {results.reference}. Factors: {factors}.",
        "Base units throughout: seconds, bytes, bit/s, 1. A missing value is an empty field in CSV and null in Parquet,",
        'never 0; an empty text is `""` in CSV. `run` joins the tables. `dictionary.csv` has one row per column.',
        "",
        "| table | rows | what a row is |",
        "|---|---|---|",
        *(f"| {name} | {count:,} | {TABLES.get(name, '')} |" for name, count in rows.items()),
        "",
    ]
    if metrics:
        lines += ["## Metrics", "", "| metric | unit | layer | scale | meaning |", "|---|---|---|---|---|"]
        lines += ["| " + " | ".join(text.replace("|", "\\|") for text in metric) + " |" for metric in metrics]
        lines.append("")
    return "\n".join(lines)
