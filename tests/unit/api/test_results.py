"""Results in Python, and the examples of its manual, run."""

from __future__ import annotations

import csv
import inspect
import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import twinbed as tb
from synthetic_results import planted_response, write_run, write_study
from twinbed.api import Results
from twinbed.api.result import Plot, Result, arrow, data_frame
from twinbed.cli.main import run

MANUAL = (Path(__file__).parents[3] / "docs" / "python.md").read_text()


@pytest.fixture
def http(tmp_path: Path) -> Path:
    respond = planted_response({"physical": 1.0, "virtio": 0.7}, 0.02, 1)
    return write_study(tmp_path / "results" / "http", ["physical", "virtio"], {"payload": ["500B", "1MiB"]}, 5, respond)


def test_the_manuals_examples_run(http: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(http.parents[1])
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", MANUAL, re.S)
    shown = re.findall(r"^(.+?)  # ([<('\[].*)$", "\n".join(blocks), re.M)
    assert len(blocks) == MANUAL.count("```") / 2 and len(shown) > 6
    for block in blocks:
        exec(block, names)
    for expression, value in shown:
        assert repr(eval(expression, names)) == value
    rates = names["frame"][names["frame"]["metric"] == "requests_per_second"]
    assert list(rates["verdict"]) == ["different"] * 2
    # As planted: 0.7 of the rate on virtio, whatever the payload.
    assert all(abs(ratio - 0.7) < 0.03 for ratio in rates["ratio"])
    assert "testbed" in repr(names["rates"]) and "No candidate cause was found" in repr(names["why"])


def test_the_manual_has_all_that_is_public() -> None:
    table = MANUAL.partition("## All of it")[2]
    written = set(re.findall(r"`(?:tb|r|result|figure)\.(\w+)", table))
    public = {
        name
        for kind in (Results, Result, Plot)
        for name in [*vars(kind), *re.findall(r"self\.([a-z]\w*)(?:, self\.\w+)* =", inspect.getsource(kind))]
        if not name.startswith("_")
    }
    assert written == public | set(tb.__all__) | {"label"}


def test_tables_carry_levels(http: Path) -> None:
    found = tb.open(http)
    rate = found.metrics("requests_per_second")
    assert rate.column_names[:3] == ["run", "testbed", "payload"]
    assert rate.num_rows == 20
    assert set(rate["payload"].to_pylist()) == {"500B", "1MiB"}
    assert found.runs().num_rows == 20
    assert found.factors == ("payload",)
    with pytest.raises(tb.TwinbedError, match="no metric 'requests_per_secnd'; did you mean 'requests_per_second'"):
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


def test_another_word_for_a_metric_is_told_its_name(http: Path) -> None:
    with pytest.raises(tb.TwinbedError) as caught:
        tb.open(http).metrics("requests_per_second", "rps")
    assert caught.value.message == "there is no metric 'rps'; did you mean 'requests_per_second'?"
    assert caught.value.__notes__ == [caught.value.advice], "a traceback shows it"


def test_an_unknown_analysis_or_setting_is_told_what_there_is(http: Path) -> None:
    found = tb.open(http)
    with pytest.raises(tb.TwinbedError, match="no analysis 'anova2'") as caught:
        found.analyse("anova2")
    assert "anova, regression" in caught.value.advice
    with pytest.raises(tb.TwinbedError, match="anova: respons: ") as caught:
        found.analyse("anova", respons="requests_per_second")
    assert caught.value.advice.startswith("its settings are: host, direction, response, ")
    with pytest.raises(tb.TwinbedError, match="compare has no table 'means'") as caught:
        found.compare().to_arrow("means")
    assert caught.value.advice == "there are: comparisons, order"


def test_an_analysis_is_that_of_its_command(http: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--response", "requests_per_second", "--format", "csv", "--table", "means"]
    assert run(["analyse", "anova", str(http), *arguments]) == 0
    printed = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    rows = tb.open(http).analyse("anova", response="requests_per_second").to_arrow("means").to_pylist()
    assert [float(row["mean"]) for row in printed] == [row["mean"] for row in rows] and len(rows) > 3


def test_the_verdicts_of_a_notebook_are_escaped_and_those_of_the_report(tmp_path: Path) -> None:
    respond = planted_response({"physical": 1.0, "<b>": 0.7}, 0.02, 1)
    path = write_study(tmp_path / "x", ["physical", "<b>"], {"payload": ["<i>", "1MiB"]}, 5, respond)
    found = tb.open(path)
    page, result = found._repr_html_(), found.compare(headlines=True)
    seen = " ".join(ElementTree.fromstring(page).itertext())
    assert "synthetic: 20 runs of physical (reference), <b>" in seen and "payload <i>" in seen
    assert "<b>" not in page and "<i>" not in page
    assert run(["report", str(path), "--markdown", "-o", str(tmp_path / "r.md")]) == 0
    report = (tmp_path / "r.md").read_text().replace("\\", "")
    sentence = "<b> is not a stand-in for physical here: requests per second 3"
    for text in (report, seen, " ".join(repr(result).split())):
        assert sentence in text
    assert page.index("Comparison") < page.index("≠ -3") < page.index("≠ different")
    assert result.to_arrow()["headline"].to_pylist() == [True] * 6 and not all(found.compare()["headline"].to_pylist())


def test_figures_show_the_measured_values(http: Path) -> None:
    found = tb.open(http)
    rate = found.metrics("requests_per_second")["value"].to_pylist()
    (plot,) = (each for each in found.compare().plot() if each.name == "requests per second values")

    def numbers(part: object) -> Iterator[float]:
        if isinstance(part, Mapping):
            part = list(part.values())
        if isinstance(part, list):
            for each in part:
                yield from numbers(each)
        elif isinstance(part, int | float):
            yield float(part)

    drawn = list(numbers(plot.spec))
    assert len(rate) == 20 and all(any(abs(value - each) < 1e-6 * value for each in drawn) for value in rate)


def test_missing_is_null_in_a_data_frame_and_types_are_kept() -> None:
    rows = arrow(
        [
            {"whole": 1, "some": 2**53 + 1, "real": 0.5, "on": True, "off": None, "mixed": 1, "none": None},
            {"whole": 2, "some": None, "real": 1.5, "on": False, "off": True, "mixed": "auto", "text": "a"},
        ]
    )
    frame = data_frame(rows)
    assert {name: str(kind) for name, kind in frame.dtypes.items() if name not in ("mixed", "none")} == {
        "whole": "int64",
        "some": "Int64",
        "real": "float64",
        "on": "bool",
        "off": "boolean",
        "text": "string",
    }
    assert frame["some"][0] == 2**53 + 1, "a float would have lost the 1"
    assert list(frame["mixed"]) == ["1", "auto"] and list(frame["none"]) == [None, None]
    assert frame.isna().to_numpy().sum() == sum(column.null_count for column in rows.columns)


def test_without_pandas_it_is_said_what_to_install(http: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = tb.open(http).compare()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(tb.TwinbedError, match="pandas is not installed") as caught:
        result.to_pandas()
    assert "pip install pandas" in caught.value.advice
    assert pa.table(result).equals(result.to_arrow()), "as other programs read it"
    assert result.num_rows == len(result) == len(result.to_pylist())
    assert not hasattr(result, "no_such_method")


def test_opening_imports_nothing_slow() -> None:
    """What analyses, frames and figures need is imported when it is asked for."""
    program = "import sys, twinbed, twinbed.api; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"pyarrow", "pandas", "scipy", "numpy", "vl_convert", "rich", "click", "pydantic", "duckdb"} & set(
        done.stdout.split()
    )
