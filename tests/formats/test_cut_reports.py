"""A load generator's report that is cut anywhere says no number that the whole one does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.cases import Case, cases
from twinbed.model.format import FormatError
from twinbed.reading.source import File
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


@pytest.mark.parametrize("name", ["tcp", "udp-reverse"])
def test_a_cut_document_has_whole_intervals_alone(name: str, tmp_path: Path) -> None:
    (case,) = [case for case in cases() if case.format == "iperf3-json" and case.folder.name == name]
    each, text = PLUGINS.formats["iperf3-json"], case.input.read_bytes()
    (whole,) = each.read(File(case.input, case.input.name), {})
    sizes = whole.tables["intervals"]["bytes"].to_pylist()
    metric = "sent_bytes" if name == "tcp" else "received_bytes"
    file = tmp_path / "input.json"
    seen = set()
    for end in range(0, len(text), STEP):
        file.write_bytes(text[:end])
        try:
            (found,) = each.read(File(file, file.name), {})
        except FormatError:
            continue
        assert found.flaws, "a cut document says that it is cut"
        seen.add({value.metric: value.value for value in found.values}[metric])
    assert seen == {sum(sizes[: count + 1]) for count in range(len(sizes))}
