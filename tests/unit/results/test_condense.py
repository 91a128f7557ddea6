"""Runs of very many requests: what is kept of them, and that analyses say of it what they say of every request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from benchmarks.simulated.little import InMemory, record

from twinbed.analyses.steady.method import analysis as steady
from twinbed.analyses.tails.method import analysis as tails
from twinbed.model.tables import Outline
from twinbed.readers import ab_requests
from twinbed.results.extract.condense import condensed

HEADING = "starttime\tseconds\tctime\tdtime\tttime\twait\n"


def exchanges(seed: int, slower: float) -> pa.Table:
    """12,000 requests of two clients, and 24 without an answer; the servers' links see them too."""
    noise = np.random.default_rng(seed)
    n = 12_000
    begun = 1_700_000_000_000_000_000 + np.sort((noise.random(n) * 10e9).astype(np.int64))
    times = slower * noise.lognormal(-6, 0.6, n)
    complete = np.arange(n) % 500 != 7
    of_clients = {"start_ns": begun, "duration_s": pa.array(times, mask=~complete), "complete": complete}
    links = {"client": [f"client{1 + at % 2}" for at in range(n)], "server": ["server"] * n}
    return pa.concat_tables([pa.table({"link": links[name], **of_clients}) for name in links])


def opened(condense: Callable[[list[tuple[str, pa.Table]]], list[tuple[str, pa.Table]]]) -> InMemory:
    records, found = [], dict[str, list[pa.Table]]()
    for replicate in range(4):
        for testbed, slower in (("real", 1.0), ("virtual", 1.5)):
            one = record(testbed, replicate, len(records), {"testbed": testbed})
            records.append(replace(one, phases={"up": 2.0}))
            for name, table in condense([("exchanges", exchanges(len(records), slower))]):
                found.setdefault(name, []).append(table.add_column(0, "run", pa.array([one.id] * table.num_rows)))
    tables = {name: pa.concat_tables(parts) for name, parts in found.items()}
    return InMemory(tables, Outline("s", ("real", "virtual"), "real"), records)


def test_histograms_say_what_rows_say() -> None:
    one_by_one = opened(lambda tables: tables)
    together = opened(lambda tables: condensed(tables, most=10_000))
    assert set(one_by_one.tables) == {"exchanges"} and set(together.tables) == {"latencies", "answers"}
    rows, histograms = tails.run(one_by_one), tails.run(together)
    assert histograms.left_out == rows.left_out == {"requests without an answer": 8 * 24}
    assert len(histograms.shifts) == len(rows.shifts) > 8
    for one, other in zip(rows.shifts, histograms.shifts, strict=True):
        assert other.ratio == pytest.approx(one.ratio, rel=1e-3) and other.verdict == one.verdict
    of_rows, of_series = steady.run(one_by_one), steady.run(together)
    for each, other in zip(of_rows.cells, of_series.cells, strict=True):
        assert other.drift.mean == pytest.approx(each.drift.mean, abs=1e-9)
        assert other.series == pytest.approx(each.series)
    assert together.tables["latencies"].nbytes < one_by_one.tables["exchanges"].nbytes


def test_few_requests_keep_a_row_each() -> None:
    table = exchanges(1, 1.0)
    assert condensed([("exchanges", table), ("flows", table)]) == [("exchanges", table), ("flows", table)]


def test_requests_of_a_tool_are_condensed_by_host() -> None:
    times = [0.001, 0.002, 0.002, None, 0.004]
    table = pa.table({"host": ["a", "a", "a", "a", "b"], "total_s": times})
    assert condensed([("requests", table)], most=5) == [("requests", table)]
    kept = condensed([("requests", table)], most=4)
    rows = [row for name, each in kept for row in each.to_pylist() if name == "latencies"]
    assert [(row["place"], row["requests"], row["from_ns"] is None) for row in rows] == [
        ("a", 1, False),
        ("a", 2, False),
        ("a", 1, True),
        ("b", 1, False),
    ]


def lines(n: int) -> str:
    rows = (f"Mon Nov 23 09:00:00 2026\t1700000000\t1\t{at % 40}\t{1 + at % 40}\t{at % 40}\n" for at in range(n))
    return HEADING + "".join(rows)


@pytest.mark.parametrize("block", [100, 1000, 1 << 20])
def test_abs_file_is_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(ab_requests, "BLOCK_BYTES", block)
    file = tmp_path / "ab.tsv"
    file.write_text(lines(300))
    rows = ab_requests.read(file, "client1")["requests"]
    assert rows.num_rows == 300 and rows["total_s"].to_pylist() == [(1 + at % 40) / 1000 for at in range(300)]
    assert set(rows["host"].to_pylist()) == {"client1"}
    [(name, table)] = ab_requests.read(file, "client1", most=299).items()
    assert name == "latencies" and pc.sum(table["requests"]).as_py() == 300
    # 40 different milliseconds, 7 or 8 times each.
    assert table.num_rows == 40 and set(table["requests"].to_pylist()) == {7, 8}
    low, high = (np.array(table[name].to_pylist()) for name in ("from_ns", "to_ns"))
    milliseconds = np.arange(1, 41) * 1_000_000
    assert np.all(low <= milliseconds) and np.all(milliseconds < high)


def test_a_file_that_ends_in_a_line_is_read_as_before(tmp_path: Path) -> None:
    file = tmp_path / "ab.tsv"
    file.write_text(HEADING)
    assert ab_requests.read(file, "c")["requests"].num_rows == 0
    for text in ("", lines(3)[:-20], "no heading\n1\t2\n"):
        file.write_text(text)
        with pytest.raises(ValueError):
            ab_requests.read(file, "c")
