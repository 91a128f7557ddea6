"""The Python layer: types, units and errors. What the numbers are is tested in crates/core."""

import pathlib

import pyarrow as pa
import pytest

from twinbed import _core

ROOT = pathlib.Path(__file__).parents[3]
CAPTURES = ROOT / "tests/golden/captures"
GOLDEN = ROOT / "crates/core/tests/golden"


def test_tables_and_summaries() -> None:
    path = CAPTURES / "lossy-server.pcap"
    table, summary = _core.flows([path])
    assert isinstance(table, pa.Table)
    assert table.schema.field("first_packet_ns").type == pa.int64()
    assert set(table["port_b"].to_pylist()) == {80}
    assert summary["skipped"] == {} and summary["protocols"] == {"tcp": summary["packets"]}
    assert summary["dropped_packets"] is None
    log, logged = _core.connection_log([path])
    assert log.num_rows == logged["connections"] == table.num_rows
    assert all(logged[name] == summary[name] for name in set(logged) & set(summary))


def test_mtu_decides_what_is_super() -> None:
    path = str(CAPTURES / "http-short.pcap")

    def super_packets(mtu: int) -> int:
        directions, _, _ = _core.packetisation(path, mtu=mtu)
        return sum(directions["super_packets"].to_pylist())

    # The MSS that was agreed on says so too, whatever the MTU.
    assert super_packets(1500) == super_packets(65535) > 0
    with pytest.raises(ValueError, match="mtu"):
        _core.packetisation(path, mtu=0)


def test_errors_name_the_file(tmp_path: pathlib.Path) -> None:
    wrong = tmp_path / "wrong.pcap"
    wrong.write_bytes(b"no capture at all")
    with pytest.raises(_core.ArtifactError, match=r"wrong\.pcap: capture file at byte 0: magic number"):
        _core.connection_log([wrong])
    with pytest.raises(ValueError):
        _core.counters(wrong)
    with pytest.raises(FileNotFoundError) as caught:
        _core.connection_log([tmp_path / "absent.pcap"])
    assert caught.value.filename == str(tmp_path / "absent.pcap")
    wrong.write_bytes(b"")
    with pytest.raises(_core.ArtifactError):
        _core.connection_log([wrong])


def test_a_pipe_is_read_as_a_stream(tmp_path: pathlib.Path) -> None:
    import os
    import threading

    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    capture = CAPTURES / "http-short.pcap"
    writer = threading.Thread(target=lambda: fifo.write_bytes(capture.read_bytes()))
    writer.start()
    table, _ = _core.connection_log([fifo])
    writer.join()
    assert table.equals(_core.connection_log([capture])[0])


def test_compressed_captures_are_the_same(tmp_path: pathlib.Path) -> None:
    import gzip

    capture = CAPTURES / "http-short.pcap"
    packed = tmp_path / "without-an-ending"
    packed.write_bytes(gzip.compress(capture.read_bytes()))
    table, summary = _core.connection_log([packed])
    assert (table, summary) == _core.connection_log([capture])
    directions, sizes, _ = _core.packetisation(packed)
    assert (directions, sizes) == _core.packetisation(capture)[:2]
    with pa.OSFile(str(packed), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
        stream.write(capture.read_bytes())
    assert _core.connection_log([packed])[0].equals(table)
    assert _core.packetisation(packed)[0].equals(directions)


def test_ab_and_wrk() -> None:
    report = _core.ab((GOLDEN / "ab/failed.txt").read_bytes())
    assert report["failures"] == {"connect": 0, "receive": 8, "length": 29, "exceptions": 8}
    assert report["percentiles"][-1] == (100, 0.003)
    assert report["connect"] is not None and report["connect"]["min_s"] == 0
    assert _core.ab_requests((GOLDEN / "ab/requests.tsv").read_bytes()).num_rows == 200
    assert _core.ab_percentiles((GOLDEN / "ab/percentiles.csv").read_bytes()).num_rows == 101
    report = _core.wrk((GOLDEN / "wrk/latency.txt").read_bytes())
    assert report["latency"] is not None and report["latency"]["mean_s"] == 0.00072293
    with pytest.raises(_core.ArtifactError, match="line 1"):
        _core.ab_requests(b"nothing\n")


def test_counters() -> None:
    path = GOLDEN / "counters/host.txt"
    table = _core.counters(path)
    assert table.schema.metadata == {b"snapshots": b"4"}
    rows = {row["key"]: row for row in _core.counter_differences(path).to_pylist()}
    assert rows["ctxt"]["difference"] == 20_734_044 - 20_731_196
    assert rows["ethtool-k:lo.tcp-segmentation-offload"]["last_text"] == "on"
    assert rows["vmstat:nr_free_pages"]["difference"] is None
    intervals = _core.counter_intervals(path).to_pylist()
    assert sum(row["difference"] for row in intervals if row["key"] == "ctxt") == 20_734_044 - 20_731_196
    log = _core.kernel_log(path)
    assert log.column_names == ["sequence", "seconds", "level", "facility", "text"]
    assert log.schema.metadata[b"lost"] == b"0"


def test_the_stub_names_everything() -> None:
    stub = (ROOT / "src/twinbed/_core.pyi").read_text()
    names = [name for name in dir(_core) if not name.startswith("_")]
    assert all(any(f"{start} {name}" in stub for start in ("\ndef", "\nclass")) for name in names), names
