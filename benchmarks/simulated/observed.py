"""Made tables of observers: ``fingerprints`` and ``windows`` of runs on testbeds whose differences are planted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.simulated.little import InMemory, record
from twinbed.model.caution import Caution
from twinbed.model.record import Record
from twinbed.model.result import Pairing
from twinbed.model.tables import Outline, StudyDocument

LENGTHS = (4, 16, 64, 256, 1024)
BLOCKS = 4
DIRECTIONS = ("client_to_server", "server_to_client")
SCALE = {"buffers": "window_scale"}


@dataclass(frozen=True)
class Made:
    """A testbed: what its SYNs say, and how its packets come."""

    scale: int = 7
    """Of windows, in the server's SYN."""
    spread: float = 1.0
    """Added to the logarithms' standard deviation of the times between packets, in units of how far runs differ in it."""
    rate: float = 1000.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    syns: bool = True
    vendor: str = "02:00:0a"


def observed(
    testbeds: Mapping[str, Made], runs: int, seed: int = 0, *, paired: bool = False, cautions: Sequence[Caution] = ()
) -> InMemory:
    """``runs`` of each testbed in one cell; the first is the reference. Estimates of a block get better with its length: of n
    packets their error is 3 / sqrt(n) of what runs differ by."""
    noise = np.random.default_rng(seed)
    records: list[Record] = []
    prints: list[dict[str, Any]] = []
    windows: list[dict[str, Any]] = []
    metrics: list[dict[str, Any]] = []
    for replicate in range(runs):
        for name, made in testbeds.items():
            run = record(name, replicate, len(records), {"testbed": name})
            settings = {**run.settings, "testbed": {"name": name, **made.settings}}
            records.append(replace(run, settings=settings, cautions=tuple(cautions)))
            if made.syns:
                prints += [
                    _print(run.id, "passive", "server", "window_scale", value=float(made.scale)),
                    _print(run.id, "passive", "server", "tcp_options", text="mss,sackOK,ts,nop,wscale"),
                    _print(run.id, "passive", "client", "ttl", value=64.0),
                    _print(run.id, "host", "client", "mac_vendor", text=made.vendor),
                ]
            windows += _windows(run.id, made, noise)
            about = {"unit": "1/s", "layer": "application", "scale": "ratio", "host": "", "direction": "", "description": ""}
            rate = made.rate * float(np.exp(noise.normal(0, 0.02)))
            metrics.append({"run": run.id, "metric": "requests_per_second", "headline": True, "value": rate, **about})
    tables = {"fingerprints": prints, "windows": windows, "metrics": metrics}
    data = StudyDocument(comparison=Pairing.PAIRED if paired else Pairing.INDEPENDENT)
    outline = Outline("observed", tuple(testbeds), next(iter(testbeds)), data=data)
    return InMemory({name: pa.Table.from_pylist(rows) for name, rows in tables.items() if rows}, outline, records)


def _print(run: str, observer: str, host: str, feature: str, *, text: str | None = None, value: float | None = None) -> dict:
    shown = text if value is None else f"{value:g}"
    return {"run": run, "observer": observer, "host": host, "feature": feature, "text": shown, "value": value, "seen": 1}


def _windows(run: str, made: Made, noise: np.random.Generator) -> list[dict[str, Any]]:
    own = {direction: noise.normal(0, 1, 3) for direction in DIRECTIONS}
    rows = []
    for packets in LENGTHS:
        for block in range(BLOCKS):
            for direction in DIRECTIONS:
                error = noise.normal(0, 3 / np.sqrt(packets), 3)
                mean, spread, size = own[direction] + error
                row = {"run": run, "link": "client1", "direction": direction, "packets": packets, "block": block}
                row |= {"seconds": packets * 1e-4, "gap_log_mean": -9 + mean, "gap_log_sd": made.spread + spread}
                rows.append({**row, "bytes_mean": 900 + 10 * size, "timestamp_rate_hz": None if packets < 64 else 1000.0})
    return rows
