"""Every kind of file that is read goes all the way: recognised by content alone, imported, and extracted as its case says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from format_cases import Case, cases
from twinbed import registry
from twinbed.imports.build import build
from twinbed.imports.layout.pattern import compile_pattern
from twinbed.imports.layout.run_key import FileKey, ImportRefused
from twinbed.imports.scan import ScanRequest, scan_files
from twinbed.imports.study import About
from twinbed.imports.survey import Request, survey
from twinbed.results.extract import extract

MANIFEST_DECLARES = ("generic-csv", "generic-json", "twinbed-metrics")


@pytest.mark.parametrize("case", [case for case in cases() if case.format not in MANIFEST_DECLARES], ids=str)
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
    build(folder, results, found.plan.runs, About("case"), {})
    table = extract(results, registry.PLUGINS.read, {}).table("metrics")
    values = list(zip(*(table[name].to_pylist() for name in ("run", "host", "direction", "metric", "value")), strict=True))
    for run, expected in zip(found.plan.runs, case.expected, strict=True):
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
        assert "nothing is read of what it has of ping: part the file" in seen[f"{name}.txt"].pieces[-1].diagnostics[-1]
    assert not seen["a.txt"].pieces[0].diagnostics
