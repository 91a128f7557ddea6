"""Counters before and after a run, in a file each: read as one that has the first above the second."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import twinbed as tb
from twinbed.cli.main import run
from twinbed.contracts.format import FormatError
from twinbed.imports.text import source
from twinbed.model.caution import Kind

HEADING = (
    "Inter-|   Receive                                                |  Transmit\n face |bytes packets errs drop fifo frame"
)
PATTERN = "{testbed}/{replicate:int}/{_}-{snapshot}.txt"


def devices(received: int) -> str:
    return (
        f"{HEADING} compressed multicast|bytes packets errs drop\n  eth7: {received} 7 0 0 0 0 0 0 9 {received} 0 0 0 0 0 0\n"
    )


def counters(received: int) -> str:
    return f"NIC statistics:\n     tx_packets: {received}\n"


def nstat(retransmitted: int) -> str:
    return f"#kernel\nTcpRetransSegs                  {retransmitted}                 0.0\nIpExtInOctets   1 0.0\n"


def queue(dropped: int) -> str:
    return f"qdisc tbf 1: root refcnt 2 rate 1Mbit\n Sent 9 bytes 1 pkt (dropped {dropped}, overlimits 0 requeues 0)\n"


def put(folder: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def values(results: Path) -> dict[tuple[str, str], float]:
    rows = tb.open(results).metrics().to_pylist()
    return {(row["testbed"], row["metric"]): row["value"] for row in rows if row["value"] is not None}


def imported(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> Any:
    capsys.readouterr()
    assert run(["import", *(str(each) for each in arguments), "--format", "json"]) == code
    return json.loads(capsys.readouterr().out)


def test_two_files_are_one_measurement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {}
    for testbed, by in (("host", 100), ("nat", 300)):
        for made, name, first in ((devices, "dev", 1000), (counters, "ethtool", 50), (nstat, "nstat", 20), (queue, "tc", 4)):
            texts[f"{testbed}/1/{name}-before.txt"] = made(first)
            texts[f"{testbed}/1/{name}-after.txt"] = made(first + by)
    folder = put(tmp_path / "in", texts)
    found = imported(capsys, folder, "-o", tmp_path / "out", "--pattern", PATTERN)
    assert (found["runs"], found["files"]["read"], found["formats"]) == (
        2,
        16,
        {"ethtool-S": 4, "nstat": 4, "proc-snapshot": 4, "tc-s": 4},
    )
    below = {row["path"]: row["reason"] for row in found["outcomes"]}
    assert below["nat/1/dev-after.txt"] == "read below nat/1/dev-before.txt"
    got = values(tmp_path / "out")
    for testbed, by in (("host", 100), ("nat", 300)):
        assert got[testbed, "nic_rx_bytes"] == by
        assert got[testbed, "nic_tx_packets"] == by
        assert got[testbed, "tcp_retransmitted_segments"] == by
        assert got[testbed, "qdisc_dropped_packets"] == by
    assert not [each for each in tb.open(tmp_path / "out").cautions() if each.kind is Kind.CONTRADICTED]
    kept = json.loads(next((tmp_path / "out" / "runs").glob("*/run.json")).read_text())["artifacts"]
    assert {each["source"]: each["sha256"] for each in kept} == {
        name: hashlib.sha256(text.encode()).hexdigest()
        for name, text in texts.items()
        if name.startswith(kept[0]["source"][:3])
    }


def test_again_nothing_is_added_and_a_changed_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = put(tmp_path / "in", {"a/1/dev-pre.txt": devices(5), "a/1/dev-post.txt": devices(8)})
    arguments = (folder, "-o", tmp_path / "out", "--pattern", PATTERN)
    assert imported(capsys, *arguments)["runs_added"] == 1
    assert values(tmp_path / "out")["a", "nic_rx_bytes"] == 3
    assert imported(capsys, *arguments)["runs_added"] == 0
    put(folder, {"a/1/dev-post.txt": devices(9)})
    assert imported(capsys, *arguments, code=1)["runs_changed"] != []


def test_runs_of_earlier_imports_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They stay in the folder, and are compared with what comes now."""
    one = put(tmp_path / "one", {"a/1/dev-pre.txt": devices(5), "a/1/dev-post.txt": devices(8)})
    two = put(tmp_path / "two", {"a/2/dev-pre.txt": devices(6), "a/2/dev-post.txt": devices(9)})
    rest = ("-o", tmp_path / "out", "--pattern", PATTERN)
    assert imported(capsys, one, *rest)["runs_of_earlier_imports"] == 0
    again = imported(capsys, two, *rest)
    assert (again["runs_added"], again["runs_there"], again["runs_of_earlier_imports"]) == (1, 0, 1)


def test_numbers_are_in_their_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = put(
        tmp_path / "in", {f"a/1/dev-{number}.txt": devices(received) for number, received in ((10, 90), (9, 50), (2, 20))}
    )
    imported(capsys, folder, "-o", tmp_path / "out", "--pattern", PATTERN)
    assert values(tmp_path / "out")["a", "nic_rx_bytes"] == 70


def test_a_manifest_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = put(tmp_path / "in", {"a/zero": devices(5), "a/one": devices(8)})
    rows = put(tmp_path, {"files.csv": "path,testbed,snapshot\na/zero,a,before\na/one,a,after\n"}) / "files.csv"
    imported(capsys, folder, "-o", tmp_path / "rows", "--manifest", rows)
    text = "files:\n- {pattern: '{testbed}/zero', snapshot: before}\n- {pattern: '{testbed}/one', snapshot: after}\n"
    patterns = put(tmp_path, {"files.yaml": text}) / "files.yaml"
    imported(capsys, folder, "-o", tmp_path / "patterns", "--manifest", patterns)
    for name in ("rows", "patterns"):
        assert values(tmp_path / name)["a", "nic_rx_bytes"] == 3


def test_what_is_neither_before_nor_after_is_ignored_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = put(tmp_path / "in", {f"a/1/dev-{when}.txt": devices(5) for when in ("before", "after", "during")})
    found = imported(capsys, folder, "-o", tmp_path / "out", "--pattern", PATTERN)
    (row,) = (row for row in found["outcomes"] if row["what"] == "ignored")
    assert row["path"] == "a/1/dev-during.txt"
    assert "before (pre, start), after (post, end) or a number" in row["reason"]


def test_two_files_of_one_snapshot_are_a_conflict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"a/1/dev-before.txt": devices(5), "a/1/old-before.txt": devices(6), "a/1/dev-after.txt": devices(8)}
    folder = put(tmp_path / "in", texts)
    assert run(["import", str(folder), "-o", str(tmp_path / "out"), "--pattern", PATTERN]) == 2
    assert "3 files of one kind and host" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_too_many_snapshots_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = put(tmp_path / "in", {f"a/1/dev-{number}.txt": devices(number) for number in range(201)})
    assert run(["import", str(folder), "--dry-run", "--pattern", PATTERN]) == 2
    assert "a/1/dev-0.txt and 200 others are snapshots of one run, above 200" in capsys.readouterr().err


def test_all_files_together_are_held_to_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / name for name in ("before", "after")]
    for file in files:
        file.write_text(devices(5))
    monkeypatch.setattr(source, "MOST_BYTES", 2 * files[0].stat().st_size)
    assert source.File(files[0], "before", (source.File(files[1], "after"),)).text() == devices(5) * 2
    monkeypatch.setattr(source, "MOST_BYTES", 2 * files[0].stat().st_size - 1)
    with pytest.raises(FormatError, match="is longer than"):
        source.File(files[0], "before", (source.File(files[1], "after"),)).text()
