"""flent's ``.flent.gz``: JSON with metadata, series of values over time, and the tools' own samples.

``goodput`` is, for each direction, the sum over its streams of their means (uploads go from client to server), and
``probe_rtt_*`` are of all probes of all ping series.  Where several series make up one of them, each has a value too, with the
series' name as the host.  Means are over flent's raw samples, weighted by how long each lasts where the file has that; files
without raw samples have means over the series, which flent interpolates.  Averages and sums that flent computed are in the
table alone.  A tool's own mean that differs by more than a tenth is a caution: samples leave out a stream's first and last
moments.

Table ``series``: ``series``, ``at_s`` (from the start), ``value``, ``unit``; in base units, missing values null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Fact, Format, FormatError, Measurement, Source
from twinbed.imports.text.documents import document
from twinbed.imports.text.figures import chosen, count_of_json, of_json, table, total, values
from twinbed.imports.text.probing import COUNTS, ROUND_TRIP, loss, round_trips
from twinbed.metrics.iperf3 import METRICS as IPERF3
from twinbed.metrics.metric import Value
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document
from twinbed.model.members import list_at, object_at, objects_at

if TYPE_CHECKING:
    import pyarrow as pa

_START = re.compile(rb'"(?:FLENT_VERSION|NETPERF_WRAPPER_VERSION)"\s*:')
_UNITS = {
    "s": (1.0, "s"),
    "ms": (1e-3, "s"),
    "us": (1e-6, "s"),
    "bits/s": (1.0, "bit/s"),
    "Kbits/s": (1e3, "bit/s"),
    "Mbits/s": (1e6, "bit/s"),
    "Gbits/s": (1e9, "bit/s"),
    "bytes": (1.0, "bytes"),
    "packets": (1.0, "1"),
    "%": (0.01, "1"),
}
_COMPUTED = re.compile(r"(?:Average|Sum|Computing|Diff|Percentile|Fairness|Max|Smooth)\w*Runner")
_COMPUTED_NAME = re.compile(r".* (?:avg|sum|totals?)|TCP totals")
_WAYS = {"upload": "client_to_server", "download": "server_to_client"}
_STREAM = re.compile(r".*\b(upload|download)\b.*")
_APART = 0.1
RATES_BEFORE = 4
"""The version of flent's files since which samples of UDP_RR are milliseconds, as the series' unit says."""
(GOODPUT,) = chosen(IPERF3, ["goodput"])
METRICS = (GOODPUT, *ROUND_TRIP, *chosen(COUNTS, ["probes_sent", "probes_received", "probe_loss"]))


@dataclass(frozen=True, slots=True)
class _Series:
    """``samples`` are (value, seconds that it lasts or None), in base units."""

    name: str
    described: Document
    factor: float | None
    unit: str
    points: Sequence[float | None]
    samples: Sequence[tuple[float, float | None]]

    @property
    def computed(self) -> bool:
        runner = self.described.get("RUNNER")
        return bool(_COMPUTED.fullmatch(runner) if isinstance(runner, str) else _COMPUTED_NAME.fullmatch(self.name))

    @property
    def way(self) -> str:
        """Return the direction of a stream; empty for any other series."""
        stream = _STREAM.fullmatch(self.name.lower())
        return _WAYS[stream[1]] if stream and self.unit == "bit/s" else ""

    @property
    def pings(self) -> bool:
        return self.name.startswith("Ping") and self.unit == "s"

    @property
    def mean(self) -> float | None:
        lasting = [(value, seconds) for value, seconds in self.samples if seconds is not None and seconds > 0]
        if lasting and len(lasting) == len(self.samples):
            return sum(value * seconds for value, seconds in lasting) / sum(seconds for _, seconds in lasting)
        return sum(value for value, _ in self.samples) / len(self.samples) if self.samples else None


def _recognises(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and _START.search(head) is not None


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    whole = document(source.content())
    metadata, results = object_at(whole, "metadata"), object_at(whole, "results")
    if not isinstance(whole, dict) or not isinstance(whole.get("metadata"), dict) or not results:
        raise FormatError("is not what flent writes: metadata and results are missing")
    diagnostics: list[Diagnostic] = []
    series = _series(whole, metadata, results, diagnostics)
    if failed := count_of_json(metadata.get("FAILED_RUNNERS")):
        diagnostics.append(Diagnostic(f"{failed} of flent's runners failed"))
    numbers, cautions = [*_goodput(series), *_round_trips(series)], list(_contradictions(series))
    tables = {"series": _table(whole, series, diagnostics)}
    return [Measurement(numbers, tables, cautions, diagnostics, _facts(metadata), _started(metadata))]


def _series(whole: Document, metadata: Document, results: Document, diagnostics: list[Diagnostic]) -> list[_Series]:
    version = count_of_json(whole.get("version"))
    abouts, raws = object_at(metadata, "SERIES_META"), object_at(whole, "raw_values")
    series = []
    samplers = 0
    for name, points in results.items():
        if not isinstance(points, list):
            diagnostics.append(Diagnostic(f"series {name[:60]} is not a list"))
            continue
        described = object_at(abouts, name)
        unit = described.get("UNITS")
        if unit is None and "(ms)" in name:
            unit = "ms"
        if unit is None and ("::" in name or described.get("RUNNER") == "NullRunner"):
            samplers += 1
            continue
        if not isinstance(unit, str) or unit not in _UNITS:
            diagnostics.append(Diagnostic(f"series {name[:60]} has an unknown unit: {str(unit)[:40]}"))
            factor, base = None, ""
        else:
            factor, base = _UNITS[unit]
        scaled = [_scaled(point, factor, name, diagnostics) for point in points]
        raw = _in_milliseconds(objects_at(raws, name), name, version)
        samples = _samples(raw, factor) or [(point, None) for point in scaled if point is not None]
        series.append(_Series(name[:200], described, factor, base, scaled, samples))
    if samplers:
        text = (
            f"{samplers} series of samplers (sockets, queueing disciplines, CPUs) are not read: flent gives no units for them"
        )
        diagnostics.append(Diagnostic(text, harmless=True))
    return series


def _scaled(point: object, factor: float | None, name: str, diagnostics: list[Diagnostic]) -> float | None:
    number = of_json(point)
    if number is None and point is not None:
        diagnostics.append(Diagnostic(f"series {name[:60]} has a value that is not a number: {str(point)[:40]}"))
    return None if number is None or factor is None else number * factor


def _in_milliseconds(raw: Sequence[Document], name: str, version: float | None) -> Sequence[Document]:
    """Turn UDP_RR's transactions a second into milliseconds in raw samples, as flent does with files before its format 4."""
    if version is None or version >= RATES_BEFORE or "UDP" not in name:
        return raw
    rates = [(item, of_json(item.get("val")) if "dur" in item else None) for item in raw]
    return [item if rate is None else {**item, "val": 1000 / rate if rate > 0 else None} for item, rate in rates]


def _samples(raw: Sequence[Document], factor: float | None) -> list[tuple[float, float | None]]:
    if factor is None:
        return []
    samples = [(of_json(item.get("val")), of_json(item.get("dur"))) for item in raw]
    return [(value * factor, seconds) for value, seconds in samples if value is not None]


def _goodput(series: Sequence[_Series]) -> Iterator[Value]:
    for way in _WAYS.values():
        streams = [stream for stream in series if stream.way == way and not stream.computed]
        if not streams:
            continue
        yield Value(GOODPUT.name, total(stream.mean for stream in streams), GOODPUT.unit, direction=way)
        if len(streams) > 1:
            yield from (Value(GOODPUT.name, stream.mean, GOODPUT.unit, stream.name, way) for stream in streams)


def _round_trips(series: Sequence[_Series]) -> Iterator[Value]:
    probing = [probe for probe in series if probe.pings and not probe.computed]
    if not probing:
        return
    yield from values(_probed(probing), METRICS)
    if len(probing) > 1:
        for stream in probing:
            yield from values(_probed([stream]), METRICS, stream.name)


def _probed(series: Sequence[_Series]) -> dict[str, float | None]:
    """Return round-trip times, and counts where every tool prints them."""
    numbers = round_trips([value for probe in series for value, _ in probe.samples])
    sent, came = (
        [count_of_json(probe.described.get(name)) for probe in series] for name in ("PACKETS_SENT", "PACKETS_RECEIVED")
    )
    if None in sent or None in came:
        return numbers
    went, back = (sum(number or 0 for number in numbers_) for numbers_ in (sent, came))
    return numbers | {"probes_sent": went, "probes_received": back, "probe_loss": loss(went - back, went)}


def _contradictions(series: Sequence[_Series]) -> Iterator[Caution]:
    for entry in series:
        printed, mean = of_json(entry.described.get("MEAN_VALUE")), entry.mean
        if entry.computed or printed is None or mean is None or entry.factor is None:
            continue
        printed *= entry.factor
        if abs(mean - printed) > _APART * abs(printed):
            detail = f"{entry.name}: its samples have a mean of {mean:.6g} {entry.unit}, its tool printed {printed:.6g}"
            yield Caution(Kind.CONTRADICTED, detail)


def _table(whole: Document, series: Sequence[_Series], diagnostics: list[Diagnostic]) -> pa.Table:
    at = [of_json(moment) for moment in list_at(whole, "x_values")]
    rows: list[tuple[str, float | None, float | None, str]] = []
    for entry in series:
        if len(entry.points) != len(at):
            diagnostics.append(Diagnostic(f"series {entry.name[:60]} has {len(entry.points)} values at {len(at)} moments"))
        times = [*at, *[None] * len(entry.points)]
        rows += [(entry.name, time, point, entry.unit) for time, point in zip(times, entry.points, strict=False)]
    return table(
        {
            "series": ("string", _printable([row[0] for row in rows])),
            "at_s": ("float64", [row[1] for row in rows]),
            "value": ("float64", [row[2] for row in rows]),
            "unit": ("string", [row[3] for row in rows]),
        }
    )


def _printable(names: Sequence[str]) -> list[str]:
    """Replace halves of surrogates, which JSON may hold and no table can."""
    return [name.encode(errors="replace").decode() for name in names]


def _facts(metadata: Document) -> dict[str, Fact]:
    names = {"version": "FLENT_VERSION", "test": "NAME", "kernel": "KERNEL_RELEASE"}
    facts: dict[str, Fact] = {}
    for fact, key in names.items():
        text = metadata.get(key)
        if isinstance(text, str) and text:
            facts[fact] = text[:200]
    seconds = of_json(metadata.get("LENGTH"))
    if seconds is not None:
        facts["duration_s"] = seconds
    return facts


def _started(metadata: Document) -> float | None:
    """Return T0, which is in UTC where its zone is written; older files have none."""
    text = metadata.get("T0")
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.timestamp() if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


FORMATS = (Format("flent", "flent's data files (.flent.gz)", METRICS, _recognises, _read, rate="goodput"),)
