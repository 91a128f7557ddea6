"""Cut, spliced and damaged files: nothing but the documented error is raised, and no number that is none comes out."""

from __future__ import annotations

import copy
import functools
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import draws
from format_cases import Case, cases
from twinbed.contracts.format import FormatError
from twinbed.imports.text.source import File
from twinbed.registry import PLUGINS

CASES = list(cases())
EXAMPLES = draws.studies(4, 100)
"""Of each case. `make soak` tries more."""
MOST_BYTES = 40_000
"""Of a text that is damaged: many small ones find more than few large ones."""
ODD = (
    b"\x00",
    b"\xff\xfe",
    b"\r\n",
    b"nan",
    b"inf",
    b"-",
    b"1e999",
    b"9" * 400,
    b",",
    b"\t",
    b"{",
    b"[]",
    b"null",
    b"1,5",
    b"%",
)


@functools.cache
def of_case(case: Case) -> tuple[str, bytes, dict[str, Any]]:
    """The name and the beginning of its input, and its options: read once for all that is made of it."""
    return case.input.name, case.input.read_bytes()[:MOST_BYTES], case.options


@st.composite
def damaged(draw: st.DrawFn, text: bytes, other: bytes) -> bytes:
    kind = draw(st.sampled_from(("cut", "splice", "odd", "lines", "crlf", "locale")))
    at = draw(st.integers(0, len(text)))
    if kind == "cut":
        return text[:at]
    if kind == "splice":
        there = draw(st.integers(0, len(other)))
        return text[:at] + other[there : there + draw(st.integers(0, 2000))] + text[at:]
    if kind == "odd":
        over = draw(st.integers(0, 12))
        return text[:at] + draw(st.sampled_from(ODD)) + text[at + over :]
    if kind == "lines":
        lines = text.splitlines(keepends=True)
        if lines:
            lines.pop(draw(st.integers(0, len(lines) - 1)))
        return b"".join(lines)
    return text.replace(b"\n", b"\r\n") if kind == "crlf" else text.replace(b".", b",")


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_damage(case: Case, tmp_path: Path, data: st.DataObject) -> None:
    other = data.draw(st.sampled_from(CASES))
    name, whole, options = of_case(case)
    text = data.draw(damaged(whole, of_case(other)[1]))
    file = tmp_path / name
    file.write_bytes(text)
    source, each = File(file, file.name), PLUGINS.formats[case.format]
    each.recognises(source.head())
    try:
        found = each.read(source, copy.deepcopy(options))
    except FormatError as error:
        assert str(error)
        return
    assert found
    declared = {metric.name: metric.unit for metric in each.metrics} | dict.fromkeys(options.get("keys", {}).values(), "1")
    for measurement in found:
        if measurement.run_key is not None and measurement.run_key.known:
            assert all(str(each).isprintable() for each in (measurement.run_key.testbed, *measurement.run_key.levels.values()))
        for value in measurement.values:
            assert value.value is None or math.isfinite(value.value), value
            assert not declared or value.unit == declared[value.metric]
