"""Connections counted by several workers are those of one pass, whose rows are held against tcptrace's elsewhere."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinbed import _core
from twinbed.cli.main import run
from twinbed.contracts import exit_codes as codes
from twinbed.executor import Executor, Here
from twinbed.executor.local import Processes
from twinbed.readers.flow_shares import Asked, counted

CAPTURES = Path(__file__).parents[2] / "golden" / "captures"
ALL: Asked = {"tunnels": False, "port": None, "host": None, "from_ns": None, "until_ns": None}
SYN, RST = 2, 4
CLOSED, OPEN = 70_000, 20_000
HELD = 4096
"""Connections at most: more than a row group of each shard is finished early, closed ones and open ones."""
FEW = cast(Asked, ALL | {"max_connections": HELD})
RECORD = np.dtype(
    [
        ("head", "<u4", 4),
        ("ethernet", "S14"),
        ("ip", ">u2", 6),
        ("source", ">u4"),
        ("target", ">u4"),
        ("ports", ">u2", 2),
        ("numbers", ">u4", 2),
        ("flags", ">u2"),
        ("rest", ">u2", 3),
    ]
)


class Several(Here):
    """Carries out in this process what several workers would."""

    def __init__(self, workers: int) -> None:
        self.workers = workers


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Connections that are reset, each after a few others have begun, and then some that never end."""
    records = np.zeros(2 * CLOSED + OPEN, RECORD)
    chance = np.random.default_rng(5)
    number = np.concatenate([np.arange(CLOSED), np.arange(CLOSED) + 40, np.arange(OPEN) + CLOSED])
    order = np.argsort(number, kind="stable")
    resets = np.repeat([False, True, False], [CLOSED, CLOSED, OPEN])[order]
    connection = np.concatenate([np.arange(CLOSED), np.arange(CLOSED), np.arange(OPEN) + CLOSED])[order]
    at_us = np.cumsum(chance.integers(1, 5, len(records)))
    records["head"] = np.stack([at_us // 10**6, at_us % 10**6, *np.full((2, len(records)), RECORD.itemsize - 16)], axis=1)
    records["ethernet"] = b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0"
    records["ip"] = [0x4500, 40, 0, 0x4000, 0x4006, 0]
    records["source"], records["target"] = 0x0A000000 + connection // 50_000, 0x0A640001
    records["ports"] = np.stack([1024 + connection % 50_000, np.full(len(records), 80)], axis=1)
    records["flags"] = 0x5000 + np.where(resets, RST, SYN)
    path = tmp_path_factory.mktemp("many") / "many.pcap"
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + records.tobytes())
    return path


def shared(paths: list[Path], executor: Executor, asked: Asked = ALL) -> tuple[pa.Table, _core.FlowsSummary]:
    with counted([str(path) for path in paths], asked, executor) as (folders, summary):
        return _core.flows_joined(folders), summary


@pytest.fixture(scope="module")
def one_pass(many: Path) -> tuple[pa.Table, _core.FlowsSummary]:
    table, summary = _core.flows([many], max_connections=HELD)
    assert table.num_rows == CLOSED + OPEN
    assert summary["notes"]["open_connections_finished_early"] > OPEN - HELD
    return table, summary


@pytest.mark.parametrize(
    "executor", [Here(), Several(3), Several(12), Processes(2)], ids=["one", "three", "twelve", "processes"]
)
def test_rows_and_their_order_are_those_of_one_pass_whoever_counts(executor: Executor, many: Path, one_pass):
    table, summary = shared([many], executor, FEW)
    assert table.equals(one_pass[0])
    assert summary == one_pass[1]


def test_each_worker_counts_its_connections_alone(many: Path, one_pass, tmp_path: Path):
    parts = []
    for number in range(4):
        (folder := tmp_path / str(number)).mkdir()
        parts.append(_core.flows_share([many], folder, number, 4)["packets"])
        assert parts[-1] == pytest.approx(one_pass[1]["packets"] / 4, rel=0.05), "their hashes differ"
    assert sum(parts) == one_pass[1]["packets"]


ODD = sorted(
    path
    for folder in ("captures", "tcp")
    for path in (CAPTURES.parent / folder).iterdir()
    if path.suffix in (".pcap", ".pcapng")
)


@pytest.mark.parametrize("path", ODD, ids=lambda path: path.name)
def test_what_is_odd_in_a_capture_is_said_once(path: Path):
    """Fragments, losses, damaged records, frames that are no IP: real captures and made ones."""
    asked = ALL | {"tunnels": True}
    try:
        expected = _core.flows([path], tunnels=True)
    except _core.ArtifactError as error:
        with pytest.raises(_core.ArtifactError) as raised:
            shared([path], Several(5), asked)
        assert str(raised.value) == str(error)
        return
    table, summary = shared([path], Several(5), asked)
    assert table.equals(expected[0])
    assert summary == expected[1]


def test_files_are_one_capture(tmp_path: Path, many: Path):
    content = many.read_bytes()
    at = 24 + RECORD.itemsize * 100_000
    (tmp_path / "a.pcap").write_bytes(content[:24] + content[at : at + RECORD.itemsize * 20_000])
    (tmp_path / "b.pcap").write_bytes(content[: 24 + RECORD.itemsize * 20_000 + 5])
    paths = [tmp_path / "a.pcap", tmp_path / "b.pcap"]
    expected = _core.flows(paths, port=80, from_ns=10_000_000)
    assert len(expected[1]["truncated"]) == 1
    table, summary = shared(paths, Several(2), ALL | {"port": 80, "from_ns": 10_000_000})
    assert table.equals(expected[0])
    assert summary == expected[1]


def test_files_are_in_one_order_however_they_are_named(tmp_path: Path, many: Path, monkeypatch: pytest.MonkeyPatch):
    """Packets of equal times come in the order of their files; workers elsewhere get paths from the root."""
    content = many.read_bytes()
    records = np.frombuffer(content[24:], RECORD)
    for name, some in (("a.pcap", records[:10].copy()), ("b.pcap", records[100_000:100_010].copy())):
        some["head"] = records["head"][:10]
        (tmp_path / name).write_bytes(content[:24] + some.tobytes())
    monkeypatch.chdir(tmp_path)
    rows, _ = _core.flows([Path("a.pcap"), tmp_path / "b.pcap"])
    assert rows.num_rows > 10
    assert rows.equals(shared([tmp_path / "b.pcap", tmp_path / "a.pcap"], Several(2))[0])


def test_a_share_that_is_cut_off_is_no_share(tmp_path: Path):
    _core.flows_share([CAPTURES / "http-short.pcap"], tmp_path, 0, 1)
    assert _core.flows_joined([tmp_path]).num_rows == 12
    last = tmp_path / "last"
    last.write_bytes(last.read_bytes()[:-10])
    with pytest.raises(OSError, match="incomplete"):
        _core.flows_joined([tmp_path])


@pytest.mark.parametrize(("share", "shares"), [(0, 17), (2, 2), (0, 0)])
def test_a_share_that_cannot_be_is_refused(share: int, shares: int, tmp_path: Path):
    with pytest.raises(ValueError, match="share"):
        _core.flows_share([CAPTURES / "http-short.pcap"], tmp_path, share, shares)


@pytest.mark.parametrize(
    "style", [["--format", "csv"], ["--format", "json"], [], ["--long"]], ids=["csv", "json", "text", "long"]
)
def test_the_command_prints_what_it_prints_alone(style: list[str], capfdbinary):
    def printed(*more: str) -> tuple[bytes, bytes]:
        assert run(["flows", str(CAPTURES / "http-short.pcap"), *style, *more]) == codes.DONE
        return capfdbinary.readouterr()

    assert printed("--on", "local:2") == printed()


def test_a_cut_capture_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd):
    (tmp_path / "cut.pcap").write_bytes((CAPTURES / "http-short.pcap").read_bytes()[:-3])
    monkeypatch.chdir(tmp_path)
    said = []
    for more in ([], ["--on", "local:2"]):
        assert run(["flows", "cut.pcap", *more]) == codes.INPUT_CUT
        said.append(capfd.readouterr())
    assert said[0] == said[1] and "twinbed: cut.pcap: stopped" in said[0].err


def test_the_command_writes_a_whole_file_or_none(tmp_path: Path, capfd):
    capture = CAPTURES / "http-short.pcap"
    (tmp_path / "cut.pcap").write_bytes(capture.read_bytes()[:-3])
    expected, _ = _core.flows([tmp_path / "cut.pcap"])
    out = tmp_path / "flows.parquet"
    assert run(["flows", str(tmp_path / "cut.pcap"), "--on", "local:2", "-o", str(out)]) == codes.INPUT_CUT
    assert pq.read_table(out).equals(expected)
    assert run(["flows", str(tmp_path / "cut.pcap"), "-o", str(tmp_path / "alone.parquet")]) == codes.INPUT_CUT
    assert out.read_bytes() == (tmp_path / "alone.parquet").read_bytes()
    (tmp_path / "none.pcap").write_bytes(b"no capture")
    assert run(["flows", str(tmp_path / "none.pcap"), "--on", "local:2", "-o", str(tmp_path / "none.parquet")]) != codes.DONE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone.parquet", "cut.pcap", "flows.parquet", "none.pcap"]


@pytest.mark.parametrize(
    ("more", "said"), [(["-"], "standard input"), (["--threads", "2", "a"], "--threads and --on"), (["a"], "No such file")]
)
def test_what_cannot_be_shared_is_refused(more: list[str], said: str, capfd):
    assert run(["flows", "--on", "local:2", *more]) == codes.USAGE
    assert said in capfd.readouterr().err
