"""Every kind of file that is read goes all the way: recognised by content alone, imported, and extracted as its case says."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest

from format_cases import Case, cases
from twinbed import registry
from twinbed.contracts.format import Diagnostic
from twinbed.imports.build import build
from twinbed.imports.layout.pattern import compile_pattern
from twinbed.imports.layout.run_key import FileKey, ImportRefused
from twinbed.imports.scan import ScanRequest, scan_files
from twinbed.imports.study import ImportSettings
from twinbed.imports.survey import Request, survey
from twinbed.imports.text.diagnostics import one_line_each
from twinbed.results.extract import extract

MANIFEST_DECLARES = ("generic-csv", "generic-json", "twinbed-metrics")
IMPORTED = [case for case in cases() if case.format not in MANIFEST_DECLARES and "keys" not in case.options]


@pytest.mark.parametrize("case", IMPORTED, ids=str)
def test_a_case_is_imported_as_it_is_read(case: Case, tmp_path: Path) -> None:
    folder, results = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    shutil.copy(case.input, folder / "host_1")
    pattern = compile_pattern("{testbed}_{replicate:int}", FileKey("", {}, options=case.options))
    request = Request(folder, lambda _: pattern)
    formats = registry.PLUGINS.formats
    if isinstance(case.expected, dict):
        with pytest.raises(ImportRefused, match="host_1"):
            survey(request, formats)
        return
    found = survey(request, formats)
    assert [each.candidate.scanned.format for each in found.plan.outcomes if each.candidate] == [case.format]
    assert len(found.plan.runs) == len(case.expected)
    build(folder, results, found.plan.runs, ImportSettings("case"), {})
    table = extract(results, registry.PLUGINS.read, {}).table("metrics")
    values = list(zip(*(table[name].to_pylist() for name in ("run", "host", "direction", "metric", "value")), strict=True))
    # Measurements of other settings are runs of other cells, and their order is that of the cells.
    in_file = sorted(found.plan.runs, key=lambda run: run.files[0][1])
    for run, expected in zip(in_file, case.expected, strict=True):
        for name, value in expected.get("values", {}).items():
            metric, _, direction = name.partition(">")
            metric, _, host = metric.partition("@")
            (read,) = [one[-1] for one in values if one[:-1] == (run.id, host, direction, metric)]
            assert read == (None if value is None else pytest.approx(value, rel=1e-9)), name


def test_two_programs_in_a_text_are_said_whichever_files_come_before(tmp_path: Path) -> None:
    cases = Path(__file__).parents[2] / "golden" / "formats"
    ping = (cases / "ping" / "iputils" / "input.txt").read_text()
    siege = (cases / "siege" / "text-verbose" / "input.txt").read_text()
    for name, text in {"a.txt": ping, "b.txt": ping + siege, "c.txt": siege, "d.txt": ping + siege}.items():
        (tmp_path / name).write_text(text)
    formats = registry.PLUGINS.formats
    seen = {each.path: each for each in scan_files(tmp_path, [ScanRequest(f"{name}.txt") for name in "abcd"], formats, {})}
    assert [seen[f"{name}.txt"].format for name in "abcd"] == ["ping", "siege", "siege", "siege"]
    for name in "bd":
        assert seen[f"{name}.txt"].pieces[0].diagnostics[0].startswith("also holds ping at line 1, which is not read; ")
    assert not seen["a.txt"].pieces[0].diagnostics


def test_a_second_program_is_named_with_its_line_below_a_document_and_behind_the_first_bytes(tmp_path: Path) -> None:
    cases = Path(__file__).parents[2] / "golden" / "formats"
    document = (cases / "iperf3-json" / "tcp" / "input.json").read_text().rstrip("\n") + "\n"
    sockperf = (cases / "sockperf" / "ping-pong" / "input.txt").read_text()
    ping = (cases / "ping" / "iputils" / "input.txt").read_text().rstrip("\n") + "\n"
    lines = document.count("\n")
    long = ping + "# a line of a script\n" * 20_000 + sockperf
    texts = {"a": document, "b": document + "=== sockperf ===\n" + sockperf, "c": sockperf + "\n" + document, "d": long}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    seen = scan_files(tmp_path, [ScanRequest(f"{name}.txt") for name in texts], registry.PLUGINS.formats, {})
    assert [each.format for each in seen] == ["iperf3-json", "iperf3-json", "iperf3-json", "ping"]
    first = [each.pieces[0].diagnostics[0] if each.pieces[0].diagnostics else "" for each in seen]
    assert first[0] == ""
    assert first[1].startswith(f"also holds sockperf at line {lines + 2}, which is not read;")
    assert first[2].startswith("also holds sockperf at line 1, ")
    assert first[3].startswith(f"also holds sockperf at line {ping.count(chr(10)) + 20_001}, ")
    assert [each.partly_read for each in seen] == [False, True, True, True]


def test_flaws_that_differ_in_a_number_alone_are_one_line(tmp_path: Path) -> None:
    document = json.loads((Path(__file__).parents[2] / "golden" / "formats" / "iperf3-json" / "tcp" / "input.json").read_text())
    whole = len(document["intervals"])
    for record in document["intervals"][1:]:
        del record["sum"]["bytes"]
    (tmp_path / "a.txt").write_text(json.dumps(document))
    (one,) = scan_files(tmp_path, [ScanRequest("a.txt")], registry.PLUGINS.formats, {})
    assert one.pieces[0].diagnostics[0] == f"intervals[1] to [{whole - 1}] has no sum of bytes and seconds that can be read"
    assert one.pieces[0].diagnostic_count == 1
    flaws = [Diagnostic(f"a[{index}].b", None) for index in (0, 2, 5, 6)] + [Diagnostic("x", line) for line in (4, 5)]
    assert one_line_each(flaws) == ["a[0], [2], [5] and 1 more.b", "lines 4 to 5: x"]
    assert one_line_each([Diagnostic("y"), Diagnostic("y"), Diagnostic("z[1]", 3)]) == ["y (2 times)", "line 3: z[1]"]


@pytest.mark.parametrize("name", sorted(registry.PLUGINS.formats))
def test_a_format_goes_to_other_processes(name: str) -> None:
    assert pickle.loads(pickle.dumps(registry.PLUGINS.formats[name])).recognises(b"") in (False, None)
