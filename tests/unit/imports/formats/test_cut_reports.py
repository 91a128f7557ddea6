"""A load generator's report that is cut anywhere says no number that the whole one does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from format_cases import Case, cases
from twinbed.contracts.format import FormatError
from twinbed.imports.text.source import File
from twinbed.registry import PLUGINS

REPORTS = ("ab-text", "ab-csv", "wrk", "wrk2", "hey", "siege", "h2load")
"""Formats whose numbers stand once, at the end of a run: of a cut one a number is there or not."""
STEP = 7
"""Bytes from one cut to the next."""
MOST_BYTES = 4000
"""Of the end of a report, which is where its numbers are."""
CASES = [case for case in cases() if case.format in REPORTS and isinstance(case.expected, list) and len(case.expected) == 1]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_cut_report_invents_nothing(case: Case, tmp_path: Path) -> None:
    each = PLUGINS.formats[case.format]
    text = case.input.read_bytes()
    (whole,) = each.read(File(case.input, case.input.name), {})
    known = {value.metric: value.value for value in whole.values}
    file = tmp_path / case.input.name
    for end in range(max(0, len(text) - MOST_BYTES), len(text), STEP):
        file.write_bytes(text[:end])
        try:
            (found,) = each.read(File(file, file.name), {})
        except FormatError:
            continue
        for value in found.values:
            assert value.value is None or value.value == known[value.metric], (end, text[max(0, end - 40) : end], value)


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("iperf3-json/tcp", "sent_bytes"),
        ("iperf3-json/udp-reverse", "received_bytes"),
        ("iperf3-text/tcp", "sent_bytes"),
        ("iperf3-text/three-streams-omitted-second", "sent_bytes"),
    ],
)
def test_a_cut_measurement_has_whole_intervals_alone(name: str, metric: str, tmp_path: Path) -> None:
    (case,) = [case for case in cases() if str(case) == name]
    each, text = PLUGINS.formats[case.format], case.input.read_bytes()
    (whole,) = each.read(File(case.input, case.input.name), {})
    sizes = whole.tables["intervals"]["bytes"].to_pylist()
    file = tmp_path / case.input.name
    seen = set()
    for end in range(0, len(text), STEP):
        file.write_bytes(text[:end])
        try:
            (found,) = each.read(File(file, file.name), {})
        except FormatError:
            continue
        assert found.diagnostics or b"receiver" in text[:end], "what is cut says so"
        seen.add({value.metric: value.value for value in found.values}[metric])
    known = {sum(sizes[: count + 1]) for count in range(len(sizes))}
    assert {round(size, -1) for size in seen if size is not None} == {round(size, -1) for size in known}
