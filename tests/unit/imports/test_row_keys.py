"""A table of all runs: each row belongs to the run that its own columns say."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twinbed import registry
from twinbed.cli.main import run
from twinbed.contracts.format import Measurement
from twinbed.imports import workload as repeated
from twinbed.imports.layout.manifest import read_yaml
from twinbed.imports.layout.run_key import ImportRefused
from twinbed.imports.survey import Request, survey
from twinbed.imports.text.source import File
from twinbed.results.extract import extract

SHARE = {"host": 1.0, "kvm": 0.5, "docker": 0.75}
RATES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Of five replicates: powers of two, so that means of logarithms are exact."""
Row = Mapping[str, Any]


def rows() -> list[dict[str, Any]]:
    """Three testbeds, two factors of two levels each, five replicates; a rate is the host's times the testbed's share."""
    return [
        {"bed": bed, "size": size, "offload": offload, "rep": number, "rate": rate * share * size, "kernel": "6.1.0"}
        for bed, share in SHARE.items()
        for size in (500, 1400)
        for offload in ("on", "off")
        for number, rate in enumerate(RATES, start=1)
    ]


def table(folder: Path, rows: Iterable[Row], name: str = "runs.csv") -> Path:
    lines = [",".join("" if each is None else str(each) for each in row.values()) for row in rows]
    folder.mkdir(exist_ok=True, parents=True)
    (folder / name).write_text("\n".join(["bed,size,offload,rep,rate,kernel", *lines]) + "\n")
    return folder


OPTIONS: dict[str, Any] = {
    "testbed": "bed",
    "levels": {"size": "payload", "offload": "offload"},
    "replicate": "rep",
    "columns": {"rate": "goodput"},
    "units": {"rate": "kbit/s"},
    "facts": {"kernel": "kernel"},
}


def manifest(folder: Path, options: Row = OPTIONS, **entry: Any) -> Path:
    """Beside the folder. JSON is YAML."""
    files = {"pattern": "runs.csv", "format": "generic-csv", "metrics": [{"name": "goodput", "unit": "bit/s"}]}
    found = folder.parent / f"{folder.name}.yaml"
    found.write_text(json.dumps({"reference": "host", "files": [{**files, "options": options, **entry}]}))
    return found


def imported(folder: Path, results: Path, *more: str, options: Row = OPTIONS, code: int = 0, **entry: Any) -> Path:
    path = manifest(folder, options, **entry)
    assert run(["import", str(folder), "-o", str(results), "--manifest", str(path), *more]) == code
    return results


def data(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> Any:
    capsys.readouterr()
    assert run([*(str(each) for each in arguments), "--format", "json"]) == code
    return json.loads(capsys.readouterr().out)


def records(results: Path) -> list[Any]:
    return [json.loads(each.read_text()) for each in sorted((results / "runs").glob("*/run.json"))]


def ratios(capsys: pytest.CaptureFixture[str], results: Path) -> dict[tuple[Any, ...], tuple[int, float]]:
    # Replicates differ too much for a verdict.
    found = data(capsys, "compare", results, code=5)["comparisons"]
    return {
        (each["testbed"], int(each["factor:payload"]), each["factor:offload"]): (each["n"], each["ratio"]) for each in found
    }


def as_json(folder: Path, rows: Iterable[Row]) -> Path:
    folder.mkdir()
    items = [{"where": {"bed": row["bed"]}, **{name: row[name] for name in row if name != "bed"}} for row in rows]
    (folder / "runs.json").write_text(json.dumps({"runs": items}))
    return folder


JSON: dict[str, Any] = {
    **{name: OPTIONS[name] for name in ("levels", "replicate", "units", "facts")},
    "testbed": "where.bed",
    "paths": {"rate": "goodput"},
    "each": "runs",
}


@pytest.mark.parametrize("kind", ["csv", "json", "lists"])
def test_ratios_are_those_of_the_table(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All is as it was planned but for three rows: kvm's last replicate of a cell has no rate, docker has no run of another,
    and one of the host has no testbed."""
    lost = ("docker", 1400, "off")
    made = [row for row in rows() if (row["bed"], row["size"], row["offload"]) != lost]
    for row in made:
        if (row["bed"], row["size"], row["offload"], row["rep"]) == ("kvm", 500, "on", 5):
            row["rate"] = None
    made.append({"bed": None, "size": 500, "offload": "on", "rep": 6, "rate": 99.0, "kernel": "6.1.0"})
    folder, results = tmp_path / "in", tmp_path / "out"
    if kind == "json":
        imported(as_json(folder, made), results, options=JSON, pattern="runs.json", format="generic-json", code=1)
    elif kind == "csv":
        imported(table(folder, made), results, code=1)
    else:  # a row is of the factors that its columns are called
        options = {**OPTIONS, "levels": ["payload", "offload"]}
        table(folder, made)
        text = (folder / "runs.csv").read_text()
        (folder / "runs.csv").write_text(text.replace("size", "payload", 1))
        imported(folder, results, options=options, code=1)
    said = capsys.readouterr().out
    assert "55 runs added" in said
    assert "0 files read, 1 partly read, 0 refused" in said
    assert "docker, payload 1400, offload off" in said
    assert "is empty, so the row belongs to no run" in said
    cells = [(bed, size, offload) for bed in ("kvm", "docker") for size in (500, 1400) for offload in ("on", "off")]
    expected = {cell: (5, SHARE[cell[0]]) for cell in cells if cell != lost}
    # The mean of the logarithms of 1, 2, 4, 8 is log 2^1.5, that of all five log 4.
    expected["kvm", 500, "on"] = (4, 0.5 * 2**1.5 / 4)
    found = ratios(capsys, results)
    assert {cell: n for cell, (n, _) in found.items()} == {cell: n for cell, (n, _) in expected.items()}
    for cell, (_, ratio) in expected.items():
        assert found[cell][1] == pytest.approx(ratio, rel=1e-12)
    assert run(["report", str(results), "-o", str(tmp_path / "report.html")]) == 0


def test_a_run_says_which_row_of_which_file_it_is(tmp_path: Path) -> None:
    folder = table(tmp_path / "in", rows())
    digest = hashlib.sha256((folder / "runs.csv").read_bytes()).hexdigest()
    results = imported(folder, tmp_path / "out", "--link")
    found = records(results)
    assert len({each["id"] for each in found}) == len(found) == 60
    for each in found:
        (file,) = each["artifacts"]
        (read,) = each["settings"]["workload"]["files"]
        row = rows()[read["piece"]]
        levels = {"testbed": row["bed"], "payload": row["size"], "offload": row["offload"]}
        assert (file["source"], file["sha256"], each["levels"]) == ("runs.csv", digest, levels)
        assert each["replicate"] == row["rep"] - 1
        copy = results / "runs" / each["id"] / file["path"]
        assert copy.stat().st_ino == (folder / "runs.csv").stat().st_ino


def test_the_dry_run_has_a_line_for_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = table(tmp_path / "in", rows())
    found = data(capsys, "import", folder, "--dry-run", "--manifest", manifest(folder))
    (file,) = found["outcomes"]
    assert (file["what"], file["measurements"], len(file["runs"]), file["testbed"]) == ("read", 60, 60, "")
    assert (found["gaps"], len(found["cells"]), {each["runs"] for each in found["cells"]}) == ([], 12, {5})
    assert found["factors"] == {"payload": [500, 1400], "offload": ["off", "on"]}
    assert not found["doubts"] and not found["numbered"] and not found["conflicts"]
    one = table(tmp_path / "one", [row for row in rows() if row["bed"] == "kvm" and row["size"] == 500])
    (file,) = data(capsys, "import", one, "--dry-run", "--manifest", manifest(one))["outcomes"]
    assert (file["testbed"], file["levels"], file["replicate"]) == ("kvm", {"payload": 500}, None)


def test_rows_of_a_run_are_samples_or_contradict_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [{**row, "rate": row["rate"] + more} for row in rows() for more in (-0.5, 0.5)]
    folder = table(tmp_path / "in", made)
    capsys.readouterr()
    path = manifest(folder)
    assert run(["import", str(folder), "-o", str(tmp_path / "out"), "--manifest", str(path)]) == 2
    said = capsys.readouterr().err
    assert "60 runs match several" in said
    assert "docker, payload 500, offload off, replicate 1: runs.csv has 2 measurements of it" in said
    assert "rows: mean" in said
    results = imported(folder, tmp_path / "out", options={**OPTIONS, "rows": "mean"})
    found = ratios(capsys, results)
    assert [n for n, _ in found.values()] == [5] * 8
    assert found["kvm", 500, "on"][1] == pytest.approx(0.5, rel=1e-12)
    imported(folder, tmp_path / "numbered", "--number-replicates")
    assert {n for n, _ in ratios(capsys, tmp_path / "numbered").values()} == {10}


def test_a_table_that_has_grown_adds_its_new_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where rows have no replicate, and a cell had one row only."""
    without = {name: OPTIONS[name] for name in OPTIONS if name != "replicate"}
    for options in (OPTIONS, without):
        folder, results = tmp_path / f"in{len(options)}", tmp_path / f"out{len(options)}"
        first = [row for row in rows() if row["rep"] <= (1 if row["size"] == 500 else 3)]
        imported(table(folder, first), results, options=options)
        there = {each["id"]: (each["replicate"], each["cell"]) for each in records(results)}
        assert len(there) == 3 * 2 * (1 + 3)
        capsys.readouterr()
        imported(folder, results, options=options)
        assert "0 runs added" in capsys.readouterr().out
        # Rows of the same cells stand before those that are new.
        more = [*first, *(row for row in rows() if row not in first)]
        imported(table(folder, more), results, options=options, code=1)
        said = capsys.readouterr().out
        assert "36 runs added" in said and "24 were imported before" in said
        assert "was imported from other files or contents and is kept unchanged" in said
        now = {each["id"]: (each["replicate"], each["cell"]) for each in records(results)}
        assert there.items() <= now.items()
        assert len(set(now.values())) == len(now) == 60
        found = ratios(capsys, results)
        assert len(found) == 8
        for (bed, _, _), (n, ratio) in found.items():
            assert n == 5 and ratio == pytest.approx(SHARE[bed], rel=1e-12)


def test_paths_may_say_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table a testbed and replicate; the one that cannot be read makes no run, as nobody knows of which cells it is."""
    folder = tmp_path / "in"
    for bed in SHARE:
        for number in range(1, 6):
            table(folder, [row for row in rows() if (row["bed"], row["rep"]) == (bed, number)], f"{bed}_{number}.csv")
    (folder / "kvm_6.csv").write_text("kernel\n6.1.0\n")
    (folder / "old").mkdir()
    (folder / "old" / "kvm_1.csv").write_bytes((folder / "kvm_1.csv").read_bytes())
    options = {name: OPTIONS[name] for name in OPTIONS if name not in ("testbed", "replicate")}
    results = imported(folder, tmp_path / "out", options=options, pattern="{testbed}_{replicate:int}.csv", code=1)
    said = capsys.readouterr().out
    assert "15 files read, 0 partly read, 1 refused, 1 copies of others" in said
    assert "60 runs added" in said
    assert "kvm_6.csv: has no column rate, size, offload; its columns are kernel" in said
    assert {each["replicate"] for each in records(results)} == {0, 1, 2, 3, 4}
    for (bed, _, _), (n, ratio) in ratios(capsys, results).items():
        assert n == 5 and ratio == pytest.approx(SHARE[bed], rel=1e-12)


@pytest.mark.parametrize(
    ("change", "entry", "said"),
    [
        ({"testbed": ""}, {"pattern": "{_}.csv"}, "'{_}.csv' has no {field}"),
        ({"testbed": ""}, {"pattern": "{n}.csv"}, "'{n}.csv' gives no testbed"),
        ({"levels": {"size": "replicate"}}, {}, "replicate has a meaning of its own and cannot be a factor"),
        ({"levels": ["size", "size"]}, {}, "has an entry twice"),
        ({"levels": {"size": "n", "offload": "n"}}, {}, "two entries have the same factor"),
        ({"levels": {"size": ""}}, {}, "cannot be a factor's name"),
        ({"levels": ["bed"]}, {}, "bed is named twice in testbed, replicate and levels"),
        ({"levels": 5}, {}, "levels: Input should be a valid dictionary"),
        ({"levels": ["rate"]}, {}, "rate is both a metric and one of testbed, replicate and levels"),
        ({"replicate": "run"}, {}, "has no column run; its columns are bed, size, offload, rep, rate, kernel"),
        ({}, {"testbed": "host"}, "the entry gives testbed, and its options read it"),
        ({}, {"levels": {"payload": 3}}, "the entry gives payload, and its options read it"),
        ({}, {"pattern": "{testbed}.csv"}, "'{testbed}.csv' reads testbed, and the options read it from the file too"),
        ({}, {"pattern": "{replicate}.csv"}, "'{replicate}.csv' reads replicate, and the options read it"),
        ({}, {"pattern": None, "regex": "(?P<payload>.*)"}, "'(?P<payload>.*)' reads payload, and the options read it"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    change: Row, entry: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = table(tmp_path / "in", rows())
    path = manifest(folder, {**OPTIONS, **change}, **entry)
    assert run(["import", str(folder), "-o", str(tmp_path / "out"), "--manifest", str(path)]) in (1, 2)
    assert re.search(re.escape(said), capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_a_format_that_does_not_read_them_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ping's texts have no columns."""
    ping = Path(__file__).parents[2] / "golden" / "formats" / "ping"
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "runs.csv").write_bytes(next(iter(sorted(ping.glob("*/input*")))).read_bytes())
    path = manifest(folder, {"testbed": "bed"}, format="ping", metrics=[])
    assert run(["import", str(folder), "-o", str(tmp_path / "out"), "--manifest", str(path)]) == 1
    assert "is ping, which does not read testbed from a file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("decimal", "said", "levels"),
    [
        # As C's %g, Python and R write them; 2e5 may be a name, and 010 and 1,5 are.
        (".", ["0.001", "1e-05", "1.5e-04", "2E+06", "2e5", "010", "1,5"], [1e-5, 1.5e-4, 0.001, 2e6, "010", "1,5", "2e5"]),
        (",", ["0,5", "1e-05", "0,25", "1,5E-04", "eth0,eth1", "10", "9"], [1e-5, 1.5e-4, 0.25, 0.5, 9, 10, "eth0,eth1"]),
    ],
)
def test_levels_that_are_numbers_are_in_their_order(tmp_path: Path, decimal: str, said: list[str], levels: list[Any]) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    lines = ["bed;loss;rate", *(f"host;{level};{at}" for at, level in enumerate(said))]
    (folder / "runs.csv").write_text("\n".join(lines) + "\n")
    options = {"testbed": "bed", "levels": ["loss"], "columns": {"rate": "goodput"}, "units": {"rate": "bit/s"}}
    path = manifest(folder, {**options, "delimiter": ";", "decimal": decimal})
    assert run(["import", str(folder), "-o", str(tmp_path / "out"), "--manifest", str(path)]) == 0
    assert json.loads((tmp_path / "out" / "study.json").read_text())["factors"]["loss"] == levels


def test_a_table_is_read_once_and_not_once_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another table of the same name and length is another table."""
    results = tmp_path / "out"
    imported(table(tmp_path / "in", rows()), results)
    others = [{**row, "bed": "xen", "rate": row["rate"] * 2} for row in rows() if row["bed"] == "kvm"]
    imported(table(tmp_path / "in", others), results)
    read = []

    def counted(kind: Any, file: File, options: Mapping[str, Any]) -> Any:
        read.append(file.name)
        found: list[Measurement] = list(kind.read(file, options))
        return found

    monkeypatch.setattr(repeated, "read", counted)
    found = extract(results, registry.PLUGINS.read, {}).table("metrics")
    assert found.num_rows == 80
    assert sum(found["value"].to_pylist()) == 31 * (1 + 0.5 + 0.75 + 1) * (500 + 1400) * 2 * 1000
    assert len(read) == 2
    # What an extraction has read, it takes with it.
    shutil.rmtree(results / "tables")
    extract(results, registry.PLUGINS.read, {})
    assert len(read) == 4


ODD = ("\x00", '"', ",", "\n", "\r", "\x07", "\u2028", "\ud7ff", "1e999", "9" * 300, "nan", ",,,,", "kvm", "host,500,on,1,")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_table_makes_no_run_that_it_does_not_name(tmp_path: Path, data: st.DataObject) -> None:
    folder = table(tmp_path / "in", rows()[:12])
    text = (folder / "runs.csv").read_text()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(ODD)) + text[at + data.draw(st.integers(0, 20)) :]
    (folder / "runs.csv").write_bytes(text.encode())
    made = read_yaml(manifest(folder, data.draw(st.sampled_from((OPTIONS, {**OPTIONS, "rows": "mean"})))).read_text(), "x.yaml")
    try:
        found = survey(Request(folder, lambda _paths: made.assigner()), registry.PLUGINS.formats)
    except ImportRefused as error:
        assert error.message
        return
    assert [each.path for each in found.plan.outcomes if each.path == "runs.csv"] == ["runs.csv"] or found.plan.conflicts
    bare = text.replace('"', "")
    for each in found.plan.runs:
        assert set(each.levels) == {"payload", "offload"}
        for told in (each.testbed, *each.levels.values()):
            assert told is None or (str(told) and str(told).isprintable() and str(told).replace('"', "") in bare)
        assert each.testbed
    assert len({each.id for each in found.plan.runs}) == len(found.plan.runs)
