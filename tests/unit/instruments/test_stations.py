"""The instrument ``stations``: its plan, and what it makes of files put together by the tables of docs/probe/STATIONS.md."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from twinbed.contracts.place import BACKGROUND_PORTS, MACHINE, PROBE_PORT, Target
from twinbed.instruments.stations import StationsParams, stations
from twinbed.model.caution import Kind

SECOND = 1_000_000_000
REAL = 1_700_000_000 * SECOND
QDISC, READ, WAIT = 1, 16, 20
NONE = 2**32 - 1


def block(kind: str, body: bytes) -> bytes:
    return kind.encode() + struct.pack("<I", len(body)) + body


def record(station: int, at_ns: int, end_ns: int, sequence: int, size: int, connection: int) -> bytes:
    return struct.pack("<QQIiIIIBBH", at_ns, end_ns, sequence, size, connection, 9, 7, station, 0x18, 0)


def whole(records: Sequence[bytes], lost: tuple[int, int, int] = (0, 0, 0)) -> bytes:
    addresses = b"".join(ipaddress.ip_address(f"::ffff:10.77.0.{host}").packed for host in (1, 2))
    return b"".join(
        (
            b"\x89TBSTA\x01\n",
            block("H", b"kernel 6.1.0\nboot_id x\nshare 0.5\nclock own\n"),
            block("T", struct.pack("<qqq", 5 * SECOND, REAL, 40)),
            block("C", addresses + struct.pack("<HH", 40_000, 80)),
            block("R", b"".join(records)),
            block("T", struct.pack("<qqq", 7 * SECOND, REAL + 2 * SECOND, 60)),
            block("Z", struct.pack("<QQQ", *lost)),
        )
    )


RECORDS = [
    record(WAIT, 5 * SECOND + 10, 5 * SECOND + 40, 0, 1, NONE),
    record(QDISC, 5 * SECOND + 30, 0, 77, 84, 0),
    record(READ, 5 * SECOND + 20, 5 * SECOND + 50, 2**32 - 1, 500, 0),
]


def place(folder: Path, content: bytes) -> Path:
    (folder / "client").mkdir()
    (folder / "client" / "kernel.stations").write_bytes(content)
    return folder


def test_every_host_of_the_workload_has_one_and_machines_have_none() -> None:
    client = Target("client", {"eth0": "client"}, servers={"server": "10.77.0.2"})
    (command,) = stations.plan(StationsParams(share=0.25, limit=2**20), client)
    words = " ".join(command.argv)
    assert "--share 0.25" in words and f"--bytes {2**20}" in words and "--peer 10.77.0.2" in words
    assert f"--without {PROBE_PORT}" in words and f"--without {BACKGROUND_PORTS[0]}-{BACKGROUND_PORTS[-1]}" in words
    assert "--own-clock" not in words
    guest = Target("server", {"eth0": "server"}, own_kernel=True, clients={"client": "10.77.0.1"})
    (command,) = stations.plan(StationsParams(), guest)
    assert "--own-clock" in command.argv
    assert not stations.plan(StationsParams(), Target(MACHINE, {"p": "client"}, captures=True))
    for wrong in ({"share": 0}, {"share": 1.5}, {"limit": 10}):
        with pytest.raises(ValidationError):
            StationsParams(**wrong)


def test_rows_are_by_real_time(tmp_path: Path) -> None:
    found = stations.extract(StationsParams(), place(tmp_path, whole(RECORDS)))
    rows = found.tables["stations"].to_pylist()
    assert [(row["host"], row["station"], row["time_ns"] - REAL, row["connection"]) for row in rows] == [
        ("client", "wait", 10, None),
        ("client", "read", 20, 0),
        ("client", "qdisc", 30, 0),
    ]
    assert [row["end_ns"] and row["end_ns"] - REAL for row in rows] == [40, 50, None]
    assert (rows[1]["sequence"], rows[1]["bytes"], rows[1]["thread"], rows[1]["process"]) == (2**32 - 1, 500, 9, 7)
    assert found.tables["station_connections"].to_pylist() == [
        {
            "host": "client",
            "connection": 0,
            "own_address": "10.77.0.1",
            "own_port": 40_000,
            "other_address": "10.77.0.2",
            "other_port": 80,
        }
    ]
    (probe,) = found.tables["station_probes"].to_pylist()
    assert (probe["clock"], probe["kernel"], probe["share"], probe["records"]) == ("own", "6.1.0", 0.5, 3)
    assert [(value.metric, value.value, value.host) for value in found.values] == [("station_records", 3, "client")]
    assert not found.cautions


@pytest.mark.parametrize(("lost", "word"), [((4, 0, 0), "ring"), ((0, 5, 0), "same CPU"), ((0, 0, 6), "limit")])
def test_what_was_lost_is_a_caution(tmp_path: Path, lost: tuple[int, int, int], word: str) -> None:
    (caution,) = stations.extract(StationsParams(), place(tmp_path, whole(RECORDS, lost))).cautions
    assert caution.kind is Kind.STATIONS_LOST and caution.subject == "client"
    assert str(max(lost)) in caution.detail and word in caution.detail


def test_a_file_that_was_cut_off_gives_what_there_is(tmp_path: Path) -> None:
    found = stations.extract(StationsParams(), place(tmp_path, whole(RECORDS)[:-30]))
    assert found.tables["stations"].num_rows == 3
    (caution,) = found.cautions
    assert caution.kind is Kind.STATIONS_LOST and "not whole" in caution.detail


def test_another_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="twinbed-probe stations"):
        stations.extract(StationsParams(), place(tmp_path, b"twinbed-events 1\n"))
