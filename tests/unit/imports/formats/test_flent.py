"""flent's files before format 4 hold samples of UDP_RR as transactions a second, under a unit of milliseconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from twinbed import registry
from twinbed.imports.text.source import File, read

RATES = [50.0, 40.0] * 5
"""A second: flent itself shows 1000 / val milliseconds, 20 and 25, where it loads such a file."""


def means(folder: Path, version: int, samples: list[float]) -> dict[str, float | None]:
    name = "Ping (ms) UDP BE1"
    raw = [{"t": 1500000000 + 0.2 * at, "dur": 0.2, "val": value} for at, value in enumerate(samples)]
    icmp = [{"t": 1500000000 + 0.2 * at, "val": 20.1, "seq": at} for at in range(len(samples))]
    file = folder / f"{version}.flent"
    content = {
        "metadata": {"FLENT_VERSION": "1.0.1", "SERIES_META": {each: {"UNITS": "ms"} for each in (name, "Ping (ms) ICMP")}},
        "version": version,
        "x_values": [0.2 * at for at in range(len(samples))],
        "results": {name: [20.0, 25.0] * (len(samples) // 2), "Ping (ms) ICMP": [20.1] * len(samples)},
        "raw_values": {name: raw, "Ping (ms) ICMP": icmp},
    }
    file.write_text(json.dumps(content))
    (measurement,) = read(registry.formats()["flent"], File(file, file.name), {})
    return {each.host: each.value for each in measurement.values if each.metric == "probe_rtt_mean"}


@pytest.mark.parametrize("version", [2, 3])
def test_rates_of_old_formats_are_times(tmp_path: Path, version: int) -> None:
    found = means(tmp_path, version, RATES)
    assert found["Ping (ms) UDP BE1"] == pytest.approx(0.0225)
    assert found[""] == pytest.approx((0.0225 + 0.0201) / 2)
    assert found == pytest.approx(means(tmp_path, 4, [1000 / rate for rate in RATES]))


def test_samplers_are_one_line_and_no_fault(tmp_path: Path) -> None:
    """As flent writes them for --socket-stats and for hosts' queueing disciplines and CPUs: without a unit, by a NullRunner."""
    series = {"TCP upload": {"UNITS": "Mbits/s", "RUNNER": "NetperfDemoRunner"}}
    series |= {name: {"RUNNER": "NullRunner"} for name in ("TCP upload::tcp_rtt", "TCP upload::tcp_cwnd", "cpu_stats_a")}
    content = {
        "metadata": {"FLENT_VERSION": "2.0.0", "SERIES_META": series},
        "version": 4,
        "x_values": [0.0, 0.2],
        "results": {name: [8.0, 9.0] for name in series},
        "raw_values": {},
    }
    (tmp_path / "1.flent").write_text(json.dumps(content))
    (found,) = read(registry.formats()["flent"], File(tmp_path / "1.flent", "1.flent"), {})
    assert [(each.text.partition(" (")[0], each.harmless) for each in found.diagnostics] == [("3 series of samplers", True)]
    assert [value.value for value in found.values if value.metric == "goodput"] == [8.5e6]
    assert set(found.tables["series"]["series"].to_pylist()) == {"TCP upload"}
    # Another series without a unit is not taken for one of them.
    series["Odd"] = {}
    content["results"]["Odd"] = [1.0, 2.0]  # type: ignore[index]
    (tmp_path / "2.flent").write_text(json.dumps(content))
    (found,) = read(registry.formats()["flent"], File(tmp_path / "2.flent", "2.flent"), {})
    assert [each.harmless for each in found.diagnostics] == [False, True]
