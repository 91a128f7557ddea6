"""Measurements of other settings in one file, and facts that files state, as factors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from twinbed import registry
from twinbed.cli.main import run
from twinbed.results.extract import extract
from twinbed.results.store import Store

HEAD = "-----------\nServer listening on 5201\n-----------\nAccepted connection from 192.0.2.8, port 40100\n"
TCP = """[  5] local 192.0.2.1 port 5201 connected to 192.0.2.8 port 40102
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-1.00   sec  {size} MBytes  {rate} Gbits/sec
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-1.00   sec  {size} MBytes  {rate} Gbits/sec                  receiver
"""
UDP = """[  5] local 192.0.2.1 port 5201 connected to 192.0.2.8 port 40105
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  0.020 ms  0/91 (0%)
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  0.020 ms  0/91 (0%)  receiver
"""
VMSTAT = """procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 1  0      0 100000   1000  20000    0    0     0     0  100  200  1  1 98  0  0
 1  0      0 100000   1000  20000    0    0     0     0  100  200  1  1 98  0  0
"""


def tcp(rate: float) -> str:
    return HEAD + TCP.format(size=round(rate * 1e9 / 8 / 2**20), rate=f"{rate:.2f}")


def folder(tmp_path: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(text)
    return tmp_path / "in"


def goodput(results: Path) -> dict[tuple[str, ...], list[float]]:
    """Mbit/s by testbed and protocol, to three digits."""
    store = Store.open(results)
    names = ("testbed", "protocol")
    cells = {each.id: tuple(str(each.levels[name]) for name in names if name in each.levels) for each in store.records}
    found: dict[tuple[str, ...], list[float]] = {}
    for row in extract(results, registry.PLUGINS.read, {}).table("metrics").to_pylist():
        if row["metric"] == "goodput" and row["value"] is not None and not row["host"]:
            found.setdefault(cells[row["run"]], []).append(float(f"{row['value'] / 1e6:.3g}"))
    return {cell: sorted(numbers) for cell, numbers in sorted(found.items())}


def test_tests_of_other_settings_in_one_file_are_other_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {
        f"{bed}/server-{number}.log": tcp(rate + number / 100) + HEAD + UDP
        for bed, rate in (("host", 9.40), ("guest", 4.70))
        for number in (1, 2)
    }
    arguments = ["import", str(folder(tmp_path, texts)), "-o", str(tmp_path / "out"), "--number-replicates"]
    assert run([*arguments, "--pattern", "{testbed}/server-{_:int}.log"]) == 0
    out = capsys.readouterr().out
    assert "factors that files state (1):\n  protocol: tcp, udp" in out
    assert "same bytes" not in out, "no file is a copy of itself"
    assert goodput(tmp_path / "out") == {
        ("guest", "tcp"): [4710, 4720],
        ("guest", "udp"): [1.05, 1.05],
        ("host", "tcp"): [9410, 9420],
        ("host", "udp"): [1.05, 1.05],
    }
    assert run([*arguments, "--pattern", "{testbed}/server-{_:int}.log"]) == 0
    assert "0 runs added" in capsys.readouterr().out


def test_facts_of_files_with_one_measurement_are_factors_where_that_is_asked(tmp_path: Path) -> None:
    texts = {"host/1.txt": tcp(9.41), "host/2.txt": HEAD + UDP, "guest/1.txt": tcp(4.71), "guest/2.txt": HEAD + UDP}
    arguments = ["import", str(folder(tmp_path, texts)), "--pattern", "{testbed}/{replicate:int}.txt"]
    assert run([*arguments, "-o", str(tmp_path / "pooled")]) == 0
    assert set(goodput(tmp_path / "pooled")) == {("host",), ("guest",)}
    assert run([*arguments, "-o", str(tmp_path / "out"), "--factor", "protocol"]) == 0
    assert goodput(tmp_path / "out") == {
        ("guest", "tcp"): [4710],
        ("guest", "udp"): [1.05],
        ("host", "tcp"): [9410],
        ("host", "udp"): [1.05],
    }
    commands = json.loads((tmp_path / "out" / "study.json").read_text())["commands"]
    assert "--factor protocol" in commands[0]


def test_what_states_nothing_has_the_levels_of_its_run(tmp_path: Path) -> None:
    texts = {"host/1-iperf.txt": tcp(9.41), "host/1-vmstat.txt": VMSTAT, "host/2-iperf.txt": HEAD + UDP}
    arguments = ["import", str(folder(tmp_path, texts)), "--pattern", "{testbed}/{replicate:int}-{_}.txt"]
    assert run([*arguments, "-o", str(tmp_path / "out"), "--factor", "protocol"]) == 0
    records = {each.levels["protocol"]: len(each.artifacts) for each in Store.open(tmp_path / "out").records}
    assert records == {"tcp": 2, "udp": 1}


@pytest.mark.parametrize(
    ("texts", "more", "says"),
    [
        ({"host/1-a.txt": tcp(9.41) + HEAD + UDP, "host/1-vmstat.txt": VMSTAT}, [], "other files of its run have 2 settings"),
        ({"host/1-a.txt": tcp(9.41)}, ["--factor", "colour"], "no file states it"),
        ({"host/1-a.txt": tcp(9.41)}, ["--factor", "testbed"], "no file states it"),
    ],
)
def test_what_cannot_be_decided_is_refused(
    texts: dict[str, str], more: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["import", str(folder(tmp_path, texts)), "-o", str(tmp_path / "out")]
    assert run([*arguments, "--pattern", "{testbed}/{replicate:int}-{_}.txt", *more]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_factor_of_paths_is_not_asked_of_files_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["import", str(folder(tmp_path, {"host/tcp-1.txt": tcp(9.41)})), "-o", str(tmp_path / "out")]
    assert run([*arguments, "--pattern", "{testbed}/{protocol}-{replicate:int}.txt", "--factor", "protocol"]) == 2
    assert "gives it too" in capsys.readouterr().err
