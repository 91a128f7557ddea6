"""Results in Python, and the examples of its manual, run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import twinbed as tb
from synthetic_results import planted_response, write_run, write_study
from twinbed.cli.main import run

MANUAL = (Path(__file__).parents[2] / "docs" / "python.md").read_text()


@pytest.fixture
def http(tmp_path: Path) -> Path:
    respond = planted_response({"physical": 1.0, "virtio": 0.7}, 0.02, 1)
    return write_study(tmp_path / "results" / "http", ["physical", "virtio"], {"payload": ["500B", "1MiB"]}, 5, respond)


def test_the_manuals_examples_run(http: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(http.parents[1])
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", MANUAL, re.S)
    assert len(blocks) == 4
    for block in blocks:
        exec(block, names)
    said = re.search(r"# (<.*>)", MANUAL)
    assert said and repr(names["r"]) == said[1]
    verdicts = names["verdicts"]
    assert list(verdicts[verdicts["metric"] == "requests_per_second"]["verdict"]) == ["different"] * 2
    assert len(names["frame"]) == 20


def test_tables_carry_levels(http: Path) -> None:
    found = tb.open(http)
    rate = found.metrics("requests_per_second")
    assert rate.column_names[:3] == ["run", "testbed", "payload"]
    assert rate.num_rows == 20
    assert set(rate["payload"].to_pylist()) == {"500B", "1MiB"}
    assert found.runs().num_rows == 20
    assert found.factors == ("payload",)
    with pytest.raises(tb.TwinbedError, match="no metric 'requests_per_secnd'"):
        found.metrics("requests_per_secnd")
    with pytest.raises(tb.TwinbedError, match="no table flows"):
        found.flows()


def test_another_reference_turns_ratios_round(http: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = tb.open(str(http))

    def ratio(rows: pa.Table) -> float:
        (row,) = [row for row in rows.to_pylist() if row["metric"] == "requests_per_second" and row["payload"] == "500B"]
        number: float = row["ratio"]
        return number

    assert ratio(found.compare()) == pytest.approx(1 / ratio(found.compare("virtio")))
    assert run(["compare", str(http), "--reference", "virtio", "--format", "csv"]) == 4
    assert ",virtio," in capsys.readouterr().out
    with pytest.raises(tb.TwinbedError, match="no testbed 'e1000'"):
        found.compare("e1000")
    by_payload = found.compare(sessions="payload").to_pylist()
    assert {row["sessions"] for row in by_payload if row["metric"] == "requests_per_second"} == {2}
    with pytest.raises(tb.TwinbedError, match="no run has a factor 'day'"):
        found.compare(sessions="day")
    assert run(["compare", str(http), "--reference", "e1000"]) == 2


def test_a_factor_has_one_column_in_all_tables(tmp_path: Path) -> None:
    """``direction`` is a column of values too, ``parallel`` is none."""
    respond = planted_response({"a": 1.0, "b": 0.7}, 0.02, 1)
    tmp_path = write_study(tmp_path / "study", ["a", "b"], {"direction": ["up", "down"], "parallel": [1, 2]}, 3, respond)
    found = tb.open(tmp_path)
    assert (found.column_of("direction"), found.column_of("parallel")) == ("factor:direction", "parallel")
    for table in (found.runs(), found.metrics(), found.compare("a")):
        assert set(table["factor:direction"].to_pylist()) == {"up", "down"}
        assert {str(level) for level in table["parallel"].to_pylist()} == {"1", "2"}
        assert "factor:parallel" not in table.column_names
    assert set(found.metrics()["direction"].to_pylist()) == {""}


def test_levels_of_several_kinds_are_text(tmp_path: Path) -> None:
    for position, level in enumerate((1, "auto", None)):
        write_run(tmp_path, "fake", {"testbed": "fake", "cpus": level}, 0, {"requests": 1}, position=position)
    assert set(tb.open(tmp_path).runs()["cpus"].to_pylist()) == {"1", "auto", None}


def test_what_is_no_results_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tb.TwinbedError, match="not a results folder"):
        tb.open(tmp_path)
