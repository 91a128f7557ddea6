"""What was measured elsewhere, read as a run: with a format that is one line of text."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from twinbed.contracts.format import Diagnostic, FormatError, Measurement, Source
from twinbed.imports.scan import check_units
from twinbed.imports.text import source
from twinbed.imports.text.source import File
from twinbed.imports.workload import Imported, ImportedParams
from twinbed.metrics.metric import Layer, Metric, Value
from twinbed.model.caution import Kind

RATE = Metric("requests_per_second", "1/s", Layer.APPLICATION, "requests a second", headline=True)
REQUESTS = Metric("requests", "1", Layer.APPLICATION, "requests", extensive=True)


class Line:
    """``rate 12.5``, a measurement a line."""

    name = "line"
    summary = "a rate a line"
    metrics = (RATE, REQUESTS)
    work = "requests"
    rate = "requests_per_second"

    def recognises(self, head: bytes) -> bool:
        return head.startswith(b"rate ")

    def read(self, file: Source, options: Mapping[str, Any]) -> Sequence[Measurement]:
        found = []
        for number, line in enumerate(file.text().splitlines(), start=1):
            try:
                value = float(line.removeprefix("rate "))
                found.append(Measurement([Value("requests_per_second", value, "1/s")]))
            except ValueError:
                missing = [Value("requests_per_second", None, "1/s")]
                found.append(Measurement(missing, diagnostics=[Diagnostic(f"{line!r} is no rate", number)]))
        return found


IMPORTED = Imported(lambda: {"line": Line()})


def params(*files: dict[str, Any], **rest: Any) -> ImportedParams:
    return ImportedParams.model_validate({"files": files, **rest})


def test_the_piece_that_was_asked_for_is_read_for_its_host(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("rate 1\nrate 2\n")
    asked = params({"path": "a.txt", "format": "line", "piece": 1, "host": "client2"})
    assert IMPORTED.parse(asked, tmp_path).values == [Value("requests_per_second", 2.0, "1/s", "client2")]
    with pytest.raises(LookupError, match="has only 2 measurements, so none with number 3"):
        IMPORTED.parse(params({"path": "a.txt", "format": "line", "piece": 2}), tmp_path)
    with pytest.raises(LookupError, match="no format other"):
        IMPORTED.parse(params({"path": "a.txt", "format": "other"}), tmp_path)


def test_what_cannot_be_read_is_missing_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("rate many\n")
    found = IMPORTED.parse(params({"path": "a.txt", "format": "line"}), tmp_path)
    assert found.values == [Value("requests_per_second", None, "1/s")]
    (caution,) = found.cautions
    assert (caution.kind, caution.detail) == (Kind.UNREADABLE, "a.txt: line 1: 'rate many' is no rate")


def test_a_compressed_file_that_ends_early_says_so(tmp_path: Path) -> None:
    lines = "".join(f"rate {number}\n" for number in range(20_000)).encode()
    whole = gzip.compress(lines, compresslevel=0)
    (tmp_path / "a.gz").write_bytes(whole[:-100])
    measurements = source.read(Line(), File(tmp_path / "a.gz", "a.gz"), {})
    assert 10_000 < len(measurements) < 20_000
    assert "ends early" in str(measurements[-1].diagnostics[-1])
    assert not measurements[0].diagnostics


def test_tables_name_the_host_that_a_file_is_of(tmp_path: Path) -> None:
    class WithTable(Line):
        def read(self, file: Source, options: Mapping[str, Any]) -> Sequence[Measurement]:
            return [Measurement(tables={"calls": pa.table({"host": ["", None, "server"], "calls": [1, 2, 3]})})]

    (tmp_path / "a.txt").write_text("rate 1\n")
    asked = params({"path": "a.txt", "format": "line", "host": "client2"})
    found = Imported(lambda: {"line": WithTable()}).parse(asked, tmp_path)
    assert found.tables["calls"]["host"].to_pylist() == ["client2", "client2", "server"]


def test_files_that_contradict_each_other_say_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("rate 1\n")
    (tmp_path / "b.txt").write_text("rate 2\n")
    found = IMPORTED.parse(params({"path": "a.txt", "format": "line"}, {"path": "b.txt", "format": "line"}), tmp_path)
    assert [value.value for value in found.values] == [1.0]
    (caution,) = found.cautions
    assert caution.kind is Kind.CONTRADICTED
    assert "requests_per_second is 2.0, but 1.0 in another file of the run" in caution.detail


def test_metrics_are_those_of_the_formats_and_those_that_were_declared() -> None:
    own = {"name": "frames", "unit": "1"}
    about = IMPORTED.described(params({"path": "a.txt", "format": "line"}, metrics=[own]))
    assert [metric.name for metric in about.metrics] == ["requests_per_second", "requests", "frames"]
    assert (about.work, about.rate) == ("requests", "requests_per_second")


def test_files_are_opened_by_their_first_bytes_and_only_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a"
    file.write_bytes(gzip.compress(b"one\r\n\x1b[31mtwo\x1b[0m \xff\r\n"))
    assert File(file, "a").text() == "one\ntwo \ufffd\n"
    file.write_bytes("\ufeffz\u00e4hlt".encode("utf-16"))
    assert File(file, "a").text().endswith("z\u00e4hlt")
    whole = gzip.compress(bytes(range(256)) * 4096, compresslevel=0)
    file.write_bytes(whole[: len(whole) // 2])
    cut = File(file, "a")
    assert cut.content().startswith(bytes(range(256))), "of a file that is cut, what there is"
    assert cut.cut and not File(file, "a").cut
    monkeypatch.setattr(source, "MOST_BYTES", 1000)
    file.write_bytes(gzip.compress(bytes(10**6)))
    with pytest.raises(FormatError, match="longer than"):
        File(file, "a").content()
    assert len(File(file, "a").head()) == source.HEAD_BYTES
    with pytest.raises(FormatError, match="No such file"):
        File(tmp_path / "none", "none").head()
    file.write_bytes(b"\x1f\x8b\x08 is no gzip")
    assert File(file, "a").head() == b""


class Rounded(Line):
    """The same, to one."""

    name = "rounded"

    def read(self, file: Source, options: Mapping[str, Any]) -> Sequence[Measurement]:
        return [
            Measurement(measurement.values, resolution={"requests_per_second": 0.5})
            for measurement in super().read(file, options)
        ]


def test_of_two_files_that_differ_by_what_one_rounds_the_finer_is_taken(tmp_path: Path) -> None:
    imported = Imported(lambda: {"line": Line(), "rounded": Rounded()})
    for name, text in (("coarse", "rate 3"), ("fine", "rate 3.4"), ("other", "rate 3.6"), ("none", "rate ?")):
        (tmp_path / name).write_text(text)
    coarse, fine, other, none = (
        {"path": name, "format": "rounded" if name == "coarse" else "line"} for name in ("coarse", "fine", "other", "none")
    )
    for asked in (params(coarse, fine), params(fine, coarse)):
        found = imported.parse(asked, tmp_path)
        assert [value.value for value in found.values] == [3.4]
        assert not found.cautions
    found = imported.parse(params(none, fine), tmp_path)
    assert [value.value for value in found.values] == [3.4], "what one file does not know another may"
    found = imported.parse(params(coarse, other), tmp_path)
    assert [caution.kind for caution in found.cautions] == [Kind.CONTRADICTED]


def test_a_column_without_a_unit_may_count() -> None:
    """A manifest says that a metric counts by its unit; what a file gives as a plain number is then counted."""
    counted = [Measurement([Value("frames", 12.0, "1")])]
    check_units(counted, {"frames": "count"})
    with pytest.raises(FormatError, match="gives frames in 1, but the manifest declares s"):
        check_units(counted, {"frames": "s"})
