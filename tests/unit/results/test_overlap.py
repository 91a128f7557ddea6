"""Clients that did not start together: the record keeps their times, extraction has rates of the time in which all ran."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from synthetic_results import write_study
from twinbed.model.clients import ClientTimes, overlap_share, skew_s
from twinbed.model.record import Record
from twinbed.results.extract import extract
from twinbed.workloads.iperf3 import iperf3

GOLDEN = Path(__file__).parents[2] / "golden" / "iperf3" / "apart"
APART = (ClientTimes("client1", 0.0, 7.196005), ClientTimes("client2", 1.502556, 8.507645))
TOGETHER = (ClientTimes("client1", 0.0, 7.196005), ClientTimes("client2", 0.049, 7.054))


def results(folder: Path, clients: tuple[ClientTimes, ...]) -> dict[tuple[str, str], float | None]:
    """Values of one run with the recorded reports and these times, by (metric, host)."""
    write_study(folder, ["bed"], {"n": [1]}, 1, lambda testbed, levels, replicate: {})
    [home] = (folder / "runs").iterdir()
    shutil.rmtree(home / "artifacts")
    shutil.copytree(GOLDEN, home / "artifacts")
    record = Record.from_json(json.loads((home / "run.json").read_text()))
    files = sorted((home / "artifacts").glob("*/*"))
    record = replace(
        record,
        settings={
            **record.settings,
            "topology": {"kind": "star", "pairs": 2, "uplink": "10mbit"},
            "workload": {"kind": "iperf3", "protocol": "udp", "duration": "6s", "omit": "1s"},
        },
        clients=clients,
        artifacts=[{"path": str(file.relative_to(home)), "bytes": file.stat().st_size} for file in files],
    )
    (home / "run.json").write_text(json.dumps(record.to_json()))
    table = extract(folder, {"iperf3": iperf3}, {}).table("metrics").to_pylist()
    return {(row["metric"], row["host"]): row["value"] for row in table}


def test_rates_are_of_the_common_time_beyond_the_limit_alone(tmp_path: Path) -> None:
    apart, together = results(tmp_path / "apart", APART), results(tmp_path / "together", TOGETHER)
    assert apart["loss", ""] == 2241 / 5713
    assert together["loss", ""] == pytest.approx((871 + 1819) / (4286 + 4356))
    # (7.196005 - 1.502556) of 7.196005 s and of 7.005089 s.
    assert apart["overlap_share", ""] == pytest.approx(2 * 5.693449 / 14.201094)
    assert together["overlap_share", ""] == pytest.approx(2 * 7.005 / 14.201005)


def test_shares_and_skews_of_times() -> None:
    assert skew_s(APART) == 1.502556 and skew_s(APART[:1]) == skew_s([]) == 0.0
    assert overlap_share(APART[:1]) is None and overlap_share([ClientTimes("a", 0.0, 0.0)] * 2) is None
    assert overlap_share([ClientTimes("a", 0.0, 2.0), ClientTimes("b", 3.0, 4.0)]) == 0.0
    assert overlap_share([ClientTimes("a", 1.0, 3.0)] * 80) == 1.0


def test_a_record_keeps_them() -> None:
    assert [ClientTimes.from_json(json.loads(json.dumps(each.to_json()))) for each in APART] == list(APART)
    with pytest.raises(ValueError, match="end_s is missing"):
        ClientTimes.from_json({"host": "client1", "start_s": 0.0})
