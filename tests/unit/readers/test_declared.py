"""Numbers found in text as a study declares; expected values are read off the text by eye."""

from __future__ import annotations

import contextlib
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from twinbed.readers.declared import Reading, decoded, matcher
from twinbed.readers.single_requests import requests

REPORT = """\
====== SET ======
  100000 requests completed
  p50=0.25 ms p99=1.5 ms
====== GET ======
  p50=0.31 ms p99=2.5 ms
rate: 1,234,567.5 per second; 980us each
"""
TABLE = """\
some words first
test,rps,note
SET,100.5,"a, b"
GET,200.25,x
GET,300,y
"""


def read(text: str, unit: str = "1", **how: object) -> float:
    return Reading.model_validate(how).find(text, unit).value


@pytest.mark.parametrize(
    ("how", "unit", "value"),
    [
        ({"regex": r"(\d+) requests"}, "1", 100000.0),
        ({"regex": r"p99=([0-9.]+) ms", "after": "= GET ="}, "ms", 0.0025),
        ({"regex": r"p99=([0-9.]+) ms", "take": "first"}, "ms", 0.0015),
        ({"regex": r"p99=([0-9.]+) ms", "take": "last"}, "ms", 0.0025),
        ({"regex": r"p99=([0-9.]+) ms", "take": 2}, "ms", 0.0025),
        ({"regex": r"p99=([0-9.]+)", "take": "max"}, "1", 2.5),
        ({"regex": r"p\d\d=([0-9.]+)", "take": "count"}, "1", 4.0),
        ({"regex": r"p\d\d=([0-9.]+)", "take": 3}, "1", 0.31),
        ({"regex": r"p\d\d=([0-9.]+)", "take": "sum"}, "1", 4.56),
        ({"regex": r"p\d\d=([0-9.]+)", "take": "median"}, "1", (0.31 + 1.5) / 2),
        ({"regex": r"(ERROR)", "take": "count"}, "count", 0.0),
        ({"regex": r"rate: ([0-9.,]+)"}, "1/s", 1234567.5),
        ({"regex": r"; ([0-9.]+[mu]s) each"}, "s", 980 / 1e6),
        ({"regex": r"(?:; )([0-9.]+)(?:us)"}, "us", 980 / 1e6),
    ],
)
def test_a_regular_expression(how: dict[str, object], unit: str, value: float) -> None:
    assert read(REPORT, unit, **how) == value


def test_a_number_keeps_its_place() -> None:
    spot = Reading(regex=r"rate: ([0-9.,]+)").find(REPORT, "1/s").spot
    assert (spot.line, spot.column, spot.text) == (6, 1, "1,234,567.5")
    assert str(spot) == "line 6, column 1: 'rate: 1,234,567.5 per second; 980us each'"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"regex": r"p99=([0-9.]+) s"}, "its beginning .* ends at line 3, column 23, before 'ms'"),
        ({"regex": r"nothing ([0-9]+)"}, "not even its beginning does: 6 lines, the last 'rate: 1,234,567.5"),
        ({"regex": r"p99=([0-9.]+)"}, "matches 2 times, first at line 3, column 15: .*, then at line 5, column 15: "),
        ({"regex": r"p99=([0-9.]+)", "take": 3}, "has 2 matches, so none with number 3"),
        ({"regex": r"p99=([0-9.]+)", "after": "= PUT ="}, "no line has '= PUT ='; its beginning '= ' ends at|no line has"),
        ({"regex": r"====== (\w+)", "take": "first"}, "line 1, column 1: '====== SET ======' is no number"),
        ({"regex": r"(980us)"}, "is no number of 1"),
    ],
)
def test_what_is_not_there_is_an_error_with_its_place(how: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(REPORT, **how)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"regex": "p99=[0-9]+"}, "0 groups, and one is read: put the number in brackets"),
        ({"regex": "(a)(b)"}, r"2 groups, and one is read: begin the others with \(\?:"),
        ({"regex": "(a"}, "is no pattern: missing \\)"),
        ({"regex": "(?=a)(b)"}, "neither look-around nor back-references"),
        ({"regex": r"(a)\1"}, "neither look-around nor back-references"),
        ({"json": "a["}, "is no path of jmespath.org"),
        ({"regex": "(a)", "take": "most"}, "'most' is not known; allowed: first, last"),
        ({"regex": "(a)", "take": 0}, "0 is not known"),
        ({"json": "a", "after": "x"}, "after is for regex and csv"),
    ],
)
def test_a_wrong_declaration_is_refused(how: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Reading.model_validate(how)


def test_a_pattern_that_would_be_catastrophic_takes_time_in_proportion_to_the_text() -> None:
    begun = time.process_time()
    with pytest.raises(ValueError, match="matches nowhere"):
        read("a" * 100_000 + "b", regex="(?:a+)+(c)$")  # by back-tracking: 2 ** 100_000 steps
    assert time.process_time() - begun < 60


@pytest.mark.parametrize(
    ("cell", "more", "value"),
    [
        ({"row": {"test": "SET"}, "column": "rps"}, {}, 100.5),
        ({"row": {"test": "GET"}, "column": "rps"}, {"take": "sum"}, 500.25),
        ({"row": {"test": "GET", "rps": 300}, "column": "rps"}, {}, 300.0),
        ({"row": 3, "column": "rps"}, {}, 300.0),
        ({"row": {"test": "SET"}, "column": 2}, {}, 100.5),
    ],
)
def test_a_cell_of_a_table(cell: dict[str, object], more: dict[str, object], value: float) -> None:
    assert read(TABLE, csv=cell, **more) == value


def test_a_line_that_is_no_row() -> None:
    with pytest.raises(ValueError, match="line 2 is no row: field larger than field limit"):
        read(f"a,b\n{'x' * 200_000},1\n", csv={"column": "b"})


def test_a_table_without_a_head_and_with_other_separators() -> None:
    assert read("1;2;3\n4;5;6\n", csv={"row": 2, "column": 3, "separator": "semicolon"}) == 6
    assert read("a\t1\nb\t2\n", csv={"row": 1, "column": 2, "separator": "tab"}) == 1
    assert read("a   1\nb  2\n", csv={"row": 1, "column": 2, "separator": "space"}) == 1
    assert read("x,y\n1,2\n", csv={"column": "y"}) == 2


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ({"row": {"test": "PUT"}, "column": "rps"}, "no row is test PUT; there are 3"),
        ({"row": {"test": "GET"}, "column": "rps"}, "matches 2 times, first at line 4, column 2"),
        (
            {"row": {"test": "SET"}, "column": "latency"},
            "no line has the columns latency, test; the first is 'some words first'",
        ),
        ({"row": {"test": "SET"}, "column": "note"}, "line 3, column 3: .* is no number"),
        ({"row": 9, "column": "rps"}, "no row is number 9; there are 3"),
    ],
)
def test_a_cell_that_is_not_there(cell: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(TABLE, csv=cell)


@pytest.mark.parametrize(
    ("text", "path", "take", "value"),
    [
        ('{"a": {"b": [1, 2.5]}}', "a.b[1]", None, 2.5),
        ('{"a": {"b": [1, 2.5]}}', "a.b", "sum", 3.5),
        ('{"a": "12.5"}', "a", None, 12.5),
        ('{"a": [{"t": "x", "v": 1}, {"t": "y", "v": 7}]}', "a[?t=='y'].v", None, 7.0),
        ('{"v": 1}\n{"v": 3}\n', "[].v", "mean", 2.0),
    ],
)
def test_a_path_in_json(text: str, path: str, take: str | None, value: float) -> None:
    assert read(text, json=path, take=take) == value


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("{}", "a.b", "the path a.b leads to nothing, not to a number"),
        ('{"a": {"b": 1}}', "a", "leads to an object"),
        ('{"a": true}', "a", "leads to true"),
        ('{"a": NaN}', "a", "is no number"),
        ("not json", "a", "is not JSON: Expecting value: line 1 column 1"),
        ('{"a": ', "a", "is not JSON"),
        ('{"a": [1, 2]}', "a", "matches 2 times"),
        ("[" * 100_000, "a", "is not JSON"),
        ('{"a": 1}', "sum(a)", "sum"),
    ],
)
def test_json_without_the_number(text: str, path: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(text, json=path)


def test_values_one_a_line_are_the_times_of_single_requests() -> None:
    found = Reading(values=True).find("100\n300\n\n200\n", "us")
    assert found.value == pytest.approx(200e-6) and list(found.numbers) == [1e-4, 3e-4, 2e-4]
    assert read("1\n2\n3\n4\n5\n", values=True, take="p50") == 3
    assert read("1\n2\n3\n", values=True, take=2) == 2 and read("1\n2\n", values=True, take="count") == 2
    assert read("1ms\n\n2us\n", "s", values=True, take="max") == 0.001
    for text in ("nan\n", "1\ninf\n", "1\n1,2\n", '1\n"2"\n', "1\n1e999\n"):
        with pytest.raises(ValueError, match="is no"):
            read(text, values=True)
    with pytest.raises(ValueError, match="line 2, column 1: 'two' is no number"):
        read("1\ntwo\n", values=True)
    with pytest.raises(ValueError, match="holds no number"):
        read("\n", values=True)


def test_requests_follow_each_other() -> None:
    table = requests([0.5, 0.25, 1.0], "client")["requests"]
    assert table.to_pydict() == {"host": ["client"] * 3, "start_s": [0.0, 0.5, 0.75], "total_s": [0.5, 0.25, 1.0]}
    many = requests([0.001] * 11, "client", most=10)["latencies"]
    assert many["requests"].to_pylist() == [11] and many["source"].to_pylist() == ["requests"]


def test_line_ends_and_progress_bars() -> None:
    assert matcher("^ready$")(b"10%\r50%\rready\r\n") and not matcher("^ready$")(b"not ready")
    assert matcher("x")(b"\xff\xfex") and not matcher("x")(b"")


WAYS: tuple[dict[str, object], ...] = (
    {"regex": r"(\S+) per second", "take": "mean"},
    {"regex": r"([0-9.eE+-]*)", "take": "max"},
    {"regex": r"x(.)", "after": "^a", "take": 2},
    {"csv": {"row": {"a": 1}, "column": "b"}, "take": "sum"},
    {"csv": {"column": 2, "separator": "space"}, "take": "p90"},
    {"json": "a[*].b | max(@)"},
    {"json": "*", "take": "last"},
    {"values": True, "take": "median"},
    {"values": True, "take": "count"},
)
TEXTS = st.text(st.sampled_from("ab,x1.2e-+\"'{}[]:\n\r\t \x1b\ufeff\u2028é∞nainf per second"), max_size=60)


@given(
    st.sampled_from(WAYS), TEXTS | st.binary(max_size=60).map(decoded), st.sampled_from(["1", "ms", "%", "MB/s", "frames", "h"])
)
def test_any_text_is_a_finite_number_or_an_error(how: dict[str, object], text: str, unit: str) -> None:
    try:
        found = Reading.model_validate(how).find(text, unit)
    except ValueError as error:
        assert str(error)
    else:
        assert math.isfinite(found.value) and str(found.spot)


@given(st.text(max_size=20))
def test_any_pattern_and_path_is_taken_or_refused(text: str) -> None:
    for how in ({"regex": text}, {"json": text}, {"regex": f"({text})", "take": "first"}, {"take": text, "values": True}):
        with contextlib.suppress(ValidationError):
            reading = Reading.model_validate(how)
            with contextlib.suppress(ValueError):
                reading.find("a 1\n" + text, "1")
