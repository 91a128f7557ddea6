"""``_core.flows``: how captures are read and rows written. What a row says is tested against tcptrace elsewhere."""

from __future__ import annotations

import gzip
import random
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinbed import _core

Record = tuple[int, bytes]
"""Time (us) and frame."""


def frame(client: int, port: int, from_client: bool, sequence: int, flags: int, length: int) -> bytes:
    ends = [(0x0A000000 + client, port), (0x0A640001, 80)]
    (source, source_port), (target, target_port) = ends if from_client else ends[::-1]
    tcp = struct.pack("!HHIIBBHHH", source_port, target_port, sequence % 2**32, 1, 0x50, flags, 8192 + port % 100, 0, 0)
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, 40 + length, 0, 0x4000, 64, 6, 0, source, target)
    return b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + ip + tcp + bytes(length)


def pcap(records: list[Record]) -> bytes:
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    for time_us, data in records:
        parts.append(struct.pack("<IIII", time_us // 10**6, time_us % 10**6, len(data), len(data)) + data)
    return b"".join(parts)


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """Connections of different shapes, interleaved, and some packets that belong to none."""
    chance = random.Random(7)
    found: list[Record] = []
    for number in range(700):
        at = chance.randrange(10**6)
        client, port = chance.randrange(300), 1024 + number
        sequence = [chance.randrange(2**32), chance.randrange(2**32)]
        script = [(True, 2, 0), (False, 18, 0), (True, 16, 0)]
        script += [(chance.random() < 0.5, 24, chance.randrange(200)) for _ in range(chance.randrange(20))]
        script += chance.choice([[(True, 17, 0), (False, 17, 0), (True, 16, 0)], [(True, 4, 0)], []])
        for from_client, flags, length in script:
            at += chance.randrange(1, 3000)
            side = 0 if from_client else 1
            found.append((at, frame(client, port, from_client, sequence[side], flags, length)))
            sequence[side] += length + (flags & 3 != 0)
    found += [(chance.randrange(10**6), b"\2" * 12 + b"\x08\x06" + bytes(28)) for _ in range(20)]
    # Times differ, so that there is one order.
    found.sort(key=lambda record: record[0])
    return [(at * 1000 + number % 1000, data) for number, (at, data) in enumerate(found)]


@pytest.fixture(scope="module")
def whole(records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table, _core.FlowsSummary]:
    path = tmp_path_factory.mktemp("whole") / "whole.pcap"
    path.write_bytes(pcap(records))
    table, summary = _core.flows([path])
    assert table.num_rows == 700
    assert summary["truncated"] == []
    return path, table, summary


def test_files_are_read_as_one_in_whatever_order(whole, records, tmp_path: Path):
    _, table, summary = whole
    chance = random.Random(3)
    pieces: list[list[Record]] = [[] for _ in range(4)]
    for record in records:
        chance.choice(pieces).append(record)
    paths = []
    for number, piece in enumerate(pieces):
        paths.append(tmp_path / f"{number}.pcap")
        paths[-1].write_bytes(pcap(piece))
    for order in (paths, paths[::-1], [paths[2], paths[0], paths[3], paths[1]]):
        found, about = _core.flows(order)
        assert found.equals(table)
        assert about == summary | {"interfaces": 4}


def test_a_capture_in_rotated_files_is_the_capture(whole, records, tmp_path: Path):
    _, table, _ = whole
    for number in range(3):
        (tmp_path / f"{number}.pcap").write_bytes(pcap(records[number * 2000 : (number + 1) * 2000 if number < 2 else None]))
    assert _core.flows([tmp_path / "1.pcap", tmp_path / "2.pcap", tmp_path / "0.pcap"])[0].equals(table)


def test_ties_go_by_the_files_first_times_then_names(tmp_path: Path):
    early = [(1, frame(1, 1111, True, 0, 2, 0)), (5, frame(1, 2222, True, 0, 2, 0))]
    late = [(5, frame(1, 3333, True, 0, 2, 0))]
    (tmp_path / "b").write_bytes(pcap(early))
    (tmp_path / "a").write_bytes(pcap(late))
    (tmp_path / "c").write_bytes(pcap([(5, frame(1, 4444, True, 0, 2, 0))]))
    for order in ("abc", "cba", "bca"):
        table, _ = _core.flows([tmp_path / name for name in order])
        assert table["port_a"].to_pylist() == [1111, 2222, 3333, 4444]


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_threads_and_compression_change_nothing(whole, tmp_path: Path, threads: int):
    path, table, summary = whole
    plain = path.read_bytes()
    compressed = {
        "a.gz": gzip.compress(plain, mtime=0),
        "a.zst": pa.compress(plain, codec="zstd", asbytes=True),
        "a.pcap": plain,
    }
    for name, data in compressed.items():
        (tmp_path / name).write_bytes(data)
        found, about = _core.flows([tmp_path / name], threads=threads)
        assert found.equals(table)
        assert about == summary
        assert _core.flows_to_parquet([tmp_path / name], tmp_path / "out", threads=threads) == summary
        assert pq.read_table(tmp_path / "out").equals(table)


def test_rows_are_those_of_the_table_whichever_reader(whole):
    path, table, summary = whole
    rows, about = _core.flows([path], as_rows=True)
    assert rows == table.to_pylist() and about == summary
    assert summary["rows"] == len(rows)
    assert _core.connection_log([path], as_rows=True)[0] == _core.connection_log([path])[0].to_pylist()
    matched, _ = _core.match_captures(path, path)
    assert matched.num_rows and _core.match_captures(path, path, as_rows=True)[0] == matched.to_pylist()


def test_parquet_files_are_the_same_by_any_number_of_threads(whole, tmp_path: Path):
    path, _, _ = whole
    for threads in (1, 2, 4):
        _core.flows_to_parquet([path], tmp_path / str(threads), threads=threads)
    one, two, four = ((tmp_path / name).read_bytes() for name in "124")
    assert one == two == four


def test_a_parquet_file_has_the_tables_types(whole, tmp_path: Path):
    path, table, _ = whole
    _core.flows_to_parquet([path], tmp_path / "out")
    assert pq.read_schema(tmp_path / "out").equals(table.schema)
    assert table.schema.field("port_a").type == pa.uint16()
    assert table.schema.field("rtt_min_a2b").nullable and not table.schema.field("total_packets_a2b").nullable
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out"]


def test_standard_input_is_dash(whole):
    path, table, _ = whole
    code = "from twinbed import _core; import sys; t, _ = _core.flows(['-']); print(t.num_rows, t['total_packets'].to_pylist())"
    with path.open("rb") as capture:
        done = subprocess.run([sys.executable, "-c", code], stdin=capture, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{table.num_rows} {table['total_packets'].to_pylist()}"


@pytest.mark.parametrize("start", [b"", pcap([])], ids=["before the first byte", "after the header"])
def test_ctrl_c_ends_the_wait_for_standard_input(start: bytes):
    # One interrupt: another would break off what is said of the first.
    code = """
import signal
from twinbed import _core

def once(*_):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt

signal.signal(signal.SIGINT, once)
print("ready", flush=True)
_core.flows(["-"])
"""
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **piped) as process:
        process.stdin.write(start)
        process.stdin.flush()
        assert process.stdout.readline() == b"ready\n"
        # It may not be waiting yet: then the signal is seen after the next one.
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
        assert b"KeyboardInterrupt" in process.stderr.read()


def test_connections_finished_early_are_the_same_by_any_number_of_threads(whole, tmp_path: Path):
    path, table, _ = whole
    expected, summary = _core.flows([path], max_connections=40)
    assert expected.num_rows >= table.num_rows
    for threads in (2, 4):
        found, about = _core.flows([path], max_connections=40, threads=threads)
        assert found.equals(expected) and about == summary
        _core.flows_to_parquet([path], tmp_path / "out", max_connections=40, threads=threads)
        assert pq.read_table(tmp_path / "out").equals(expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_truncated_capture_gives_its_rows_and_says_where(records, tmp_path: Path, threads: int):
    kept = records[:3000]
    (tmp_path / "kept.pcap").write_bytes(pcap(kept))
    end = len(pcap(kept))
    (tmp_path / "cut.pcap").write_bytes(pcap(records)[: end + 20])
    expected, _ = _core.flows([tmp_path / "kept.pcap"])
    found, summary = _core.flows([tmp_path / "cut.pcap"], threads=threads)
    assert found.equals(expected)
    (cut,) = summary["truncated"]
    assert (cut["file"], cut["byte"]) == (str(tmp_path / "cut.pcap"), end)
    assert f"byte {end}" in cut["reason"] and "captured length" in cut["reason"]
    assert _core.flows_to_parquet([tmp_path / "cut.pcap"], tmp_path / "out", threads=threads) == summary
    assert pq.read_table(tmp_path / "out").equals(expected)


def test_a_damaged_length_ends_the_capture_there(records, tmp_path: Path):
    damaged = bytearray(pcap(records))
    at = len(pcap(records[:1000])) + 8
    damaged[at : at + 4] = b"\xff\xff\xff\xff"
    (tmp_path / "damaged.pcap").write_bytes(damaged)
    found, summary = _core.flows([tmp_path / "damaged.pcap"])
    assert sum(found["total_packets"].to_pylist()) <= 1000
    assert summary["packets"] == 1000
    assert [(cut["byte"], "4294967295" in cut["reason"]) for cut in summary["truncated"]] == [(at, True)]


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compressed_data_that_end_early(records, tmp_path: Path, codec: str):
    data = pa.compress(pcap(records), codec=codec, asbytes=True)
    (tmp_path / "cut").write_bytes(data[: len(data) * 3 // 4])
    _, summary = _core.flows([tmp_path / "cut"])
    assert 0 < summary["packets"] < len(records)
    (cut,) = summary["truncated"]
    assert len(pcap(records[: summary["packets"]])) <= cut["byte"] < len(pcap(records[: summary["packets"] + 1]))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"PK\x03\x04" + bytes(50), "ZIP"),
        (b"hello, this is text\n", "text"),
        (b"", "4 bytes needed"),
        (b"\xd4\xc3\xb2\xa1", "24 bytes"),
    ],
)
def test_a_file_that_is_no_capture_is_refused_by_name(whole, tmp_path: Path, content: bytes, says: str):
    (tmp_path / "odd").write_bytes(content)
    for call in (
        lambda: _core.flows([whole[0], tmp_path / "odd"]),
        lambda: _core.flows_to_parquet([tmp_path / "odd"], tmp_path / "out"),
    ):
        with pytest.raises(_core.ArtifactError, match=says) as caught:
            call()
        assert str(tmp_path / "odd") in str(caught.value)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["odd"], "nothing half done is left"


@pytest.mark.parametrize("content", [b"\x1f\x8b\x08" + b"\xff" * 60, gzip.compress(b"\xd4\xc3\xb2\xa1", mtime=0)[:12]])
def test_damaged_compression_without_a_capture_is_refused_by_name(tmp_path: Path, content: bytes):
    (tmp_path / "odd.gz").write_bytes(content)
    with pytest.raises(_core.ArtifactError, match=r"odd\.gz"):
        _core.flows([tmp_path / "odd.gz"])


def test_what_cannot_be_opened_or_written_is_an_os_error(whole, tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        _core.flows([tmp_path / "none"])
    with pytest.raises(FileNotFoundError):
        _core.flows_to_parquet([whole[0]], tmp_path / "no" / "out")
    for threads in (1, 3):
        with pytest.raises(OSError, match="space"):
            _core.flows_to_parquet([whole[0]], "/dev/full", threads=threads)


def test_wrong_arguments_are_named(whole, tmp_path: Path):
    path = whole[0]
    for arguments, says in (
        ({"threads": 0}, "threads"),
        ({"host": "nowhere"}, "host"),
        ({"max_connections": 0}, "max_connections"),
    ):
        with pytest.raises(ValueError, match=says):
            _core.flows([path], **arguments)
    with pytest.raises(ValueError, match="no capture"):
        _core.flows([])
