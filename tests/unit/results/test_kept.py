"""Results made by an older version: the folder and its archive open, and every number printed of them is the same."""

from __future__ import annotations

import csv
import json
import lzma
import re
import shutil
import tarfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from twinbed.cli.main import run
from twinbed.results.store import Store

GOLDEN = Path(__file__).parents[2] / "golden" / "results"
FOLDER, ARCHIVE = "quickstart", "quickstart.zip"

COMPARED = {
    "compare.json.xz": (["compare", "--all", "--format", "json"], 5),
    "compare.csv": (["compare", "--format", "csv"], 5),
    "report.csv.xz": (["report", "--csv", "-o", "-"], 0),
}
"""Of each golden file the command line without the results, and its exit code."""
PRINTED = {
    "anova.json": (["analyse", "anova", "--response", "requests_per_second", "--format", "json"], 0),
    "passport.json": (["passport", "--format", "json"], 0),
}
"""The same of what is printed byte by byte as then."""
UNMOVED = ("verdict", "method", "ratio", "ratio_low", "ratio_high", "p_equivalent")
JUDGED = (*UNMOVED, "because", "p_different_holm", "family", "replicates_needed", "cautions")
"""Columns that follow from the rule of verdicts, which has changed since: constant, rounded and rare values are no proof any
more. A p-value after correction also changes with those of the others; cautions on order are not corrected any more."""
FINER = ("link_goodput",)
"""Its span was the difference of two floats of seconds since 1970, which are 0.24 microseconds apart."""
REORDERED = ("path_reordered_packets", "path_3_reordered_packets", "path_capture_reordered_packets")
IN_ORDER = {"path_late_displacement": None, "path_reorder_buffer_occupancy": 0}
NEWER = ("stalls", "stalled_share", "rate_drift", "captured_requests_share", *REORDERED, *IN_ORDER)
"""Metrics that were not made then."""
UNCOUNTED = ("idle_wake_up", "idle_state_", "kvm_halt_")
"""What names of metrics begin with whose counts were not taken then."""
LATER = "interrupts"
"""A table that there was not: what the table of counters has by CPU, by line."""
STEPS = {"steps", "step_packets", "step_waits", "reorder_density", "reorder_buffer_occupancy_density"}
"""Tables that captures did not have: `tests/unit/core/test_steps.py` holds steps against tshark, `crates/core/tests/pairs.rs`
densities against their definitions."""
OBSERVED = {"fingerprints", "windows"}
"""The same: `crates/core/tests/observer.rs` and `tests/unit/core/test_observer_peers.py`."""
WEAKER = ("exact", "unseen", "counts")


GAP_AT_THE_END = ("fgF", "fF")
"""What the snap length cut off an answer's last segment is a gap, as Zeek has it."""
LONGEST = "rtt_full_sz"
"""Columns of flows that held SYNs and FINs for the longest segments, as tcptrace's build for 64 bits does."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both: the first command of the results folder extracts its tables from the raw artifacts."""
    folder = tmp_path_factory.mktemp("kept")
    with tarfile.open(GOLDEN / "quickstart.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    assert not (folder / FOLDER / "tables").exists()
    shutil.copy(GOLDEN / ARCHIVE, folder)
    return folder


@pytest.fixture(autouse=True)
def _as_recorded(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(kept)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "dumb")


@pytest.mark.parametrize(("name", "source"), [*((name, FOLDER) for name in COMPARED), ("compare.json.xz", ARCHIVE)])
def test_every_number_is_the_same(name: str, source: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """And a verdict is another only where it was made of values that say too little."""
    arguments, code = COMPARED[name]
    assert run([*arguments, source]) == code
    rows, expected = (table(name, text) for text in (capsysbinary.readouterr().out, golden(name)))
    printed = [row for row in rows if row["metric"] not in NEWER]
    assert len(printed) == len(expected) >= 24
    weaker = 0
    assert [row["metric"] for row in printed] == [row["metric"] for row in expected]
    for row, old in zip(printed, expected, strict=True):
        if row["metric"] in FINER:
            assert float(row["mean"]) == pytest.approx(float(old["mean"]), rel=1e-4)
            continue
        for column in old.keys() - {*JUDGED}:
            assert row[column] == old[column], (row["metric"], row["testbed"], column)
        if row["method"] not in WEAKER and not row["step"]:
            assert [row[column] for column in UNMOVED] == [old[column] for column in UNMOVED], row["metric"]
        if row["verdict"] != old["verdict"]:
            weaker += 1
            assert row["verdict"] == "inconclusive"
    assert weaker or name == "compare.csv"


@pytest.mark.parametrize(("name", "source"), [(name, source) for name in PRINTED for source in (FOLDER, ARCHIVE)])
def test_the_same_bytes_are_printed(name: str, source: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    arguments, code = PRINTED[name]
    assert run([*arguments, source]) == code
    printed, expected = capsysbinary.readouterr().out, golden(name)
    if name == "anova.json":
        expected = expected.replace(b'"source": "quickstart"', f'"source": "{source}"'.encode())
        printed, expected = nine_digits(one_for_all(as_before(printed, expected))), nine_digits(expected)
    # Not compared by assert: a difference of megabytes takes pytest minutes to show.
    if printed != expected:
        pytest.fail(first_difference(printed, expected))


def test_extraction_gives_the_tables_of_the_archive(tmp_path: Path) -> None:
    shutil.unpack_archive(ARCHIVE, tmp_path / "unpacked")
    assert run(["compare", FOLDER]) == 5, "extracts them, where no test has yet"
    old, new = Store.open(tmp_path / "unpacked"), Store.open(Path(FOLDER))
    names = {path.name for path in (tmp_path / "unpacked" / "tables").iterdir()}
    assert {path.name for path in Path(FOLDER, "tables").iterdir() if path.is_dir()} == names | {LATER} | STEPS | OBSERVED
    by_cpu = pc.and_(
        pc.equal(old.table("counters")["source"], "/proc/interrupts"), pc.is_valid(old.table("counters")["difference"])
    )
    assert pc.sum(new.table(LATER)["count"]).as_py() == pc.sum(old.table("counters").filter(by_cpu)["difference"]).as_py() > 0
    for name in sorted(names - {"cautions"}):
        read = new.table(name)
        if name == "metrics":
            assert {*read["low"].to_pylist(), *read["high"].to_pylist()} == {None}, "no host was left out"
            read = read.drop_columns(["low", "high"])
        was = old.table(name)
        if name == "metrics":
            read, was = (each.drop_columns("description") for each in (read, was))
        if name == "flows":
            read, was = (each.drop_columns([one for one in was.column_names if LONGEST in one]) for each in (read, was))
        if name == "packetisation":
            read = read.drop_columns(["nagle_waits", "nagle_wait_s"])
        if name == "paths":
            read = read.drop_columns(["three_reordered_packets", "capture_reordered_packets"])
        if name == "connections":
            at = read.column_names.index("history")
            read = read.set_column(at, "history", pc.replace_substring(read["history"], *GAP_AT_THE_END))
        assert by_run(read).equals(by_run(was)), name
    known = pc.field("kind") != STALL
    assert by_run(new.table("cautions").filter(known)).equals(by_run(old.table("cautions")))
    [stall] = new.table("cautions").filter(~known).to_pylist()
    # By tshark -Y http -T fields -e frame.time_epoch the longest pause between packets of requests and answers is 0.2372 s.
    assert stall["detail"] == "client: the longest 0.24 s; 54 % of 0.441 s"
    of_run = by_run(new.table("metrics"), NEWER).filter(pc.field("run") == stall["run"])
    newer = dict(zip(of_run["metric"].to_pylist(), of_run["value"].to_pylist(), strict=True))
    stalled = {"stalls": 1, "stalled_share": pytest.approx(0.2372 / 0.441, rel=0.01), "rate_drift": None}
    # Its captures hold as many answers as ab counted: 40, by tshark -Y http.response.
    # By tshark -T fields of both captures, its packets arrived in the order of their sending.
    assert newer == {**stalled, "captured_requests_share": 1.0, **dict.fromkeys(REORDERED, 0), **IN_ORDER}
    goodputs = [[row["value"] for row in by_run(each.table("metrics"), FINER).to_pylist()] for each in (new, old)]
    assert goodputs[0] == pytest.approx(goodputs[1], rel=1e-4) and len(goodputs[0]) > 10


def test_the_page_gives_the_verdict(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run(["report", FOLDER, "-o", str(page)]) == 0
    words = " ".join(re.sub("<[^>]*>", " ", page.read_text()).split())
    assert "On an emulated CPU (TCG), the data cannot tell whether e1000 can stand in for container" in words
    assert "9 of 12 headline comparisons are inconclusive with 2 replicates." in words
    assert "requests per second: -87 %, too variable" in words


STALL = "stall"
"""A caution that was not given then."""


def one_for_all(printed: bytes) -> bytes:
    """A caution whose runs differ names one of them as an example; it said so of all then."""
    return re.sub(rb"( of \d+ runs), such as ", rb"\1: ", printed)


def as_before(text: bytes, expected: bytes) -> bytes:
    """Return a document without what is newer, ``left_out`` and cautions of stalls, in the order of what is expected."""
    data, names = json.loads(text), list(json.loads(expected))
    assert set(data) - set(names) == {"left_out"}
    data["cautions"] = [each for each in data["cautions"] if each["kind"] != STALL]
    return (json.dumps({name: data[name] for name in names}, indent=1, ensure_ascii=False) + "\n").encode()


def golden(name: str) -> bytes:
    data = (GOLDEN / "printed" / name).read_bytes()
    return lzma.decompress(data) if name.endswith(".xz") else data


def table(name: str, text: bytes) -> list[dict[str, Any]]:
    if ".json" in name:
        rows: list[dict[str, Any]] = json.loads(text)["comparisons"]
        return rows
    return list(csv.DictReader(text.decode().splitlines()))


def nine_digits(text: bytes) -> bytes:
    """Fractions to nine digits: a processor's vector instructions decide the last digits of a least-squares fit."""
    return re.sub(rb"\d+\.\d+(e[-+]\d+)?", lambda number: f"{float(number[0]):.9g}".encode(), text)


def first_difference(printed: bytes, expected: bytes) -> str:
    lines, wanted = printed.splitlines(), expected.splitlines()
    for number, (line, want) in enumerate(zip(lines, wanted, strict=False), start=1):
        if line != want:
            return f"line {number} is {line!r}, was {want!r}"
    return f"{len(lines)} lines, were {len(wanted)}"


def by_run(table: pa.Table, only: Collection[str] = ()) -> pa.Table:
    """The rows of each run in their order, runs by their id, without the column that names the code that extracted them. Of
    metrics ``only`` some, or all but those that are other now."""
    kept = table.drop_columns([name for name in ("key",) if name in table.column_names])
    if "metric" in kept.column_names and "value" in kept.column_names:
        names = only or {*kept["metric"].to_pylist()} - {*FINER, *NEWER}
        uncounted = [metric.startswith(UNCOUNTED) for metric in kept["metric"].to_pylist()]
        assert set(kept.filter(pa.array(uncounted, pa.bool_()))["value"].to_pylist()) <= {None}
        taken = [metric in names and not metric.startswith(UNCOUNTED) for metric in kept["metric"].to_pylist()]
        kept = kept.filter(pa.array(taken, pa.bool_()))
    return kept.sort_by("run").combine_chunks()
