"""``irtt client -o``: the JSON of irtt 0.9, with every probe's stamps.

Values and the tables ``probes``, ``delay_windows`` and ``clocks`` are those of the instrument ``latency``, for one pair: see
docs/latency.md.  The file does not say whether the hosts' clocks are synchronised, so one-way delays are null; jitter, loss
each way and the clocks' offset need no synchronised clocks.  Windows are of a second, or of as long as 20 probes take.

Where irtt's own statistics contradict its probes, a caution gives both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from twinbed.contracts.format import Fact, Format, FormatError, Measurement, Source
from twinbed.imports.text.documents import document
from twinbed.imports.text.figures import count_of_json, of_json
from twinbed.metrics.latency import METRICS
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document
from twinbed.model.members import object_at, text_at
from twinbed.readers.latency.files import LEAST

if TYPE_CHECKING:
    import pyarrow as pa

    from twinbed.readers.latency.clocks import Clocks
    from twinbed.readers.latency.probes import Pair
    from twinbed.readers.latency.summary import PairSummary

_START = re.compile(rb'\A\s*\{\s*"version":\s*\{\s*"irtt":\s*"')
_MOST_NS = 1 << 62
"""The largest stamp: differences of two still fit in 64 bits."""
_APART = 1e-6
"""Share by which rounding to nanoseconds may change a mean."""


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    from twinbed.readers.latency import clocks, summary

    text = source.text().encode()
    report = document(text)
    if not isinstance(report, dict) or not isinstance(report.get("stats"), dict) or not isinstance(report.get("config"), dict):
        raise FormatError("is not what irtt's client writes: config and stats are missing")
    pair = _pair(text, report)
    try:
        related = clocks.relate(pair, None, None)
        window_s = max(1.0, LEAST * (of_json(_params(report).get("interval")) or 0.0) / 1e9)
        pair_summary = summary.summarise(pair, related, window_s)
        values = list(summary.values([pair_summary], ""))
        values += [replace(value, host="") for value in summary.clock_values(pair_summary)]
        tables = {
            "probes": summary.probes_table(pair_summary),
            "delay_windows": summary.windows_table(pair_summary, window_s),
            "clocks": _clocks(pair_summary),
        }
    except (ValueError, ArithmeticError) as error:
        raise FormatError(f"its stamps cannot be compared: {error}") from error
    mean_s = next(value.value for value in values if value.metric == "probe_rtt_mean")
    cautions = [*_steps(related), *_contradictions(object_at(report, "stats"), pair, mean_s)]
    return [Measurement(values, tables, cautions, facts=_facts(report), started_s=float(pair.wall.client_sent[0]) / 1e9)]


def _pair(text: bytes, report: Document) -> Pair:
    from twinbed.readers.latency import irtt
    from twinbed.readers.latency.probes import MISSING

    config, stats = object_at(report, "config"), object_at(report, "stats")
    if of_json(stats.get("duration")) is None or (
        stats.get("duplicates") is not None and count_of_json(stats["duplicates"]) is None
    ):
        raise FormatError("its stats have no duration, or no count of duplicates")
    ends = [str(config.get(name) or "")[:100] for name in ("local_address", "remote_address")]
    try:
        pair = irtt.parsed(text, "the file", *ends)
    except (ValueError, LookupError, OverflowError, TypeError) as error:
        raise FormatError(str(error)) from error
    for stamps in (pair.wall, pair.steady):
        for times in (stamps.client_sent, stamps.server_received, stamps.server_sent, stamps.client_received):
            if ((times != MISSING) & (times > _MOST_NS)).any():
                raise FormatError("a stamp is later than any clock shows")
        if (stamps.client_sent == MISSING).any():
            raise FormatError("a probe has no time of sending")
    return pair


def _params(report: Document) -> Document:
    return object_at(object_at(report, "config"), "params")


def _clocks(pair_summary: PairSummary) -> pa.Table:
    import pyarrow as pa

    from twinbed.readers.latency import summary

    return pa.Table.from_pylist([summary.clocks_row(pair_summary)], summary.clocks_schema())


def _steps(related: Clocks) -> Iterator[Caution]:
    for step in related.steps:
        yield Caution(Kind.CLOCK_STEP, f"{step.host}: by {step.by_s:+.6g} s, {step.at_s:.1f} s after the first probe")
    if not related.steps:
        yield Caution(Kind.CLOCKS_APART, "the file does not say whether the hosts' clocks are synchronised")


def _contradictions(stats: Document, pair: Pair, mean_s: float | None) -> Iterator[Caution]:
    for name, ours in (("packets_sent", pair.sent), ("packets_received", pair.received)):
        theirs = count_of_json(stats.get(name))
        if theirs is not None and theirs != ours:
            yield Caution(Kind.CONTRADICTED, f"{name}: {ours} by the probes, {theirs} by irtt's stats")
    mean_ns = of_json(object_at(stats, "rtt").get("mean"))
    if mean_ns is not None and mean_s is not None and abs(mean_s * 1e9 - mean_ns) > 1 + _APART * abs(mean_ns):
        yield Caution(Kind.CONTRADICTED, f"mean round-trip time: {mean_s:.9g} s by the probes, {mean_ns / 1e9:.9g} s by stats")


def _facts(report: Document) -> dict[str, Fact]:
    facts: dict[str, Fact] = {"protocol": "udp"}
    version = text_at(object_at(report, "version"), "irtt")
    if version is not None:
        facts["version"] = version
    params = _params(report)
    for name, key, scale in (("duration_s", "duration", 1e-9), ("interval_s", "interval", 1e-9), ("probe_bytes", "length", 1)):
        number = of_json(params.get(key))
        if number is not None:
            facts[name] = number * scale
    return facts


FORMATS = (Format("irtt-json", "irtt's JSON, with every probe", METRICS, _START.match, _read),)
